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
from billfold.trading.types import LIVE, DealerDelivery, DealerSettlement, OrderStatus, ReferencedOrder, sign_of

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
        self.effective = {}
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

    def deliveries(self, day):
        """Return what is due from dealers by a day, from the effective executions and what was settled."""
        due: Counter[Any] = Counter()
        for each in self.effective.values():
            key = each.settles_on, each.dealer, each.cusip
            due[key, "units"] += sign_of(each.side) * each.units
            due[key, "money"] += sign_of(each.side) * each.money
        for row in self.tables[DealerSettlement]:
            key = row.settles_on, row.dealer, row.cusip
            due[key, "units"] -= row.units
            due[key, "money"] -= row.money
        keys = sorted({key for (key, _), count in due.items() if count and key[0] <= day})
        return tuple(
            DealerDelivery(settles_on, dealer, cusip, due[key, "units"], due[key, "money"])
            for key in keys
            for settles_on, dealer, cusip in (key,)
        )

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
                    deliveries=self.deliveries(day),
                )
            )

    @override
    def _blocks(self, day):
        keys = sorted({block for block, _ in self.unsettled if block[0] <= day or block[3] != "MATURITY"})
        return tuple(SettlementBlock(*key, self.unsettled[key, "units"], self.unsettled[key, "cents"]) for key in keys)
