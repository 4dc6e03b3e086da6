"""The bank's end of day: customers' trades are settled once, and dealer clearing is explained."""

from datetime import date, timedelta

import pytest
from tests.support.databases import as_owner
from tests.support.whole_bank import expect_clean

from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.clearing.store import EVER, list_open
from billfold.payments.clearing.worker import close_bank_days, find_unsettled
from billfold.platform.clock import ClockState, wall_now
from billfold.platform.database.business_clock import write_clock
from billfold.platform.dates import et_instant
from billfold.sandbox.control.clock_stepper import ClockStepper

MONDAY, TUESDAY = date(2025, 6, 2), date(2025, 6, 3)
_STREET = """
SELECT asset, sum(moved)::bigint AS balance
  FROM (SELECT p.asset, CASE p.credit WHEN a.account_no THEN p.amount ELSE -p.amount END AS moved
          FROM account a JOIN posting p ON p.customer_id = a.customer_id AND a.account_no IN (p.debit, p.credit)
         WHERE a.kind = $1 AND p.phase = 0) m
 GROUP BY asset HAVING sum(moved) <> 0
"""


async def street(bank, kind="street"):
    return {row["asset"]: row["balance"] for row in await bank.pool.fetch(_STREET, kind)}


async def open_day(bank):
    return await bank.pool.fetchval(
        "SELECT business_date FROM ledger_head WHERE customer_id = $1", bank_customer_id(bank.seed)
    )


async def set_clock(bank, at):
    async with bank.pool.acquire() as conn:
        await write_clock(conn, ClockState(at, wall_now(), frozen=True))


@pytest.fixture
async def customers_with_trades(bank, new_holder):
    """Two holders who bought on Monday, one of whom paid the other on the same day."""
    first, second = await new_holder(), await new_holder(weeks=26)
    for cents in (250_000_00, 12_345_67, 99_999_99):
        await first.deposit(cents)
    await second.deposit(40_000_01)
    await first.transfer(first.place, second.place, 10_000_50)
    return first, second


async def test_a_bank_day_is_not_closed_early_or_while_a_customer_has_due_work(bank, customers_with_trades):
    assert await close_bank_days(bank, et_instant(MONDAY, 16, 59)) == 0
    await set_clock(bank, et_instant(MONDAY, 17))
    assert await close_bank_days(bank, et_instant(MONDAY, 17)) == 0
    assert await open_day(bank) == MONDAY


async def test_a_trade_that_missed_its_settlement_day_is_settled_with_the_next(bank, customers_with_trades):
    first, second = customers_with_trades
    await set_clock(bank, et_instant(MONDAY, 16))
    late = await first.transfer(first.place, second.place, 5_000_00)
    assert late["status"] == "COMPLETED"
    # As if the payment had committed after the gathering: its trade is taken for unsettled.
    await ClockStepper(bank).set_to(et_instant(TUESDAY, 17))
    await as_owner(
        bank,
        "UPDATE settlement SET units = units - 1, customers_cents = customers_cents - 1"
        " WHERE ctid = (SELECT ctid FROM settlement WHERE side = 'SELL' LIMIT 1)",
    )
    async with bank.pool.acquire() as conn:
        blocks = await find_unsettled(conn, TUESDAY + timedelta(days=1))
    assert [(b.side, b.units, b.customers_cents) for b in blocks if b.side == "SELL"] == [("SELL", 1, 1)]


async def test_closing_prices_are_stored_for_bills_on_the_run_or_held(bank, customers_with_trades):
    await ClockStepper(bank).set_to(et_instant(MONDAY, 17))
    rows = await bank.pool.fetch("SELECT * FROM closing_price WHERE business_date = $1", MONDAY)
    close = bank.calendars.closes_at(MONDAY)
    expected = {bank.market.on_the_run(weeks, MONDAY).cusip for weeks in (4, 13, 26, 52)}
    assert {row["cusip"] for row in rows} == expected
    for row in rows:
        bill = bank.market.bill(row["cusip"])
        assert row["mark_micros"] == bank.market.mark(bill, close)
        assert row["bid_micros"] == bank.market.t0_bid(bill, close)
        # The ask settles a day later and is one tick dearer.
        assert row["ask_micros"] == bank.market.ask(bill, close) > row["bid_micros"]


async def test_a_rail_account_holds_only_payments_in_transit(bank, customers_with_trades):
    """Wires settle on the day they come, an ACH credit of Monday on Wednesday at 08:30."""
    first, _ = customers_with_trades
    await first.deposit(5_000_00, rail="ACH")
    wired = -(await street(bank, "rail:wire"))["USD"]
    await ClockStepper(bank).set_to(et_instant(MONDAY, 17))
    assert await street(bank, "rail:wire") == {}
    assert await street(bank, "rail:ach") == {"USD": -5_000_00}
    async with bank.pool.acquire() as conn:
        (waiting,) = await list_open(
            conn, bank_customer_id(bank.seed), EVER._replace(first=TUESDAY, begins=et_instant(MONDAY, 17, 1))
        )
        assert (waiting.rail, waiting.amount) == ("ACH", 5_000_00)
        assert waiting.settles_at == et_instant(TUESDAY + timedelta(days=1), 8, 30)
    await ClockStepper(bank).set_to(et_instant(TUESDAY + timedelta(days=1), 17))
    assert await street(bank, "rail:ach") == {}
    rows = await bank.pool.fetch("SELECT rail, closed_on, inflow, outflow FROM clearing")
    assert [tuple(row) for row in rows] == [
        ("WIRE", MONDAY, wired, 0),
        ("ACH", TUESDAY + timedelta(days=1), 5_000_00, 0),
    ]


async def test_an_evening_wire_is_settled_with_the_next_day(bank, customers_with_trades):
    first, _ = customers_with_trades
    await ClockStepper(bank).set_to(et_instant(MONDAY, 17, 30))
    await first.deposit(1_000_00)
    await ClockStepper(bank).set_to(et_instant(TUESDAY, 16, 59))
    assert await street(bank, "rail:wire") == {"USD": -1_000_00}
    await ClockStepper(bank).set_to(et_instant(TUESDAY, 17))
    assert await street(bank, "rail:wire") == {}
    rows = await bank.pool.fetch("SELECT settles_on, closed_on FROM clearing ORDER BY entry_no")
    assert [tuple(row) for row in rows] == [(MONDAY, MONDAY), (MONDAY, TUESDAY)]
    await expect_clean(bank)
