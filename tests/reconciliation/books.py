"""The mornings of a bank: statements arrive, and operators look at the breaks."""

import shutil
from datetime import date

from tests.trading.desk_by_hand import OLGA, OTTO, DeskByHand

from billfold.dual_control.decisions import confirm
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.files.store import list_files
from billfold.platform.dates import ET, et_instant
from billfold.platform.money import format_price
from billfold.reconciliation import store
from billfold.reconciliation.worker import StatementFiles, reconcile
from billfold.sandbox.control.clock_stepper import ClockStepper

MONDAY, TUESDAY, WEDNESDAY, THURSDAY = (date(2025, 6, day) for day in (2, 3, 4, 5))


class Mornings:
    """Imports statements as an operator and lists breaks."""

    def __init__(self, bank, *, is_simulated=False):
        self.bank, self.count, self.is_simulated = bank, 0, is_simulated
        self.bank_id = bank_customer_id(bank.seed)

    async def buy(self, holder, cents=100_000_00):
        """Let a customer's money arrive by wire and be invested, and two dealers fill the order; return the fills."""
        await holder.deposit(cents)
        desk = DeskByHand(self.bank)
        [order] = await desk.send_orders()
        half = order.units // 3
        fills = [
            await desk.fill_of(order, units=half),
            await desk.fill_of(order, units=order.units - half, dealer="jpm"),
        ]
        await desk.book(*fills)
        return fills

    async def close(self, day):
        """Let the day end, and show the morning after it."""
        await self._be_at(day, 23)

    async def _be_at(self, day, hour):
        """Set the clock; what the sandbox itself states on the way is taken away."""
        await ClockStepper(self.bank).set_to(et_instant(day, hour))
        if not self.is_simulated:
            shutil.rmtree(self.bank.settings.rails_dir / "statement", ignore_errors=True)

    async def arrive(self, content, name=None, by=OLGA):
        """Import a file; return its state and report."""
        self.count += 1
        return await StatementFiles().import_file(self.bank, name or f"file-{self.count}", content, by=by)

    async def breaks(self, status="OPEN"):
        """Return the breaks: their causes with both sides."""
        return [(str(each.cause), each.stated, each.booked) for each in await self.rows(status)]

    async def rows(self, status="OPEN"):
        return await store.BREAKS.rows(
            self.bank.pool, self.bank_id, status, None, None, None, descending=False, limit=100
        )

    async def look(self, hour=8, *, after):
        """Look for missing statements at an hour of the business day after a day."""
        day = self.bank.calendars.next_settlement_day(after)
        await self._be_at(day, hour)
        return await reconcile(self.bank)

    async def files(self):
        return await list_files(self.bank.pool, rail="STATEMENT")

    async def confirm(self, proposal):
        return (await confirm(self.bank, proposal.proposal_id, by=OTTO)).outcome


def recap_line(fill, **changes):
    """Return a fill as its dealer recaps it."""
    cells = {
        "dealer": fill.dealer,
        "reference": fill.reference,
        "side": fill.side,
        "cusip": fill.cusip,
        "face": fill.units * 100,
        "price": format_price(fill.price_micros),
        "money": f"{fill.money / 100:.2f}",
        "traded_at": f"{fill.executed_at.astimezone(ET):%Y-%m-%d %H:%M}",
        "settles_on": fill.settles_on,
    }
    return tuple((cells | changes).values())
