"""The desk's books under any sequence of trades, orders, fills, corrections, busts and days: all is explained."""

from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.simulation.life import Life
from tests.support.whole_bank import Commands, opened
from tests.trading.memory_desk import DEALERS, MemoryDesk
from typing_extensions import override

from billfold.ledger.book.postings import TradeEntry
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import Refused
from billfold.platform.ids import command_id, derive
from billfold.platform.money import PRICE_PAR_MICROS, cents_for
from billfold.trading.commands import (
    AmendExecution,
    ChangeOrder,
    NewExecution,
    PlaceOrders,
    RecordExecutions,
    execution_id_of,
)
from billfold.trading.settlement.commands import DecideDifference, ReportInstruction
from billfold.trading.settlement.types import InstructionStatus
from billfold.trading.types import ALLOWED, Execution, InventoryPosition, OrderStatus, sign_of

CUSTOMER = derive(b"desk", command_id("desk", "customer"), 0)
SIGN = {"BUY": 1, "SELL": -1}
nth = st.integers(0, 1_000)


class DeskBooks(RuleBasedStateMachine, Commands):
    """A customer trades, the desk covers, and every cent and unit is explained after each step."""

    @initialize(weeks=st.sampled_from((4, 13, 26)))
    def found(self, weeks):
        self.bank, self.count, self.closed_on = MemoryDesk(), 0, None
        self.bank.submit(Life(self.bank, 0).found())
        self.enrol(CUSTOMER)
        self.place = opened(CUSTOMER, self.open_pocket(CUSTOMER, weeks=weeks, reinvest=None))
        self.receive_money(self.place, 400_000_00)

    @override
    def submit(self, kind, *customers, **fields):
        self.count += 1
        key = command_id("desk", str(self.count))
        return self.bank.submit(kind(caller="desk", key=key, customers=customers, **fields)).outcome

    def desk(self, command, *references, **fields):
        self.count += 1
        key, who = command_id("desk", str(self.count)), (self.bank.house,)
        return self.bank.submit(command(caller="desk", key=key, customers=who, references=references, **fields)).outcome

    @rule(cents=st.integers(100_00, 5_000_000_00))
    def customers_buy(self, cents):
        self.receive_money(self.place, cents)

    @rule(cents=st.integers(100_00, 3_000_000_00))
    def customers_sell(self, cents):
        book = self.bank.books[CUSTOMER]
        pocket = book.pockets[self.place.id]
        if pocket.lots:
            other = opened(CUSTOMER, self.open_pocket(CUSTOMER, weeks=13, reinvest=None))
            try:
                self.transfer(self.place, other, cents)
            except Refused:
                self.refused = True

    @rule(is_due=st.booleans())
    def place_a_round(self, is_due):
        decisions = self.bank.decisions(is_due=is_due)
        if decisions:
            round_no = getattr(self.bank.seen.of(self.bank.house).get(self.bank.house), "round_no", 0) + 1
            settles_on = self.bank._moment().settles_on
            self.desk(
                PlaceOrders, self.bank.house, round_no=round_no, decisions=tuple(decisions), settles_on=settles_on
            )
            again = self.bank.decisions(is_due=is_due)
            assert not again, "what was ordered counts as covered"
            for order in self.bank.orders(OrderStatus.NEW)[1:]:
                self.desk(ChangeOrder, order.order_id, order_id=order.order_id, status=OrderStatus.SENT)

    @precondition(lambda self: self.bank.orders())
    @rule(which=nth, status=st.sampled_from(OrderStatus))
    def an_order_changes(self, which, status):
        order = self.bank.orders()[which % len(self.bank.orders())]
        by_execution = {OrderStatus.PARTIALLY_FILLED, OrderStatus.FILLED}
        allowed = status in ALLOWED[order.status] and status not in by_execution
        try:
            self.desk(ChangeOrder, order.order_id, order_id=order.order_id, status=status)
            assert allowed
        except Refused as refusal:
            assert refusal.code == "order-state"
            assert not allowed or order.filled_units

    @precondition(lambda self: self.bank.orders(*OrderStatus))
    @rule(which=nth, part=st.integers(1, 4), off=st.integers(-30_000, 30_000), dealer=st.sampled_from(DEALERS))
    def a_dealer_fills(self, which, part, off, dealer):
        orders = self.bank.orders(*OrderStatus)
        order = orders[which % len(orders)]
        units, price = max(1, order.open_units // part), order.mark_micros + off
        ctx = self.bank._moment()
        maturity = self.bank.market.bill(order.cusip).maturity
        new = NewExecution(
            order_id=order.order_id,
            dealer=dealer,
            reference=f"E{self.count}",
            side=order.side,
            cusip=order.cusip,
            units=units,
            price_micros=price,
            money=cents_for(units, price),
            settles_on=min(ctx.settles_on, maturity),
            executed_at=self.bank.now,
        )
        fits = order.status != OrderStatus.NEW and order.open_units and ctx.settles_on <= maturity
        try:
            self.desk(RecordExecutions, order.order_id, new.execution_id, executions=(new,))
            assert fits
            self.bank.effective[new.execution_id] = self.row(new.execution_id)
        except Refused as refusal:
            assert refusal.code == "execution-refused"
            assert not fits
        if fits:
            with pytest.raises(Refused, match=r"booked already|only"):
                self.desk(RecordExecutions, order.order_id, new.execution_id, executions=(new,))

    @precondition(lambda self: self.bank.effective)
    @rule(which=nth, is_bust=st.booleans(), less=st.integers(0, 50), off=st.integers(-99, 99))
    def a_dealer_amends(self, which, is_bust, less, off):
        old = sorted(self.bank.effective.values(), key=lambda each: each.reference)[which % len(self.bank.effective)]
        units, price = max(1, old.units - less), old.price_micros + off
        reference, new_id = f"A{self.count}", execution_id_of(old.dealer, f"A{self.count}")
        fields = {"units": units, "price_micros": price, "money": cents_for(units, price), "settles_on": old.settles_on}
        ids = (old.order_id, old.execution_id, new_id)
        names = {"execution_id": old.execution_id, "order_id": old.order_id, "reference": reference}
        self.desk(AmendExecution, *ids, is_bust=is_bust, **names, **fields)
        del self.bank.effective[old.execution_id]
        if not is_bust:
            self.bank.effective[new_id] = self.row(new_id)
        with pytest.raises(Refused, match="corrected or busted"):
            self.desk(AmendExecution, *ids, is_bust=is_bust, **names, **fields)

    def row(self, execution_id):
        return next(each for each in self.bank.tables[Execution] if each.execution_id == execution_id)

    @precondition(lambda self: self.bank.instructions())
    @rule(which=nth, status=st.sampled_from(InstructionStatus))
    def the_custodian_reports(self, which, status):
        row = self.bank.instructions()[which % len(self.bank.instructions())]
        fields = {"instruction_id": row.instruction_id, "attempt": row.attempt, "status": status}
        if status == InstructionStatus.SETTLED:
            return
        try:
            self.desk(ReportInstruction, row.instruction_id, **fields)
        except Refused as refusal:
            assert refusal.code == "settlement-state"

    @precondition(lambda self: self.bank.instructions())
    @rule(which=nth, part=st.integers(1, 3), off=st.sampled_from((0, 0, 1)), accept=st.booleans())
    def the_custodian_confirms_a_part(self, which, part, off, accept):
        row = self.bank.instructions()[which % len(self.bank.instructions())]
        units = row.open_units // part or row.open_units
        before, today = self.bank.totals.copy(), et_date(self.bank.now)
        outcome = self.bank.confirm(row, units, on=max(today, row.settles_on), off=off)
        assert bool(outcome["held"]) == bool(off or row.settles_on > today)
        if outcome["held"]:
            assert self.bank.totals == before
            difference_id = UUID(outcome["difference_id"])
            fields = {"difference_id": difference_id, "accept": accept}
            self.desk(DecideDifference, row.instruction_id, difference_id, **fields)
            self.bank.losses += off if accept else 0

    @rule(is_punctual=st.booleans())
    def the_custodian_is_late(self, is_punctual):
        self.bank.is_punctual = is_punctual

    @rule(days=st.sampled_from((0, 1, 1, 1, 3, 30)), hour=st.integers(9, 16))
    def time_passes(self, days, hour):
        before = self.bank.books[self.bank.house].business_date
        to = et_instant(et_date(self.bank.now) + timedelta(days=days), hour)
        self.bank.advance(max(to, self.bank.now))
        after = self.bank.books[self.bank.house].business_date
        if after != before:
            self.check_result()

    def check_result(self):
        """After a close the result is what customers paid less what dealers were paid, and the rest at the mark."""
        totals = self.bank.totals
        traded = sum(SIGN.get(row.activity, 0) * row.notional for row in self.bank.tables[TradeEntry])
        customers = traded - sum(self.unmet_cents())
        dealers = sum(sign_of(each.side) * each.money for each in self.bank.effective.values())
        redeemed = sum(cents_for(row.redeemed, PRICE_PAR_MICROS) for row in self.bank.tables[InventoryPosition])
        day = max((row.closed_on for row in self.bank.tables[InventoryPosition]), default=None)
        held = [row for row in self.bank.tables[InventoryPosition] if row.closed_on == day]
        is_flat = not any(total for (kind, asset), total in totals.items() if kind == "inventory" and asset != "USD")
        value = 0 if is_flat else sum(cents_for(row.units, row.mark_micros) for row in held)
        assert totals["inventory", "USD"] == -value
        result = totals["trading_gains", "USD"] + totals["rounding", "USD"]
        assert result == customers - dealers + redeemed + value - self.bank.losses

    def unmet_cents(self):
        for (block, what), count in self.bank.unsettled.items():
            if what == "cents" and block[3] in {"BUY", "SELL"}:
                yield count if block[3] == "BUY" else -count

    @invariant()
    def every_asset_sums_to_zero(self):
        sums: Counter[str] = Counter()
        for (_, asset), total in self.totals().items():
            sums[asset] += total
        assert not any(sums.values())

    @invariant()
    def inventory_is_what_dealers_sold_less_what_customers_bought(self):
        bought: Counter[str] = Counter()
        totals = self.totals()
        for each in self.effective():
            bought[each.cusip] += sign_of(each.side) * each.units
        for row in self.rows(TradeEntry):
            bought[row.cusip] -= SIGN.get(row.activity, 0) * row.units
        for row in self.rows(InventoryPosition):
            bought[row.cusip] -= row.redeemed
        for cusip in {asset for _, asset in totals} - {"USD"}:
            assert totals["inventory", cusip] - self.bank.unmet()[cusip] == bought[cusip], cusip
            at_dealers = sum(totals[f"dealer:{each}", cusip] for each in DEALERS)
            there = totals["street", cusip] + totals["treasury", cusip] + totals["inventory", cusip] + at_dealers
            there += totals["redemptions", cusip]
            assert -totals["custodian", cusip] == totals["lot", cusip] + there

    @invariant()
    def accounts_of_dealers_are_what_is_not_settled(self):
        totals = self.totals()
        held = {key: total for key, total in totals.items() if key[0].startswith("dealer:") and total}
        assert held == (self.bank.unsettled_with_dealers() if totals else {})

    @invariant()
    def open_instructions_are_what_is_in_transit(self):
        expected: Counter[tuple[str, str]] = Counter()
        for row in self.bank.all_instructions() if hasattr(self, "bank") else ():
            if not row.withdrawn:
                expected[row.counterparty, "USD"] += row.open_money
                expected[row.counterparty, row.cusip] -= row.open_units
        in_transit = {
            key: total
            for key, total in self.totals().items()
            if total and (key[0].startswith("dealer:") or key[0] == "redemptions")
        }
        assert in_transit == {key: count for key, count in expected.items() if count}

    @invariant()
    def orders_are_filled_by_their_executions(self):
        filled: Counter[UUID] = Counter()
        for each in self.effective():
            filled[each.order_id] += each.units
        for order in self.bank.orders(*OrderStatus) if hasattr(self, "bank") else ():
            assert order.filled_units == filled[order.order_id]
            assert (order.status == OrderStatus.FILLED) <= (order.filled_units == order.units)

    def totals(self):
        return self.bank.totals if hasattr(self, "bank") else Counter()

    def rows(self, kind):
        return self.bank.tables[kind] if hasattr(self, "bank") else ()

    def effective(self):
        return self.bank.effective.values() if hasattr(self, "bank") else ()


DeskBooks.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
test_desk_books_explain_every_cent_and_unit_after_any_sequence = DeskBooks.TestCase
