"""Incoming payments: credited to the account they name, else returned."""

import json

import msgspec
from tests.payments.wires.iso20022.wires import a_credit_transfer
from tests.support.whole_bank import SEED

from billfold.accounts.portals.commands import UpdatePortal
from billfold.payments.deposits.inbound import NO_ACCOUNT, receive_payment
from billfold.payments.deposits.rules import IncomingWire
from billfold.platform import ids
from billfold.sandbox.rails.ach_network import ach_credit


def a_wire(**fields):
    message = a_credit_transfer(amount=fields["amount"])
    name, number = message.debtor.name, message.instruction_id
    return IncomingWire(wire_id=ids.new(), reference_number=number or "", sender_name=name, message=message, **fields)


async def address(bank, holder):
    row = await bank.pool.fetchrow(
        "SELECT routing_number, account_number FROM portal WHERE portal_id = $1", holder.portal_id
    )
    return dict(row)


async def activity(bank, holder):
    row = await bank.pool.fetchrow("SELECT * FROM transaction WHERE customer_id = $1", holder.customer_id)
    return row, json.loads(row["details"])


async def test_an_incoming_wire_to_a_known_account_is_booked_with_its_details(bank, new_holder):
    holder = await new_holder()
    wire = a_wire(**await address(bank, holder), amount=250_000_00)
    received = await receive_payment(bank, wire)
    assert received["status"] == "COMPLETED"
    row, details = await activity(bank, holder)
    assert (row["type"], row["direction"], row["amount"]) == ("WIRE", "CREDIT", 250_000_00)
    assert str(row["transaction_id"]) == received["transaction_id"]
    assert row["pocket_id"] == holder.pocket_id
    assert details == {
        "wire_type": "PAYMENT",
        "wire_id": str(wire.wire_id),
        "original_wire_id": None,
        "reference_number": wire.reference_number,
        "counterparty_name": wire.sender_name,
        "counterparty_id": None,
        "portal_id": str(holder.portal_id),
    }


async def test_an_incoming_ach_credit_to_a_known_account_is_booked_with_its_details(bank, new_holder):
    holder = await new_holder()
    ach = ach_credit(SEED, ids.new(), await address(bank, holder), amount=15_000_00, company_name="FakeCompany")
    assert (await receive_payment(bank, ach))["status"] == "COMPLETED"
    row, details = await activity(bank, holder)
    assert (row["type"], row["amount"]) == ("ACH", 15_000_00)
    assert details["ach_direction"] == "RECEIVING"
    assert details["company_name"] == "FakeCompany"
    assert details["trace_number"] == ach.trace_number
    assert details["ach_id"] == str(ach.ach_id)
    assert len(ach.trace_number) == 15
    assert len(ach.company_entry_description) <= 10


async def test_an_incoming_payment_delivered_twice_is_booked_once(bank, new_holder):
    holder = await new_holder()
    wire = a_wire(**await address(bank, holder), amount=100_00)
    first = await receive_payment(bank, wire)
    assert await receive_payment(bank, wire) == first
    assert await bank.pool.fetchval("SELECT count(*) FROM transaction") == 1


async def test_an_incoming_payment_to_an_unknown_account_is_returned(bank):
    wire = a_wire(routing_number="061199992", account_number="812345678901", amount=1)
    received = await receive_payment(bank, wire)
    assert received == {"status": "REJECTED", "reason": NO_ACCOUNT}
    assert await bank.pool.fetchval("SELECT count(*) FROM journal_entry") == 0


async def test_an_incoming_payment_to_a_closed_portal_is_returned_with_an_event(bank, new_holder):
    holder = await new_holder()
    await bank.engine.submit(
        UpdatePortal(
            caller="test", key=ids.new(), customers=(holder.customer_id,), portal_id=holder.portal_id, close=True
        )
    )
    wire = a_wire(**await address(bank, holder), amount=5_00)
    received = await receive_payment(bank, wire)
    assert (received["status"], received["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    kinds = await bank.pool.fetch("SELECT kind FROM event WHERE kind NOT LIKE '%.created' ORDER BY event_no")
    assert [row["kind"] for row in kinds] == ["portal.updated", "transfers.wire.in.rejected"]


def test_a_regenerated_sandbox_payment_is_identical():
    ach_id = ids.new()
    to = {"routing_number": "061199992", "account_number": "812345678901"}
    made, again, other = (
        ach_credit(SEED, each, to, amount=7, company_name="B") for each in (ach_id, ach_id, ids.new())
    )
    assert msgspec.json.encode(made) == msgspec.json.encode(again)
    assert made.trace_number != other.trace_number
