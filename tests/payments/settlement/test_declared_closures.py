"""What was to settle on a day that is declared closed settles on the next open day, and customers are told."""

from datetime import date, timedelta

import pytest
from tests.support import payees
from tests.support.whole_bank import expect_clean

from billfold.audit.types import Origin
from billfold.bills.market_log import market_change
from billfold.bills.store import CalendarOverride, load_calendars, remove_override, save_override
from billfold.payments.settlement.moves import MovedSettlements

TUESDAY, WEDNESDAY, THURSDAY = date(2025, 6, 3), date(2025, 6, 4), date(2025, 6, 5)


class Closures:
    """Declares days closed or open again, as the operator does, and lets the worker look."""

    def __init__(self, desk):
        self.desk, self.bank, self.worker = desk, desk.bank, MovedSettlements()

    async def declare(self, day, *, fed="closed", bond="closed", withdrawn=False):
        bank = self.bank
        async with bank.pool.acquire() as conn, conn.transaction():
            async with market_change(conn, bank.vault, Origin(kind="OPERATOR", name="test")):
                if withdrawn:
                    await remove_override(conn, day)
                else:
                    await save_override(conn, CalendarOverride(day, bond, None, fed, "Mourning"))
            bank.market.calendars = await load_calendars(conn)
        return await self.worker.report(bank)

    async def told(self):
        rows = await self.bank.pool.fetch(
            """SELECT payload->>'settlement_date' AS day, payload->>'moved_to' AS moved_to FROM event
                WHERE kind = 'settlements.moved' ORDER BY raised_at, event_no"""
        )
        return [(date.fromisoformat(row["day"]), date.fromisoformat(row["moved_to"])) for row in rows]

    async def trades(self, pocket, **filters):
        items = (await self.desk.get(f"{pocket.path}trades/", filters))["items"]
        return [(each["status"], each["settled_date"]) for each in items]


@pytest.fixture(autouse=True)
def calendars(bank):
    """The market outlives the bank of a test: its calendars are those of every test again."""
    usual = bank.market.calendars
    yield
    bank.market.calendars = usual


@pytest.fixture
async def closures(partner_desk):
    return Closures(partner_desk)


async def test_a_trade_settles_on_the_next_open_day_when_its_own_is_declared_closed(closures):
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


async def test_customers_learn_of_each_change_once_when_days_close_in_a_row_and_open_again(closures):
    await closures.desk.funded(10_000_00)
    assert await closures.declare(TUESDAY) == 1
    assert await closures.worker.report(closures.bank) == 0
    assert await MovedSettlements().report(closures.bank) == 0  # another process
    assert await closures.declare(WEDNESDAY) == 1
    assert await closures.declare(TUESDAY, withdrawn=True) == 1
    assert await closures.declare(TUESDAY) == 1
    assert await closures.told() == [
        (TUESDAY, WEDNESDAY),
        (TUESDAY, THURSDAY),
        (TUESDAY, TUESDAY),
        (TUESDAY, THURSDAY),
    ]


async def test_a_day_that_closes_after_its_first_trades_settles_nothing_that_day(closures):
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


async def test_payments_move_when_the_reserve_closes_and_not_when_the_market_alone_does(closures):
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


async def test_one_customer_who_cannot_be_told_stops_no_other(closures, monkeypatch):
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


async def test_a_wire_that_waits_for_a_day_that_is_declared_closed_leaves_on_the_next_open_one(partner_desks):
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
