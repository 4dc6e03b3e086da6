"""Bills move with their acquisition date and cost, and return unchanged when refused."""

from datetime import date, timedelta
from uuid import UUID

import msgspec
import pytest
from tests.fixtures.teller import Teller
from tests.treasury.rules.test_overdraft import give_credit, take_back

from billfold.accounts.pockets.commands import SetPocketState, UpdatePocket
from billfold.bills.rules import fees
from billfold.ledger.book.postings import JournalEntry, TradeEntry
from billfold.ledger.types import ScheduledJob
from billfold.payments.custody.rules import DeliverBills, EndDelivery, ReceiveBills
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.liquidate import liquidation_value
from billfold.treasury.rules.overdraft import overdraft_of

TRANSFER = UUID("7b111000-0000-4000-8000-000000000001")
MAY = date(2025, 5, 29)


class Holder(Teller):
    """A customer that also holds bills at another custodian."""

    def receive(self, pocket, cusip, units, transfer_id=TRANSFER, kind=ReceiveBills, **fields):
        fields |= {"transfer_id": transfer_id, "counterparty_name": "Elsewhere", "counterparty_account": "1"}
        return self.do(kind, pocket_id=pocket.pocket_id, cusip=cusip, units=units, **fields)

    def deliver(self, pocket, cusip, units):
        return self.receive(pocket, cusip, units, kind=DeliverBills)

    def end(self, reason=None):
        return self.do(EndDelivery, transfer_id=TRANSFER, reason=reason, references=(TRANSFER,))


@pytest.fixture
def holder():
    return Holder()


@pytest.fixture
def two_lots(holder):
    """Ten settled bills received from another custodian at a cost of $990.00, and ten bought on Monday."""
    pocket = holder.pocket()
    holder.deposit(pocket, 1_000_00)
    bill = pocket.lots[0].asset
    other = UUID("7b111000-0000-4000-8000-000000000002")
    holder.receive(pocket, bill, 10, other, acquired_on=MAY, cost_cents=990_00)
    holder.until(date(2025, 6, 4))
    return pocket, bill


def lots(pocket):
    return [(lot.acquired_on, lot.balance, lot.tax_basis) for lot in pocket.lots]


def test_a_received_lot_keeps_acquisition_date_and_cost(holder, two_lots):
    pocket, bill = two_lots
    assert lots(pocket) == [(MAY, 10, 990_00), (date(2025, 6, 2), 10, 997_54)]
    assert pocket.positions() == [(bill, 20)]
    assert holder.bank.totals["custodian", bill] == -10
    # It is worth what the market says, and earns nothing by coming.
    assert pocket.lots[0].earnings_basis == pocket.inflow - 1_000_00


def test_a_received_lot_of_unknown_cost_has_its_value_as_cost(holder):
    pocket = holder.pocket()
    bill = holder.bank.market.on_the_run(4, date(2025, 6, 2)).cusip
    assert holder.receive(pocket, bill, 3)["status"] == "COMPLETED"
    assert lots(pocket) == [(date(2025, 6, 2), 3, pocket.inflow)]


def test_bills_received_on_a_weekend_are_acquired_that_day(holder, two_lots):
    pocket, bill = two_lots
    saturday = date(2025, 6, 7)
    holder.until(saturday)
    holder.receive(pocket, bill, 3, UUID(int=6))
    assert lots(pocket)[-1][:2] == (saturday, 3)


def test_the_oldest_lots_are_delivered_first(holder, two_lots):
    pocket, bill = two_lots
    asked = holder.deliver(pocket, bill, 15)
    assert (asked["status"], asked["direction"]) == ("PENDING", "OUT")
    assert [(job.kind, job.object_id) for job in holder.bank.tables[ScheduledJob]] == [("custody.deliver", TRANSFER)]
    told = holder.bank.tables[TradeEntry][-2:]
    assert [(row.incoming, row.units, row.tax_basis) for row in told] == [(False, 10, 990_00), (False, 5, 498_77)]
    assert pocket.outflow == sum(row.notional for row in told) == asked["market_value"]
    assert pocket.realised == sum(row.notional - row.earnings_basis for row in told)
    assert lots(pocket) == [(date(2025, 6, 2), 5, 498_77)]
    assert holder.end()["status"] == "COMPLETED"
    assert holder.bank.totals["custodian", bill] == 5
    with pytest.raises(Refused, match="COMPLETED already"):
        holder.end()


def test_a_delivery_without_a_custodian_is_refused(holder, two_lots):
    pocket, bill = two_lots
    holder.bank.terms = msgspec.structs.replace(holder.bank.terms, delivers_bills=False)
    with pytest.raises(Refused, match="no custodian"):
        holder.deliver(pocket, bill, 15)
    assert sum(balance for _, balance, _ in lots(pocket)) == 20


def test_a_rejected_delivery_restores_every_lot(holder, two_lots):
    pocket, bill = two_lots
    before = lots(pocket)
    holder.deliver(pocket, bill, 15)
    holder.end("ACCOUNT_UNAVAILABLE")
    assert lots(pocket) == before
    reversing = [row for row in holder.bank.tables[JournalEntry] if row.reverses is not None]
    assert len(reversing) == 2


@pytest.mark.parametrize("units", [15, 20])
def test_bills_returned_after_maturity_are_redeemed(holder, two_lots, units):
    pocket, bill = two_lots
    holder.deliver(pocket, bill, units)
    due = holder.bank.market.bill(bill).maturity
    holder.until(due + timedelta(days=3))
    holder.end("ACCOUNT_UNAVAILABLE")
    holder.until(due + timedelta(days=4))
    redeemed = sum(
        row.units for row in holder.bank.tables[TradeEntry] if (row.activity, row.cusip) == ("MATURITY", bill)
    )
    assert redeemed == 20
    assert bill not in dict(pocket.positions())


def test_closing_a_pocket_with_bills_in_delivery_is_refused(holder, two_lots):
    pocket, bill = two_lots
    holder.move(pocket, holder.pocket(), None)
    empty = holder.pocket()
    holder.receive(empty, bill, 5, UUID(int=5))
    holder.until(date(2025, 6, 6))
    holder.deliver(empty, bill, 5)
    with pytest.raises(Refused, match="still pending"):
        holder.do(UpdatePocket, pocket_id=empty.pocket_id, close_for="not needed")
    holder.end()
    closed = holder.do(UpdatePocket, pocket_id=empty.pocket_id, close_for="not needed")
    assert closed["status"] == "CLOSED"


def test_only_held_bills_that_are_free_are_delivered(holder, two_lots):
    pocket, bill = two_lots
    with pytest.raises(Refused, match="holds 20 of"):
        holder.deliver(pocket, bill, 21)
    worth = liquidation_value(pocket, holder.bank._moment().same_day)
    pocket.liens.append((worth - 1_500_00, holder.bank.now + timedelta(days=9)))
    pocket.fee_accrued = fees.ACCRUED_UNITS_PER_CENT - 1  # nothing is due of it yet
    with pytest.raises(Refused, match="on hold or due"):
        holder.deliver(pocket, bill, 16)
    assert pocket.outflow == 0
    assert holder.deliver(pocket, bill, 15)["status"] == "PENDING"


def test_a_bill_that_matures_on_the_business_date_stays(holder, two_lots):
    pocket, bill = two_lots
    holder.until(holder.bank.market.bill(bill).maturity - timedelta(days=1), 18)
    with pytest.raises(Refused, match="matured on"):
        holder.deliver(pocket, bill, 1)


@pytest.mark.parametrize(("simulated", "age_max_days"), [(True, None), (False, 5), (True, 5)])
def test_simulated_bills_move_only_where_prices_are_simulated(holder, simulated, age_max_days):
    pocket, market = holder.pocket(), holder.bank.market
    day = date(2026, 9, 14) if simulated else date(2025, 6, 3)
    bill = market.on_the_run(52, day)
    assert bill.simulated == simulated
    holder.until(day)
    market.age_max_days = age_max_days
    if simulated and age_max_days:
        with pytest.raises(Refused, match="is a simulated bill"):
            holder.receive(pocket, bill.cusip, 1)
    else:
        assert (holder.receive(pocket, bill.cusip, 1)["status"], lots(pocket)[0][1]) == ("COMPLETED", 1)


def test_delivering_unsettled_bills_is_refused(holder):
    pocket = holder.pocket()
    holder.deposit(pocket, 1_000_00)
    with pytest.raises(Refused, match="settle on 2025-06-03"):
        holder.deliver(pocket, pocket.lots[0].asset, 1)


def test_a_frozen_pocket_receives_bills_but_does_not_deliver_them_and_a_closed_one_neither(holder, two_lots):
    pocket, bill = two_lots
    holder.do(SetPocketState, pocket_id=pocket.pocket_id, status="FROZEN")
    with pytest.raises(Refused) as refused:
        holder.deliver(pocket, bill, 1)
    assert refused.value.code == "pocket-frozen"
    assert holder.receive(pocket, bill, 1)["direction"] == "IN"
    pocket.status = "CLOSED"
    with pytest.raises(Refused, match="pocket-not-open"):
        holder.receive(pocket, bill, 1, UUID(int=7))


@pytest.mark.parametrize(
    ("cusip", "fields"),
    [
        ("912797XX0", {}),
        ("912797NN3", {}),
        (None, {"acquired_on": date(2025, 6, 3)}),
        (None, {"acquired_on": date(2020, 1, 2)}),
    ],
    ids=["no bill", "a matured bill", "bought tomorrow", "bought before it was issued"],
)
def test_an_invalid_security_transfer_is_refused(holder, cusip, fields):
    pocket = holder.pocket()
    cusip = cusip or holder.bank.market.on_the_run(4, date(2025, 6, 2)).cusip
    with pytest.raises(Refused) as refused:
        holder.receive(pocket, cusip, 1, **fields)
    assert refused.value.code == "bill-not-deliverable"


def test_ending_an_unknown_delivery_raises_not_found(holder):
    holder.pocket()
    with pytest.raises(NotFound):
        holder.end()


def test_received_bills_are_sold_to_repay_an_overdraft(holder):
    pocket = holder.pocket()
    given = give_credit(holder, pocket, 500_00)
    holder.move(pocket, holder.pocket(), 400_00)
    take_back(holder, given)
    owed = overdraft_of(pocket)
    holder.receive(pocket, holder.bank.market.on_the_run(4, date(2025, 6, 2)).cusip, 10)
    assert (owed > 0, overdraft_of(pocket)) == (True, 0)
