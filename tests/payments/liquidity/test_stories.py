"""Wires wait for funds of the bank below its floor, and leave when money comes or two people let them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.support.fedwire import Fedwire, link, send

from billfold.dual_control.decisions import confirm
from billfold.identity.operators import Operator
from billfold.monitoring.health import check_bank
from billfold.payments.liquidity.overview import propose_release, read_overview
from billfold.platform.errors import Refused

OLGA, OTTO = Operator.of_command_line("olga"), Operator.of_command_line("otto")
QUEUED = "SELECT count(*) FROM event WHERE kind = 'transfers.wire.out.queued'"


@pytest.fixture
async def fedwire(bank):
    bank.settings = replace(bank.settings, reserve_floor_cents=100_000_00)
    return Fedwire(bank)


async def twelve(bank, new_holder):
    """Twelve customers with $10,000 each, and a wire of $5,000 of each."""
    holders = [await new_holder() for _ in range(12)]
    for each in holders:
        await each.deposit(10_000_00)
        each.counterparty_id = await link(bank, each.customer_id)
        each.wire_id = (await send(each, 5_000_00))["wire_id"]
    return holders


async def states(fedwire, holders):
    rows = [await fedwire.wire(each, each.wire_id) for each in holders]
    return [(row.status, row.reason) for row in rows]


async def test_twelve_wires_wait_below_the_floor_and_leave_when_money_comes(bank, fedwire, new_holder):
    holders = await twelve(bank, new_holder)
    await fedwire.room.sender.send(bank)
    gone, waits = ("PROCESSING", None), ("PENDING", "WAITING_FOR_FUNDS")
    assert await states(fedwire, holders) == [gone] * 4 + [waits] * 8
    overview = await read_overview(bank)
    assert (overview.reserve, overview.available, len(overview.waiting)) == (100_000_00, 0, 8)
    async with bank.pool.acquire() as conn:
        checks = {each.what: each for each in await check_bank(conn, bank.settings, bank.market)}
    assert "8 wires of $40,000.00 wait" in checks["liquidity"].found
    told = await bank.pool.fetchval(QUEUED)
    await fedwire.room.sender.send(bank)
    assert told == await bank.pool.fetchval(QUEUED) >= 8, "once for each"
    await fedwire.prove()
    await holders[0].deposit(15_000_00)
    await fedwire.clock.advance(timedelta(minutes=5))
    assert [each[1] for each in await states(fedwire, holders)].count("WAITING_FOR_FUNDS") == 5
    await holders[0].deposit(25_000_00)
    await fedwire.clock.advance(timedelta(minutes=5))
    assert waits not in await states(fedwire, holders)
    await fedwire.prove()


async def test_two_people_release_a_wire_below_the_floor(bank, fedwire, new_holder):
    holders = await twelve(bank, new_holder)
    await fedwire.room.sender.send(bank)
    last = holders[-1]
    made = await propose_release(bank, (await fedwire.wire(last, last.wire_id)).wire_id, reason="Line drawn", by=OLGA)
    with pytest.raises(Refused, match="another operator"):
        await confirm(bank, made.proposal_id, by=OLGA)
    await confirm(bank, made.proposal_id, by=OTTO)
    await fedwire.clock.advance(timedelta(0))
    assert (await states(fedwire, [last]))[0][0] in {"PROCESSING", "COMPLETED"}
    assert (await states(fedwire, [holders[-2]])) == [("PENDING", "WAITING_FOR_FUNDS")]
    with pytest.raises(Refused, match="does not wait"):
        await propose_release(bank, (await fedwire.wire(last, last.wire_id)).wire_id, reason="Again", by=OLGA)
    await fedwire.prove()


async def test_no_wire_waits_without_a_floor_and_the_line_of_credit_counts(bank, fedwire, new_holder):
    bank.settings = replace(bank.settings, credit_line_cents=60_000_00)
    holders = await twelve(bank, new_holder)
    await fedwire.room.sender.send(bank)
    assert {each[0] for each in await states(fedwire, holders)} == {"PROCESSING"}
    bank.settings = replace(bank.settings, reserve_floor_cents=None)
    poor = await new_holder()
    await poor.deposit(99_000_00)
    poor.counterparty_id = await link(bank, poor.customer_id)
    poor.wire_id = (await send(poor, 90_000_00))["wire_id"]
    await fedwire.room.sender.send(bank)
    assert await states(fedwire, [poor]) == [("PROCESSING", None)]
