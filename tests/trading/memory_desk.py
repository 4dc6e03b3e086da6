"""A bank in memory that covers its trades with dealers."""

from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any

from tests.simulation.memory_bank import MemoryBank
from typing_extensions import override

from billfold.bills.rules.market import Market
from billfold.ledger.context import BankPolicy
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.clearing.rules import CloseBankDay, SettlementBlock
from billfold.platform.calendars import Calendars
from billfold.platform.ids import command_id
from billfold.trading.rules.policy import DeskLimits, Position, decide
from billfold.trading.rules.settlements import expected_money
from billfold.trading.settlement.commands import ConfirmSettlement, ReportInstruction
from billfold.trading.settlement.types import CLOSED, InstructionStatus, SettlementInstruction, redemption_id_of
from billfold.trading.types import LIVE, DealerSettlement, OrderStatus, ReferencedOrder, sign_of

CALENDARS = Calendars()
MARKET = Market.packaged(CALENDARS)
START = datetime(2025, 6, 2, 13, tzinfo=UTC)
DEALERS = ("citadel", "jpm")
LIMITS = DeskLimits(min_units=100, max_units=50_000, max_house_units=50, max_house_dv01=100_00, max_slippage_bps=5)
TERMS = BankPolicy(routing_number="091000019", dealers=DEALERS)


class MemoryDesk(MemoryBank):
    """Meets customers' trades from the inventory; `effective` are the executions that were not replaced."""

    def __init__(self, terms=TERMS):
        super().__init__(MARKET, CALENDARS, terms, seed=b"seed of the desk", now=START)
        self.effective, self.told, self.is_punctual, self.losses = {}, 0, True, 0
        self.house = bank_customer_id(self.seed)

    def orders(self, *statuses):
        """Return the orders in these states, or the live ones, oldest first."""
        found = [each.row for each in self.seen.of(self.house).values() if isinstance(each, ReferencedOrder)]
        return sorted(
            (each for each in found if each.status in (statuses or LIVE)),
            key=lambda each: (each.decided_at, each.order_id),
        )

    def positions(self):
        """Return what the policy sees, from the books."""
        unmet, ctx = self.unmet(), self._moment()
        orders = defaultdict(list)
        for order in self.orders():
            orders[order.cusip].append(order)
        held = {asset: total for (kind, asset), total in self.totals.items() if kind == "inventory" and asset != "USD"}
        for cusip in sorted(unmet.keys() | held.keys() | orders.keys()):
            bill = self.market.bill(cusip)
            if self.market.matures_at(bill) <= self.now:
                continue
            unknown = Counter({order.side: 0 for order in orders[cusip]})
            for order in orders[cusip]:
                unknown[order.side] += order.open_units * (order.status == OrderStatus.UNKNOWN)
            live = sum(sign_of(o.side) * o.open_units for o in orders[cusip] if o.status != OrderStatus.UNKNOWN)
            mark = self.market.mark(bill, self.now)
            yield Position(
                cusip, bill.maturity, mark, unmet[cusip], held.get(cusip, 0), live, unknown["BUY"], unknown["SELL"]
            )
        assert ctx.now == self.now

    def held(self):
        """Return the bills that may be redeemed."""
        return sorted({asset for _, asset in self.totals if asset != "USD"})

    def unmet(self):
        """Return the units that customers bought net and the bank has not met."""
        units: Counter[str] = Counter()
        for (block, what), count in self.unsettled.items():
            if what == "units" and block[3] != "MATURITY":
                units[block[1]] += count if block[3] == "BUY" else -count
        return units

    def decisions(self, *, is_due=False, limits=LIMITS):
        ctx = self._moment()
        return decide(self.positions(), limits, today=ctx.today, settles_on=ctx.settles_on, is_due=is_due)

    def all_instructions(self):
        """Return every instruction to the custodian, redemptions included."""
        return [each for each in self.seen.of(self.house).values() if isinstance(each, SettlementInstruction)]

    def instructions(self):
        """Return those that are open."""
        found = [each for each in self.all_instructions() if each.open_units and each.status not in CLOSED]
        return sorted(found, key=lambda each: (each.settles_on, each.instruction_id))

    def confirm(self, row, units, *, on, off=0):
        """Send an instruction and confirm units of it, at their money or off it; return the outcome."""
        if row.status == InstructionStatus.NEW:
            self._tell(ReportInstruction, row, status=InstructionStatus.SENT)
        what = {"cusip": row.cusip, "units": units, "money": expected_money(row, units) + off, "settled_on": on}
        return self._tell(ConfirmSettlement, row, **what, custody_units=abs(row.open_units)).outcome

    def _tell(self, command, row, **what):
        self.told += 1
        return self.submit(
            command(
                caller="custodian",
                key=command_id("told", str(self.told)),
                customers=(self.house,),
                references=(row.instruction_id,),
                instruction_id=row.instruction_id,
                attempt=row.attempt,
                **what,
            )
        )

    def unsettled_with_dealers(self):
        """Return the cents owed to dealers and the units to come, from executions and settlements alone."""
        owed: Counter[Any] = Counter()
        moved = [(sign_of(each.side), each) for each in self.effective.values()]
        for sign, row in [*moved, *((-1, row) for row in self.tables[DealerSettlement])]:
            owed[f"dealer:{row.dealer}", "USD"] += sign * row.money
            owed[f"dealer:{row.dealer}", row.cusip] -= sign * row.units
        return {key: count for key, count in owed.items() if count}

    @override
    def _close_bank_days(self):
        book = self.books.get(self.house)
        while book is not None and book.due_at is not None and book.due_at <= self.now:
            day = book.business_date
            self.submit(
                CloseBankDay(
                    caller="house",
                    key=command_id("house-day", day.isoformat()),
                    customers=(self.house,),
                    day=day,
                    blocks=self._blocks(day),
                    clearings=self.under_way.until(day, self.calendars.closes_at(day)),
                    from_inventory=bool(self.terms.dealers),
                    references=tuple(redemption_id_of(each) for each in self.held()),
                )
            )
            for row in self.instructions()[:: 2 - self.is_punctual]:
                if row.settles_on <= day:
                    self.confirm(row, row.open_units, on=day)

    @override
    def _blocks(self, day):
        keys = sorted({block for block, _ in self.unsettled if block[0] <= day or block[3] != "MATURITY"})
        return tuple(SettlementBlock(*key, self.unsettled[key, "units"], self.unsettled[key, "cents"]) for key in keys)
