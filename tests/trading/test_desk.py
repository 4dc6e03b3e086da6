"""The desk on a real database: customers trade, people cover, days close, and the bank verifies."""

from datetime import date
from typing import Any

import pytest
from tests.support.whole_bank import expect_clean
from tests.trading.desk_by_hand import OLGA, OTTO

from billfold.dual_control.decisions import confirm
from billfold.platform.dates import et_instant
from billfold.platform.errors import Refused
from billfold.platform.money import cents_for
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.trading.commands import execution_id_of
from billfold.trading.decisions import (
    Amendment,
    change_order,
    pause,
    propose_amendment,
    propose_executions,
    record_quote,
)
from billfold.trading.overview import read_overview
from billfold.trading.store import list_results
from billfold.trading.types import OrderStatus
from billfold.verify.runner import verify_bank

MONDAY, TUESDAY, WEDNESDAY, THURSDAY = (date(2025, 6, day) for day in range(2, 6))
_HELD = """
SELECT kind, asset, sum(credits - debits)::bigint AS balance FROM account
 WHERE kind LIKE 'dealer:%' OR kind IN ('inventory', 'trading_gains', 'reserve', 'custodian') GROUP BY 1, 2
"""
_EVENTS = "SELECT kind FROM event WHERE customer_id = $1 AND kind NOT LIKE 'settlement.%' ORDER BY event_no"
_AUDIT = "SELECT action FROM audit_entry WHERE customer_id = $1 AND outcome = 'SUCCESS' ORDER BY entry_no"


async def held(bank):
    return {(kind, asset): balance for kind, asset, balance in await bank.pool.fetch(_HELD) if balance}


async def findings(bank):
    """Verify the bank; return the tables and messages of its findings."""
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    return [(each.table, each.message) for each in report.findings]


@pytest.fixture
async def short_of_100_bills(bank, desk, new_holder):
    """Return the order of Monday of which 100 bills were not filled, its execution and its dealer's money."""
    anna = await new_holder()
    await anna.deposit(100_000_00)
    [order] = await desk.send_orders()
    assert (order.status, order.filled_units) == ("SENT", 0)
    first = await desk.fill_of(order, units=order.units - 100, off=-5_000)
    await desk.book(first)
    return order, first


async def test_exposure_is_shown_by_settlement_date_with_what_covers_it(bank, desk, short_of_100_bills):
    order, first = short_of_100_bills
    assert (await desk.order(order.order_id)).status == "PARTIALLY_FILLED"
    assert (await held(bank))["dealer:citadel", "USD"] == first.money
    [line] = (await read_overview(bank)).lines
    assert (line.exposure.units, line.uncovered) == (100, 0), "the order is live"
    assert line.exposure.dates == [(TUESDAY, order.units, order.units - 100)]


async def test_a_close_posts_the_result_and_names_what_is_not_covered(bank, desk, short_of_100_bills):
    order, first = short_of_100_bills
    await ClockStepper(bank).set_to(et_instant(MONDAY, 17))
    balances = await held(bank)
    assert balances["inventory", order.cusip] == -100
    [result] = await list_results(bank.pool, desk.bank_id, MONDAY)
    assert result.total == balances["trading_gains", "USD"]
    assert result.dealers == -first.money
    mark = bank.market.closing_mark(order.cusip, MONDAY)
    assert balances["inventory", "USD"] == cents_for(100, mark)
    assert result.customers == first.money + balances["inventory", "USD"] + result.total
    [(table, message)] = await findings(bank)
    assert table == "daily_root_refusal"
    assert f"the custodian holds 0, {order.units - 100} are to be received" in message


async def test_a_rest_is_covered_the_next_day_and_settles_at_the_executed_money(bank, desk, short_of_100_bills):
    order, first = short_of_100_bills
    await ClockStepper(bank).set_to(et_instant(TUESDAY, 9))
    [again] = await desk.send_orders()
    assert (again.units, again.side, again.settles_on) == (100, "BUY", WEDNESDAY)
    assert (await desk.order(order.order_id)).status == "EXPIRED"
    second = await desk.fill_of(again, dealer="jpm")
    await desk.book(second)
    before = (await held(bank)).get(("reserve", "USD"), 0)
    await ClockStepper(bank).set_to(et_instant(WEDNESDAY, 17))
    balances = await held(bank)
    assert [key for key in balances if key[0].startswith("dealer:") or key[0] == "inventory"] == []
    assert balances["custodian", order.cusip] == -order.units
    assert balances["reserve", "USD"] - before == first.money + second.money
    await expect_clean(bank)
    events = [row["kind"] for row in await bank.pool.fetch(_EVENTS, desk.bank_id)]
    assert events == [
        *("order.new", "order.sent", "execution.fill", "order.partially_filled"),
        *("order.expired", "order.new", "order.sent", "execution.fill", "order.filled"),
    ]


@pytest.fixture
async def filled_by_two(bank, desk, new_holder):
    """Return an order that two dealers filled on Monday, and the fills, on Tuesday morning."""
    anna = await new_holder()
    await anna.deposit(100_000_00)
    [order] = await desk.send_orders()
    half = order.units // 2
    fills = [await desk.fill_of(order, units=half), await desk.fill_of(order, units=order.units - half, dealer="jpm")]
    await desk.book(*fills)
    assert (await desk.order(order.order_id)).status == "FILLED"
    await ClockStepper(bank).set_to(et_instant(TUESDAY, 9))
    return order, fills


async def test_a_bust_the_next_morning_takes_the_execution_back(bank, desk, filled_by_two):
    order, fills = filled_by_two
    bust: dict[str, Any] = {"reference": "B-1", "values": None, "reason": "busted", "by": OLGA}
    await desk.confirm(await propose_amendment(bank, fills[0].execution_id, **bust))
    after = await desk.order(order.order_id)
    assert (after.status, after.filled_units) == ("EXPIRED", fills[1].units)
    assert ("dealer:citadel", "USD") not in await held(bank)
    with pytest.raises(Refused, match=r"corrected or busted"):
        await propose_amendment(bank, fills[0].execution_id, **bust | {"reference": "B-2"})
    assert [each for each in await findings(bank) if each[0] != "daily_root_refusal"] == []
    [again] = await desk.send_orders()
    assert again.units == fills[0].units


async def test_a_correction_replaces_units_and_money_and_a_bust_after_settlement_is_settled_back(
    bank, desk, filled_by_two
):
    order, fills = filled_by_two
    named: dict[str, Any] = {"reference": "C-1", "reason": "one less", "by": OLGA}
    wrong = Amendment(fills[1].units - 1, fills[1].price_micros, 0, fills[1].settles_on)
    with pytest.raises(Refused, match=r"must be positive"):
        await propose_amendment(bank, fills[1].execution_id, values=wrong, **named)
    right = wrong._replace(money=cents_for(wrong.units, wrong.price_micros))
    await desk.confirm(await propose_amendment(bank, fills[1].execution_id, values=right, **named))
    assert (await held(bank))["dealer:jpm", "USD"] == right.money
    await ClockStepper(bank).set_to(et_instant(WEDNESDAY, 9))
    assert ("dealer:jpm", "USD") not in await held(bank)
    bust: dict[str, Any] = {"reference": "B-2", "values": None, "reason": "after settlement", "by": OLGA}
    await desk.confirm(await propose_amendment(bank, execution_id_of("jpm", "C-1"), **bust))
    await ClockStepper(bank).set_to(et_instant(THURSDAY, 17))
    balances = await held(bank)
    assert balances["inventory", order.cusip] == fills[0].units - order.units
    assert balances["custodian", order.cusip] == -fills[0].units, "the bills went back"
    assert [each for each in await findings(bank) if each[0] != "daily_root_refusal"] == []


async def test_executions_need_two_people_and_are_booked_once(bank, desk, new_holder):
    anna = await new_holder()
    await anna.deposit(100_000_00)
    [order] = await desk.send_orders()
    good, far = await desk.fill_of(order, units=100), await desk.fill_of(order, units=50, off=600_000)
    odd = [
        (await desk.fill_of(order, units=order.units), "are open"),
        (await desk.fill_of(order, dealer="nobody", units=1), "No dealer is named nobody"),
        (await desk.fill_of(order, units=10, money=1), "units times price"),
        (await desk.fill_of(order, units=10, side="SELL"), "It says SELL"),
        (await desk.fill_of(order, units=10, settles_on=date(2025, 6, 7)), "cannot settle on"),
        (await desk.fill_of(order, units=10, order_id=desk.bank_id), "no order"),
        (good, "proposed already"),
    ]
    made = await propose_executions(bank, [good, *(each for each, _ in odd), far], source="blotter", by=OLGA)
    assert made.proposal is not None
    assert "PRICE" in made.proposal.words
    for (_, reason), refused in zip(odd, made.refused, strict=True):
        assert reason in refused.reason
    with pytest.raises(Refused, match=r"another operator confirms"):
        await confirm(bank, made.proposal.proposal_id, by=OLGA)
    again = await propose_executions(bank, [good], source="again", by=OTTO)
    assert (again.proposal, again.refused[0].reason) == (None, "citadel T-1 is proposed already.")
    outcome = await desk.confirm(made.proposal)
    assert len(outcome["executions"]) == 2
    again = await propose_executions(bank, [good, far], source="again", by=OTTO)
    assert all("is booked already" in each.reason for each in again.refused)
    assert (await desk.order(order.order_id)).filled_units == 150
    await expect_clean(bank)


async def test_an_unknown_order_counts_in_the_worse_direction_and_calls_a_person(bank, desk, new_holder):
    anna = await new_holder()
    await anna.deposit(100_000_00)
    [order] = await desk.send_orders()
    await change_order(bank, order.order_id, OrderStatus.UNKNOWN, reason="the line dropped", by=OLGA)
    [unknown] = await desk.send_orders()
    assert unknown.order_id == order.order_id, "nothing is ordered twice"
    overview = await read_overview(bank)
    assert [line.uncovered for line in overview.lines] == [order.units], "it may not have been filled"
    assert overview.unknown == [unknown]
    await desk.book(await desk.fill_of(unknown, units=10))
    await change_order(bank, order.order_id, OrderStatus.CANCELLED, reason="the dealer says so", by=OLGA)
    with pytest.raises(Refused, match=r"it cannot become WORKING|filled in part"):
        await change_order(bank, order.order_id, OrderStatus.WORKING, reason="x", by=OLGA)
    late = await desk.fill_of(order, units=5)
    made = await propose_executions(bank, [late], source="fill after we cancelled", by=OLGA)
    assert made.proposal is not None
    assert "AFTER_END" in made.proposal.words
    await desk.confirm(made.proposal)
    after = await desk.order(order.order_id)
    assert (after.status, after.filled_units) == ("CANCELLED", 15)
    await expect_clean(bank)


async def test_a_paused_desk_places_nothing_and_quotes_are_kept(bank, desk, new_holder):
    anna = await new_holder()
    await anna.deposit(100_000_00)
    await pause(bank, paused=True, reason="dealers do not answer", by=OLGA)
    with pytest.raises(Refused, match=r"paused: dealers do not answer"):
        await desk.send_orders()
    assert (await read_overview(bank)).state == "paused: dealers do not answer"
    await pause(bank, paused=False, reason="they do again", by=OTTO)
    [order] = await desk.send_orders()
    for dealer, off in (("citadel", 1_000), ("jpm", 0)):
        price = order.mark_micros + off
        await record_quote(bank, order.order_id, dealer=dealer, price_micros=price, units=order.units, by=OLGA)
    taken = await desk.fill_of(order, off=1_000)
    made = await propose_executions(bank, [taken], source="by phone", by=OLGA)
    assert made.proposal is not None
    assert "BEST_QUOTE" in made.proposal.words
    actions = [row["action"] for row in await bank.pool.fetch(_AUDIT, desk.bank_id)]
    assert actions[1:] == [
        *("trading_desk.paused", "trading_desk.resumed", "trading_desk.orders_placed", "order.sent"),
        *("order.quoted", "order.quoted", "movement.proposed"),
    ]
    await expect_clean(bank)
