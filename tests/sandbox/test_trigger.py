"""Triggering: every kind can be, with an example of its payload or fields of one's own."""

import msgspec
import pytest

from billfold.cli.context import CliError
from billfold.events.kinds import KINDS
from billfold.sandbox.cli.listen import payload_of


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_payload_to_be_triggered_with(kind):
    assert msgspec.convert(payload_of(kind, []), KINDS[kind].payload) == KINDS[kind].example


def test_fields_can_be_set():
    told = payload_of("card.transaction.approved", ["amount=99", "account_id=x=y"])
    assert (told["amount"], told["account_id"]) == (99, "x=y")
    for wrong in ("amount", "colour=red"):
        with pytest.raises(CliError) as refused:
            payload_of("card.transaction.approved", [wrong])
        assert "card_id, amount, account_id" in refused.value.next_step
