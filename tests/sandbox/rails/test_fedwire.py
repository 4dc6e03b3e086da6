"""Wires over files: sent to the simulated Fedwire, and answered through the inbox."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.support.fedwire import link, send
from tests.support.whole_bank import expect_clean

from billfold.payments.files import store as file_store
from billfold.payments.wires import cases, store
from billfold.payments.wires.store import LISTS, get_wire
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.rails.fedwire import Returned, SimulatedFedwire

FIRST, SECOND = UUID(int=1), UUID(int=2)


@pytest.fixture
async def holder(bank, new_holder):
    holder = await new_holder()
    await holder.deposit(500_000_00)
    holder.counterparty_id = await link(bank, holder.customer_id)
    holder.room = SimulatedFedwire()
    holder.clock = ClockStepper(bank)
    return holder


async def sent(holder, cents):
    return UUID((await send(holder, cents))["wire_id"])


async def wire(holder, wire_id):
    return await get_wire(holder.bank.pool, holder.customer_id, wire_id)


async def all_wires(holder):
    return await LISTS["customer_id"].rows(holder.bank.pool, holder.customer_id, *(None,) * 9, limit=100)


async def test_wires_of_a_day_are_sent_in_one_file_and_settled_or_rejected(holder):
    good, bad = await sent(holder, 1_000_00), await sent(holder, 2_000_01)

    await holder.clock.advance(timedelta(minutes=1))

    settled, refused = await wire(holder, good), await wire(holder, bad)
    assert (settled.status, settled.imad[:16]) == ("COMPLETED", "20250602BLFDUS33")
    assert (refused.status, refused.reason) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    files = await file_store.list_files(holder.bank.pool, rail="WIRE")
    assert sorted((file.direction, file.state) for file in files) == [("IN", "PROCESSED"), ("OUT", "TRANSMITTED")]
    await expect_clean(holder.bank)


async def test_a_recalled_outgoing_wire_is_returned(holder):
    wire_id = await sent(holder, 1_000_00)
    await holder.clock.advance(timedelta(minutes=1))

    await cases.recall(holder.bank, wire_id, "DUPL")
    await holder.clock.advance(timedelta(minutes=1))

    back = (await all_wires(holder))[0]
    assert (back.wire_type, back.original_wire_id) == ("RETURN", wire_id)
    (case,) = await store.list_cases(holder.bank.pool)
    assert case.status == "ACCEPTED"
    await expect_clean(holder.bank)


async def test_a_return_requested_again_under_its_key_on_another_day_is_sent_once(holder):
    wire_id = await sent(holder, 1_000_00)
    await holder.clock.advance(timedelta(minutes=1))

    for key in (FIRST, FIRST, SECOND, FIRST):
        await holder.room.give_back(
            holder.bank, holder.customer_id, wire_id, "AC04", information="Closed", returned=Returned(300_00), key=key
        )
        await holder.clock.advance(timedelta(days=1))

    backs = [each for each in await all_wires(holder) if each.original_wire_id == wire_id]
    assert [each.amount for each in backs] == [300_00, 300_00]
    await expect_clean(holder.bank)
