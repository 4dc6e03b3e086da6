"""Settlements on a day that is declared closed move to the next open day, and customers are notified."""

import copy
from datetime import date, timedelta

import msgspec
from tests.support import payees
from tests.support.closures import Closures
from tests.support.whole_bank import engine_beside, expect_clean

from billfold.payments.clearing.worker import MovedSettlements

TUESDAY, WEDNESDAY, THURSDAY = date(2025, 6, 3), date(2025, 6, 4), date(2025, 6, 5)
MATURITY, FEE_DAY = date(2025, 6, 24), date(2025, 7, 1)
"""When bills of 4 weeks that are bought on Monday 2 June mature, and when the fee of June is charged."""


async def test_a_trade_settles_on_the_next_open_day_after_a_declared_closure(closures):
    desk = closures.desk
    pocket = await desk.funded(10_000_00)  # Monday, to settle on Tuesday
    value = await desk.value(pocket)
    assert await closures.declare(TUESDAY) == 1
    assert await closures.told() == [(TUESDAY, WEDNESDAY)]
    assert await desk.value(pocket) == value
    await desk.until("2025-06-03T20:00:00-04:00")
    assert await closures.trades(pocket) == [("BOOKED", None)]
    assert await closures.trades(pocket, settlement_date_from=str(TUESDAY), settlement_date_to=str(TUESDAY)) == []
    assert len(await closures.trades(pocket, settlement_date_from=str(WEDNESDAY))) == 1
    assert await closures.bank.pool.fetchval("SELECT count(*) FROM settlement") == 0
    await expect_clean(closures.bank)
    await desk.until("2025-06-04T20:00:00-04:00")
    assert await closures.trades(pocket) == [("SETTLED", str(WEDNESDAY))]
    assert await closures.bank.pool.fetchval("SELECT count(*) FROM settlement") == 1
    await expect_clean(closures.bank)


async def test_customers_are_notified_once_of_every_settlement_date_change(closures):
    await closures.desk.funded(10_000_00)
    assert await closures.declare(TUESDAY) == 1
    assert await closures.worker.report(closures.bank) == 0
    assert await MovedSettlements().report(closures.bank) == 0  # another process
    assert await closures.declare(WEDNESDAY) == 1
    assert await closures.declare(TUESDAY, withdrawn=True) == 1
    assert await closures.declare(TUESDAY) == 1
    assert await closures.told() == [(TUESDAY, WEDNESDAY), (TUESDAY, THURSDAY), (TUESDAY, TUESDAY), (TUESDAY, THURSDAY)]


async def test_a_day_declared_closed_after_its_first_trades_settles_nothing_that_day(closures):
    desk = closures.desk
    pocket = await desk.funded(10_000_00)
    await desk.until("2025-06-03T10:00:00-04:00")
    other = await desk.pocket(pocket.customer, name="Other")
    await desk.wire(other, 2_000_00)
    assert await closures.trades(pocket) == [("SETTLED", str(TUESDAY))]
    assert await closures.declare(TUESDAY) == 1
    assert await closures.trades(pocket) == [("BOOKED", None)]
    await desk.until("2025-06-03T18:00:00-04:00")
    assert await closures.bank.pool.fetchval("SELECT count(*) FROM settlement") == 0
    await desk.until("2025-06-04T18:00:00-04:00")
    assert await closures.trades(pocket) == [("SETTLED", str(WEDNESDAY))]
    assert await closures.trades(other) == [("SETTLED", str(WEDNESDAY))]
    await expect_clean(closures.bank)


async def test_payment_settlement_moves_when_the_fed_closes_but_not_when_only_the_market_does(closures):
    desk = closures.desk
    pocket = await desk.pocket()
    await desk.ach(pocket, 1_000_00)  # final on Wednesday
    await closures.declare(WEDNESDAY, fed="open")
    path = f"{pocket.path}transactions/"
    await desk.until("2025-06-04T09:00:00-04:00")
    assert (await desk.get(path))["items"][0]["time_settled"] == "2025-06-04T12:30:00Z"
    await closures.declare(WEDNESDAY)
    assert (await desk.get(path))["items"][0]["status"] == "BOOKED"
    await desk.until("2025-06-05T09:00:00-04:00")
    assert (await desk.get(path))["items"][0]["time_settled"] == "2025-06-05T12:30:00Z"
    await expect_clean(closures.bank)


async def test_a_failed_closure_notification_does_not_block_other_customers(closures, monkeypatch):
    desk = closures.desk
    pockets = [await desk.funded(10_000_00), await desk.funded(10_000_00)]
    failing, submit_all = pockets[0].key[0], closures.bank.engine.submit_all

    async def fail(commands):
        answers = await submit_all([each for each in commands if each.customers[0] != failing])
        rest = iter(answers)
        return [ValueError("odd") if each.customers[0] == failing else next(rest) for each in commands]

    with monkeypatch.context() as patched:
        patched.setattr(closures.bank.engine, "submit_all", fail)
        assert await closures.declare(TUESDAY) == 1
    assert await closures.bank.pool.fetchval("SELECT count(*) FROM failed_work") == 1
    await closures.bank.pool.execute("UPDATE failed_work SET again_at = now() - interval '1 minute'")
    assert await closures.worker.report(closures.bank) == 1
    assert len(await closures.told()) == 2
    assert await closures.bank.pool.fetchval("SELECT count(*) FROM failed_work") == 0
    assert TUESDAY + timedelta(days=1) == WEDNESDAY


async def test_a_wire_scheduled_for_a_declared_closure_is_sent_on_the_next_open_day(partner_desks):
    desk = await partner_desks("acme", features=("wires",))
    closures = Closures(desk)
    pocket = await desk.funded(50_000_00)
    await desk.until("2025-06-03T18:30:00-04:00")
    linked = await desk.post(f"/api/v2/customers/{pocket.customer}/counterparties/", payees.wire())
    approved = {"counterparty_id": linked["id"], "status": "APPROVED"}
    await desk.ask("POST", "/api/v1/sandbox/counterparty-verification/", approved, status=202)
    body = {"counterparty_id": linked["id"], "amount_usdc": 10_000_00}
    wire = await desk.post(f"/api/v1/service-accounts/{pocket.id}/wires/", body)
    await closures.declare(WEDNESDAY)
    path = f"{pocket.path}transactions/"
    await desk.until("2025-06-04T18:00:00-04:00")
    assert (await desk.get(f"/api/v1/wires/{wire['id']}/"))["status"] == "PENDING"
    (paid,) = [
        each for each in (await desk.get(path))["items"] if each["direction"] == "DEBIT" and each["type"] == "WIRE"
    ]
    assert (paid["status"], paid["time_settled"]) == ("BOOKED", None)
    await desk.until("2025-06-05T18:00:00-04:00")
    assert (await desk.get(f"/api/v1/wires/{wire['id']}/"))["status"] == "COMPLETED"
    (paid,) = [
        each for each in (await desk.get(path))["items"] if each["direction"] == "DEBIT" and each["type"] == "WIRE"
    ]
    assert (paid["status"], paid["time_settled"]) == ("SETTLED", "2025-06-05T12:00:00Z")
    await expect_clean(closures.bank)


async def test_a_hold_ending_on_a_declared_closure_ends_on_the_next_open_day(closures):
    desk, engine = closures.desk, closures.bank.engine
    engine.terms = msgspec.structs.replace(engine.terms, ach_credit_hold_days=2)
    pocket = await desk.pocket()
    other = await desk.pocket(pocket.customer)
    await desk.ach(pocket, 1_000_00)  # held until Wednesday
    await closures.declare(WEDNESDAY)
    await desk.until("2025-06-04T12:00:00-04:00")
    assert (await desk.transfer(pocket, other, 900_00, status="REJECTED"))["reason"] == "INSUFFICIENT_FUNDS"
    await desk.until("2025-06-05T08:29:00-04:00")
    await desk.transfer(pocket, other, 900_00, status="REJECTED")
    await desk.until("2025-06-05T08:30:00-04:00")
    await desk.transfer(pocket, other, 900_00)
    await expect_clean(closures.bank)


async def test_redemptions_and_fees_due_on_declared_closures_are_booked_on_the_next_open_day(closures):
    desk = closures.desk
    pocket = await desk.funded(10_000_00)
    await closures.declare(MATURITY)
    await closures.declare(FEE_DAY)

    async def done():
        trades = (await desk.get(f"{pocket.path}trades/"))["items"]
        payments = (await desk.get(f"{pocket.path}transactions/"))["items"]
        redeemed = [each["trade_datetime"] for each in trades if each["activity"] == "MATURITY"]
        return redeemed, [each["time_booked"] for each in payments if each["type"] == "FEE"]

    await desk.until("2025-06-24T20:00:00-04:00")
    assert await done() == ([], [])
    await desk.until("2025-07-01T20:00:00-04:00")
    assert await done() == (["2025-06-25T12:30:00Z"], [])
    await desk.until("2025-07-02T20:00:00-04:00")
    assert await done() == (["2025-06-25T12:30:00Z"], ["2025-07-02T12:00:00Z"])
    await expect_clean(closures.bank)


async def test_a_redemption_is_booked_on_its_day_when_the_closure_is_withdrawn(closures):
    desk = closures.desk
    pocket = await desk.funded(10_000_00)
    await desk.until("2025-06-23T10:00:00-04:00")
    await closures.declare(MATURITY)
    await desk.wire(pocket, 1_00)
    await desk.until("2025-06-23T18:00:00-04:00")  # the customer's next work is due on Wednesday from now on
    await closures.declare(MATURITY, withdrawn=True)
    await desk.until("2025-06-24T09:00:00-04:00")
    trades = (await desk.get(f"{pocket.path}trades/"))["items"]
    redeemed = [each["trade_datetime"] for each in trades if each["activity"] == "MATURITY"]
    assert redeemed == ["2025-06-24T12:30:00Z"]
    await expect_clean(closures.bank)


async def test_a_process_with_an_outdated_calendar_settles_nothing_on_a_declared_closure(closures):
    """For the seconds in which one of them may not have read the new ones yet, and for however long."""
    desk, bank = closures.desk, closures.bank
    pocket = await desk.funded(10_000_00)
    await desk.until("2025-06-03T10:00:00-04:00")
    before, newer = copy.copy(bank.market), bank.engine
    await closures.declare(TUESDAY)
    older = engine_beside(bank, market=before)
    await older.start()
    try:
        for engine in (older, newer, older):
            bank.engine = engine
            await desk.wire(pocket, 1_000_00)
    finally:
        bank.engine = newer
        await older.stop()
    newer.books.clear()
    await desk.until("2025-06-03T20:00:00-04:00")
    assert await bank.pool.fetchval("SELECT count(*) FROM settlement") == 0
    await desk.until("2025-06-05T20:00:00-04:00")
    assert {status for status, _ in await closures.trades(pocket)} == {"SETTLED"}
    assert await bank.pool.fetchval("SELECT min(closed_on) FROM settlement") == WEDNESDAY
    await expect_clean(bank)
