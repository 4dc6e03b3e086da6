"""Simulated screening rejects by amount and by name in the sandbox only."""

import pytest

from billfold.ledger.context import NoScreening
from billfold.sandbox.simulated_providers import SimulatedScreening


@pytest.mark.parametrize(
    ("question", "value", "answer"),
    [
        ("stopped_wire", 100_02, "SANCTION_SCREEN_FAILED"),
        ("stopped_wire", 100_01, None),
        ("unverifiable_name", "Unverifiable LLC", "The name cannot be verified."),
        ("unverifiable_name", "Beta LLC", None),
        ("invalid_file", "an Invalid one.pdf", "IMAGE_QUALITY_ERROR_CUTOFF"),
        ("invalid_file", "one.pdf", None),
        ("invalid_file", None, None),
    ],
)
def test_simulated_screening_rejects_by_amount_and_name(question, value, answer):
    assert getattr(SimulatedScreening(), question)(value) == answer
    assert getattr(NoScreening(), question)(value) is None
