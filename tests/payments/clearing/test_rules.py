"""The bank settles what came in by a rail and what went out by it, each in full."""

import pytest
from tests.fixtures.teller import Customers

from billfold.ledger.book.postings import Posting
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.clearing.rules import CloseBankDay, RailSettlement, RailTotals
from billfold.platform.errors import InvariantError


def test_a_rail_is_settled_gross_and_days_are_closed_in_order():
    customers = Customers()
    house = bank_customer_id(customers.bank.seed)
    customers.enrol(house, "Bank", role="house")
    book = customers.bank.books[house]
    day = book.business_date
    totals = RailTotals(day, "WIRE", 500, outflow=300)
    fields = {"blocks": (), "clearings": (totals,)}
    customers.submit(CloseBankDay, house, day=day, **fields)
    rail, reserve = (book.internal_account(kind).no for kind in ("rail:wire", "reserve"))
    assert [(p.debit, p.credit, p.amount) for p in customers.bank.tables[Posting]] == [
        (reserve, rail, 500),
        (rail, reserve, 300),
    ]
    (row,) = customers.bank.tables[RailSettlement]
    assert (row.inflow, row.outflow, row.closed_on) == (500, 300, day)
    assert book.business_date == customers.bank.calendars.next_settlement_day(day) > day
    with pytest.raises(InvariantError):
        customers.submit(CloseBankDay, house, day=day, **fields)
