"""Wires without a Pocket, and returns the network refuses: no cent is lost, and each is reported."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.support.fedwire import pay_back

from billfold.payments.clearing.report import clearing_report
from billfold.platform.errors import Refused

EVENING = datetime(2025, 6, 4, 21, 30, tzinfo=UTC)
"""17:30 in New York: wires are asked for, and leave on the next day."""
DAWN, OPENING = datetime(2025, 6, 5, 11, tzinfo=UTC), datetime(2025, 6, 5, 12, tzinfo=UTC)


async def test_a_rejected_outgoing_return_is_recreated(fedwire, holder):
    await fedwire.drop("in.xml", await fedwire.payment("one", await fedwire.account_of(holder)))
    (arrived,) = await fedwire.wires(holder)
    returns = []
    for nth in range(3):
        returns.append(await pay_back(fedwire.bank, arrived.wire_id))
        await fedwire.room.sender.send(fedwire.bank)
        code = "AC06" if nth < 2 else None
        await fedwire.drop(f"{nth}.xml", await fedwire.status(returns[-1], code))

    assert len(set(returns)) == 3
    statuses = [(await fedwire.wire(holder, each)).status for each in returns]
    assert statuses == ["REJECTED", "REJECTED", "COMPLETED"]
    with pytest.raises(Refused, match="already returned"):
        await pay_back(fedwire.bank, arrived.wire_id)
    await fedwire.prove()


async def test_a_rejected_return_clears_its_overdraft(fedwire, holder):
    account = await fedwire.account_of(holder)
    await fedwire.drop("in.xml", await fedwire.payment("one", account, 9_000_00))
    (arrived,) = await fedwire.wires(holder)
    await fedwire.settled(holder, 8_000_00)
    returned = await pay_back(fedwire.bank, arrived.wire_id)
    owed = "SELECT debits - credits FROM account WHERE kind = 'owed'"
    assert await fedwire.bank.pool.fetchval(owed) > 2_999_00
    await fedwire.room.sender.send(fedwire.bank)
    await fedwire.drop("no.xml", await fedwire.status(returned, "AC06"))
    assert await fedwire.bank.pool.fetchval(owed) == 0
    await fedwire.prove()


async def test_a_rejected_return_of_an_unknown_payment_is_held_and_sent_again(fedwire):
    await fedwire.drop("in.xml", await fedwire.payment("one", "999999999999"))
    await fedwire.clock.advance(timedelta(0))
    (first,) = await fedwire.bank.pool.fetch("SELECT item_id, status FROM suspense_item")
    rejected = await fedwire.status(first["item_id"], "AC06")
    await fedwire.drop("no.xml", rejected)

    (item,) = await fedwire.held()
    assert (item.reason, item.amount) == ("RETURN_REJECTED", 5_00)
    await fedwire.prove()
    await fedwire.return_payment(item.item_id)
    again = await fedwire.message(item.item_id)
    assert again.message_id != rejected.message.original.message_id
    assert again.message_id in fedwire.last_out()
    await fedwire.prove()


async def test_a_rejected_return_for_a_closed_portal_is_credited_to_its_owner(fedwire, holder):
    second = await fedwire.second_pocket(holder)
    account = await fedwire.account_of(second)
    await fedwire.close_portal(second)
    await fedwire.drop("in.xml", await fedwire.payment("one", account))
    await fedwire.clock.advance(timedelta(0))
    (arrived,) = await fedwire.wires(holder)
    assert arrived.status == "REJECTED"
    await fedwire.drop("no.xml", await fedwire.status(arrived.wire_id, "AC06"))

    (item,) = await fedwire.held()
    await fedwire.assign(item.item_id, holder)
    (wire,) = [each for each in await fedwire.wires(holder) if each.status == "COMPLETED"]
    assert (wire.wire_id, wire.direction, wire.status) == (item.item_id, "INCOMING", "COMPLETED")
    assert (wire.uetr, wire.counterparty_name) == (arrived.uetr, "Acme")
    # It may be returned like any wire that arrived.
    await pay_back(fedwire.bank, wire.wire_id)
    await fedwire.prove()


async def _closed_after_a_wire(fedwire, holder):
    """A Pocket is emptied by a wire, and closed; return the wire's id and another Pocket."""
    second = await fedwire.second_pocket(holder)
    await fedwire.clock.set_to(EVENING)
    wire_id = await fedwire.send_wire(holder, None)
    await fedwire.clock.set_to(DAWN)
    await fedwire.close(holder)
    await fedwire.clock.set_to(OPENING)
    return wire_id, second


async def test_a_rejected_return_of_a_closed_pocket_is_sent_again(fedwire, holder):
    await fedwire.drop("in.xml", await fedwire.payment("one", await fedwire.account_of(holder)))
    (arrived,) = await fedwire.wires(holder)
    await fedwire.clock.set_to(EVENING)
    back = await pay_back(fedwire.bank, arrived.wire_id)
    await _closed_after_a_wire(fedwire, holder)
    rejected = await fedwire.message(back)
    await fedwire.drop("no.xml", await fedwire.status(back, "AC06"))
    for nth in range(2):
        (item,) = await fedwire.held()
        await fedwire.return_payment(item.item_id)
        again = await fedwire.message(item.item_id)
        assert again.original.uetr == rejected.original.uetr
        assert again.message_id in fedwire.last_out()
        await fedwire.drop(f"no {nth}.xml", await fedwire.status(item.item_id, "AC06"))
    await fedwire.prove()


async def test_a_return_to_a_closed_pocket_is_assigned_to_its_owner(fedwire, holder):
    wire_id, second = await _closed_after_a_wire(fedwire, holder)
    await fedwire.drop("ok.xml", await fedwire.status(wire_id))
    await fedwire.drop("back.xml", await fedwire.payment_return(wire_id))
    assert fedwire.taken("back.xml") == ["pocket-not-open"]
    (item,) = await fedwire.held()
    legs = await fedwire.legs()
    with pytest.raises(Refused, match="billfold suspense assign") as refused:
        await fedwire.return_payment(item.item_id)
    assert refused.value.code == "suspense-item-stays"
    assert await fedwire.legs() == legs

    again = await fedwire.payment_return(wire_id, message_id="20250605SIMFED01999999")
    await fedwire.drop("twice.xml", again)
    assert fedwire.refused("twice.xml")[0][2] == "the payment is already returned"
    await fedwire.assign(item.item_id, second)
    (back, _) = await fedwire.wires(holder)
    assert (back.wire_type, back.original_wire_id) == ("RETURN", wire_id)
    assert back.pocket_id == second.pocket_id
    await fedwire.prove()


async def test_a_rejected_wire_is_held_with_its_fee_when_its_pocket_has_been_closed(fedwire, holder):
    await fedwire.drop("in.xml", await fedwire.payment("one", await fedwire.account_of(holder)))
    (arrived,) = await fedwire.wires(holder)
    fedwire.bank.engine.terms = replace(fedwire.bank.engine.terms, wire_fee_cents=15_00)
    wire_id, second = await _closed_after_a_wire(fedwire, holder)
    with pytest.raises(Refused, match="pocket is CLOSED"):
        await pay_back(fedwire.bank, arrived.wire_id)
    await fedwire.drop("no.xml", await fedwire.status(wire_id, "AC04"))
    assert (await fedwire.wire(holder, wire_id)).status == "REJECTED"
    (item,) = await fedwire.held()
    sent = await fedwire.wire(holder, wire_id)
    assert item.amount == sent.amount + 15_00
    await fedwire.prove()
    await fedwire.assign(item.item_id, second)
    assert not await fedwire.held()
    back = await fedwire.bank.pool.fetch(
        "SELECT type, direction, amount, details->>'credit_type' AS credit FROM transaction"
        " WHERE pocket_id = $1 ORDER BY entry_no",
        second.pocket_id,
    )
    assert [tuple(row) for row in back] == [
        ("WIRE", "CREDIT", sent.amount, None),
        ("CREDIT", "CREDIT", 15_00, "ADJUSTMENT"),
    ]
    explained = await clearing_report(fedwire.bank)
    assert [explained.unexplained(rail) for rail in ("ACH", "WIRE")] == [0, 0]
    await fedwire.prove()
