"""Days that the operator declares closed, or open again, while the bank runs."""

from datetime import date

from billfold.bills.store import CalendarOverride, load_calendars, remove_override, save_override
from billfold.ledger.types import Origin
from billfold.payments.clearing.worker import MovedSettlements
from billfold.treasury.market_log import market_change


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
