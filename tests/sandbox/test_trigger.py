"""Triggering events of every kind, with the example payload or one's own fields."""

import msgspec
import pytest

from billfold.cli.context import CliError
from billfold.events.kinds import KINDS
from billfold.sandbox.cli.listen import payload_of


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_kind_has_a_trigger_payload(kind):
    assert msgspec.convert(payload_of(kind, []), KINDS[kind].payload) == KINDS[kind].example


def test_trigger_payload_fields_can_be_overridden():
    told = payload_of("card.transaction.approved", ["amount=99", "account_id=x=y"])
    assert (told["amount"], told["account_id"]) == (99, "x=y")
    for wrong in ("amount", "colour=red"):
        with pytest.raises(CliError) as refused:
            payload_of("card.transaction.approved", [wrong])
        assert "card_id, amount, account_id" in refused.value.next_step
