"""Commands of the operator for unbooked settlement records and for the state of the card rail."""

import re

import pytest
from tests.payments.cli_bank import prepare
from tests.support.approvals import confirmed
from tests.support.cards import Processor, fee, presentment, refund
from tests.support.whole_bank import EngineCommands, Holder

from billfold.platform import ids
from billfold.sandbox.control.clock_stepper import ClockStepper

__all__ = ["prepare"]


@pytest.fixture
def operator(billfold, prepare):
    """A bank with a card and a file with bad records: (run a command, the items by amount, the card)."""

    async def live(bank):
        commands = EngineCommands(bank)
        holder = Holder(bank, *await commands.new_pocket(await commands.new_customer()))
        await holder.deposit(1_000_00)
        processor = Processor(bank)
        card = await processor.card(holder)
        bought = presentment(card, 10_00)
        await processor.send(bought, presentment(ids.new(), 40_00), refund(ids.new(), 5_00), bought, fee(3))
        items = await bank.pool.fetch("SELECT amount, item_id FROM suspense_item")
        return {row["amount"]: row["item_id"] for row in items}, card

    items, card = prepare(live)
    return (lambda *words, **more: billfold(*(str(word) for word in words), **more)), items, card


def test_unbooked_settlement_records_are_assigned_or_written_off(operator, prepare):
    billfold, items, card = operator
    status, shown = billfold("card-settlement", "exceptions")
    assert (status, shown.count("unknown-card"), shown.count("repeated")) == (0, 2, 1), shown
    assert "CYCLE-1" in billfold("card-settlement", "list")[1]
    for words in (("suspense", "return", items[40_00]), ("card-settlement", "assign", items[40_00])):
        assert billfold(*words)[0] == 1
    assert billfold("card-settlement", "assign", items[10_00])[0] == 1  # its record is booked
    assert billfold("card-settlement", "assign", ids.new())[0] == 1
    purchase = billfold("card-settlement", "assign", items[40_00], "--card", card)
    assert f"Book the presentment of $40.00 to card {card}" in purchase[1]
    refunded = billfold("card-settlement", "assign", items[5_00], "--card", card)
    why = ("--reason", "sent twice")
    assert billfold("card-settlement", "exceptions")[1].count("unknown-card") == 2, "one operator books nothing"
    status, said = billfold("card-settlement", "write-off", items[40_00], *why)
    assert (status, "proposal-open" in said) == (1, True), said
    for each in (purchase, refunded):
        assert re.search("APPLIED, transaction [0-9a-f-]{36}", confirmed(billfold, each))
    confirmed(billfold, billfold("card-settlement", "write-off", items[10_00], *why))
    assert billfold("card-settlement", "assign", items[40_00], "--card", card)[0] == 1
    assert billfold("card-settlement", "exceptions") == (0, "✓ Every record is booked.")
    status, shown = billfold("clearing", "--rail", "card")
    assert (status, "open" in shown) == (0, True), shown
    prepare(lambda bank: ClockStepper(bank).advance_business_days(2))
    status, shown = billfold("clearing", "--rail", "card")
    assert (status, "open" in shown) == (0, False), shown
    assert billfold("verify")[0] == 0
