"""Movements of the trading desk: orders, executions, and the day end of a bank with dealers."""

from datetime import date
from uuid import UUID

from tests.architecture.stage import LATER

from billfold.payments.clearing.rules import CloseBankDay, SettlementBlock
from billfold.platform.dates import et_instant
from billfold.platform.money import cents_for
from billfold.trading.commands import (
    AmendExecution,
    ChangeOrder,
    NewExecution,
    PauseDesk,
    PlaceOrders,
    RecordExecutions,
    RecordQuote,
    execution_id_of,
    order_id_of,
)
from billfold.trading.settlement.commands import ConfirmSettlement, DecideDifference, ReportInstruction
from billfold.trading.settlement.types import InstructionStatus, instruction_id_of, redemption_id_of
from billfold.trading.types import Decision, OrderCause, OrderStatus, Side

BILL = "912797PT8"
MARK, PRICE = 99_720_000, 99_700_000


class Desk:
    """The bank's own customer on a stage, with one dealer."""

    def __init__(self, stage, units):
        self.stage, self.units, self.house = stage, units, stage.house()
        self.order_id = order_id_of(1, 0)

    def do(self, command, *references, **fields):
        return self.stage.submit(command, self.house, references=references, **fields)

    def place(self):
        decision = Decision(BILL, Side.BUY, self.units, MARK, MARK, OrderCause.INTERVAL)
        self.do(PlaceOrders, self.house, round_no=1, decisions=(decision,), settles_on=date(2025, 5, 30))

    def send(self):
        self.do(ChangeOrder, self.order_id, order_id=self.order_id, status=OrderStatus.SENT)

    def fill(self):
        new = NewExecution(
            order_id=self.order_id,
            dealer="citadel",
            reference="T-1",
            side=Side.BUY,
            cusip=BILL,
            units=self.units,
            price_micros=PRICE,
            money=cents_for(self.units, PRICE),
            settles_on=date(2025, 5, 30),
            executed_at=self.stage.bank.now,
        )
        self.do(RecordExecutions, self.order_id, new.execution_id, executions=(new,))

    def amend(self, of, reference, *, is_bust):
        self.do(
            AmendExecution,
            *(self.order_id, execution_id_of("citadel", of), execution_id_of("citadel", reference)),
            execution_id=execution_id_of("citadel", of),
            order_id=self.order_id,
            is_bust=is_bust,
            reference=reference,
            units=self.units - 1,
            price_micros=PRICE,
            money=cents_for(self.units - 1, PRICE),
            settles_on=date(2025, 5, 30),
        )

    def report(self, status):
        of = instruction_id_of(execution_id_of("citadel", "T-1"))
        self.do(ReportInstruction, of, instruction_id=of, attempt=1, status=status)

    def settle(self, units, *, off=0):
        of = instruction_id_of(execution_id_of("citadel", "T-1"))
        what = {"cusip": BILL, "units": units, "money": cents_for(units, PRICE) + off, "settled_on": date(2025, 5, 30)}
        return self.do(ConfirmSettlement, of, instruction_id=of, attempt=1, **what)

    def close(self, day, *blocks):
        self.do(CloseBankDay, redemption_id_of(BILL), day=day, blocks=blocks, from_inventory=True)


def play_desk(new_stage):
    stage = new_stage(dealers=("citadel",))
    desk = Desk(stage, 2506)
    with stage.row("Orders to dealers placed"):
        desk.place()
    with stage.row("Order to a dealer changed"):
        desk.send()
    with stage.row("Quote of a dealer kept"):
        desk.do(RecordQuote, desk.order_id, order_id=desk.order_id, dealer="citadel", price_micros=PRICE, units=1)
    with stage.row("Trading desk paused"):
        desk.do(PauseDesk, desk.house, paused=True, reason="a test")
    with stage.row("Purchase executed by a dealer"):
        desk.fill()
    with stage.row("Execution corrected"):
        desk.amend("T-1", "C-1", is_bust=False)
    with stage.row("Execution busted"):
        desk.amend("C-1", "B-1", is_bust=True)
    _play_closes(new_stage)


def _play_closes(new_stage):
    thursday, friday, matured = date(2025, 5, 29), date(2025, 5, 30), date(2025, 6, 24)
    for title, side, cents in (
        ("Purchases met from the inventory", "BUY", 2506 * 9975 + 1050),
        ("Sales met from the inventory", "SELL", 2506 * 9975 + 1050),
    ):
        stage = new_stage(dealers=("citadel",))
        desk = Desk(stage, 2506)
        block = SettlementBlock(friday, BILL, 99_754_125, side=side, units=2506, customers_cents=cents)
        with stage.row(title):
            desk.close(thursday, block)
    _play_settlement(new_stage, thursday, matured)


def _play_settlement(new_stage, thursday, matured):
    stage = new_stage(dealers=("citadel",))
    desk = Desk(stage, 2506)
    for step in (desk.place, desk.send, desk.fill):
        step()
    desk.close(thursday)
    stage.bank.now = et_instant(matured, 18)
    with stage.row("Instruction to the custodian changed"):
        desk.report(InstructionStatus.SENT)
    with stage.row("Trade settled with a dealer"):
        desk.settle(1)
    with stage.row("Confirmation that differs held"):
        held = desk.settle(2504, off=1)["difference_id"]
    with stage.row("Confirmation that differs accepted"):
        desk.do(
            *(DecideDifference, instruction_id_of(execution_id_of("citadel", "T-1")), UUID(held)),
            difference_id=UUID(held),
            accept=True,
        )
    desk.settle(1)
    day = stage.bank.books[desk.house].business_date
    while day < matured:
        desk.close(day)
        day = stage.bank.books[desk.house].business_date
    with stage.row("Maturities of a bank with dealers"):
        desk.close(day, SettlementBlock(day, BILL, 100_000_000, side="MATURITY", units=1, customers_cents=100_00))
    with stage.row("Redemption confirmed"):
        paid = redemption_id_of(BILL)
        what = {"cusip": BILL, "units": -2507, "money": -2507 * 100_00, "settled_on": matured}
        desk.do(ConfirmSettlement, paid, instruction_id=paid, attempt=1, custody_units=2507, **what)
    assert day >= LATER
