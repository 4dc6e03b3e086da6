"""The bank settles bills by block, and what came in by a rail and what went out by it, each in full."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.fixtures.teller import Customers

from billfold.bills.types import BillSettlement
from billfold.ledger.book.postings import EventEntry, JournalEntry, Posting
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import ScheduledJob
from billfold.payments.clearing.rules import (
    ClearingTotals,
    CloseBankDay,
    MovedPocket,
    RailSettlement,
    RailTotals,
    ReportMoves,
    SettlementBlock,
)
from billfold.platform.errors import InvariantError
from billfold.platform.money import cents_for


def test_bills_and_rails_are_settled_gross_and_days_are_closed_in_order():
    customers = Customers()
    house = bank_customer_id(customers.bank.seed)
    customers.enrol(house, "Bank", role="house")
    book, tables = customers.bank.books[house], customers.bank.tables
    day = book.business_date
    before = day - timedelta(1)
    blocks = (
        SettlementBlock(day, "A", 99_500_000, "BUY", 2, customers_cents=199_03),
        SettlementBlock(before, "C", 100_000_000, "MATURITY", 1, customers_cents=100_00),
        SettlementBlock(day, "B", 99_500_000, "SELL", 1, customers_cents=99_49),
    )
    fields = {"blocks": blocks, "clearings": (RailTotals(day, "WIRE", 500, outflow=300),)}
    done = customers.submit(CloseBankDay, house, day=day, apart_since=before, **fields)
    assert done == {"settled": 3, "cleared": 1, "apart_since": before}
    names = {account.no: kind.removesuffix("USD") for kind, account in book.house.items()}
    assert [(names[p.debit], names[p.credit], p.amount) for p in tables[Posting]] == [
        ("reserve", "treasury", 100_00),
        ("treasuryC", "custodianC", 1),
        ("street", "reserve", 199_00),
        ("street", "rounding", 3),
        ("custodianA", "streetA", 2),
        ("reserve", "street", 99_50),
        ("street", "rounding", 1),
        ("streetB", "custodianB", 1),
        ("reserve", "rail:wire", 500),
        ("rail:wire", "reserve", 300),
    ]
    assert [row.settles_on for row in tables[JournalEntry]] == [before, day, day]
    assert [(row.cusip, row.block_cents) for row in tables[BillSettlement]] == [
        ("C", 100_00),
        ("A", 199_00),
        ("B", 99_50),
    ]
    (row,) = tables[RailSettlement]
    assert (row.inflow, row.outflow, row.closed_on) == (500, 300, day)
    assert [(job.kind, job.customer_id) for job in tables[ScheduledJob]] == [("daily-root", None)]
    assert book.business_date == customers.bank.calendars.next_settlement_day(day) > day
    for closed in (day, book.business_date + timedelta(1)):
        with pytest.raises(InvariantError):
            customers.submit(CloseBankDay, house, day=closed, **fields)
    quiet = {"blocks": (), "clearings": (RailTotals(day, "ACH", 0, outflow=0),)}
    assert customers.submit(CloseBankDay, house, day=book.business_date, **quiet) == {"settled": 0, "cleared": 1}
    assert len(tables[JournalEntry]) == 3, "an entry without postings is dropped"
    customers.submit(ReportMoves, house, day=day, pockets=(MovedPocket(UUID(int=1), before),))
    assert [event.kind for event in tables[EventEntry]] == ["settlements.moved"]
    left = ClearingTotals("ACH", day, payments=2, inflow=5, outflow=4, settled_in=2, settled_out=3)
    assert (left.unsettled_in, left.unsettled_out) == (3, 1)


def test_purchases_are_met_from_the_inventory_which_is_valued_and_maturities_by_the_custodian():
    customers = Customers(dealers=("jpm",))
    house, market = bank_customer_id(customers.bank.seed), customers.bank.market
    customers.enrol(house, "Bank", role="house")
    book, tables = customers.bank.books[house], customers.bank.tables
    day = book.business_date
    bill, matured = market.on_the_run(4, day), market.on_the_run(13, day)
    blocks = (
        SettlementBlock(day, bill.cusip, 99_500_000, "BUY", 2, customers_cents=199_03),
        SettlementBlock(day, matured.cusip, 100_000_000, "MATURITY", 1, customers_cents=100_00),
    )
    customers.submit(CloseBankDay, house, day=day, blocks=blocks, from_inventory=True)
    shown = {"USD": "", bill.cusip: "A", matured.cusip: "C"}
    names = {each.no: each.kind + shown[each.asset] for each in book.house.values()}
    worth = cents_for(2, market.mark(bill, customers.bank.calendars.closes_at(day)))
    assert [(names[p.debit], names[p.credit], p.amount) for p in tables[Posting]] == [
        ("street", "inventory", 199_00),
        ("street", "rounding", 3),
        ("inventoryA", "streetA", 2),
        ("redemptions", "treasury", 100_00),
        ("treasuryC", "redemptionsC", 1),
        ("trading_gains", "inventory", worth - 199_00),
    ]
    assert [row.from_inventory for row in tables[BillSettlement]] == [True, False]
    assert [row.kind for row in tables[JournalEntry]] == ["settlement", "trading_result"]
