"""Refunds: what the processor pays later than bills settle is invested at once and does not leave before."""

from datetime import timedelta

from tests.properties.test_state_machine import CALENDARS, Books

from billfold.treasury.rules.withdraw import payable_cents

MILLION = 1_000_000_00


def test_a_refund_that_settles_in_two_days_is_invested_at_once_and_held_until_then():
    books = Books()
    books.found(strategies=[(4, 4)] * 4, dollars=[1_000] * 4)
    customer, pocket_id, _ = books.at(0)
    pocket = books.bank.books[customer].pockets[pocket_id]
    books.refund(place=0, amount=MILLION)
    assert pocket.cash.balance < 100_00
    assert pocket.held_cents(books.bank.now, CALENDARS) == MILLION
    assert 0 < payable_cents(pocket, books.bank._moment()) < 1_000_00
    books.bank.advance(books.bank.now + timedelta(days=2))
    assert payable_cents(pocket, books.bank._moment()) > MILLION
