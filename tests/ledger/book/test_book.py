"""Operations of the book: an entry can be rolled back as a whole at any point."""

from datetime import date

import pytest
from tests.simulation.invariants import picture

from billfold.ledger.book.postings import JournalEntry, Posting
from billfold.platform.errors import InvariantError

DAY = date(2025, 6, 2)


def begin(teller, kind="test"):
    return teller.book.begin(kind, teller.bank._moment(), business_date=DAY, settles_on=DAY)


def test_undo_removes_an_unclosed_journal_entry(teller):
    pocket = teller.pocket()
    teller.deposit(pocket, 10_000_00)
    book = teller.book
    book.savepoint()
    before = picture(book)
    book.touch(pocket)
    begin(teller)
    book.post(book.internal_account("rail:wire"), pocket.bank, 5_00)
    book.undo()
    assert picture(book) == before
    # Nothing of it haunts the next journal.
    begin(teller)
    book.post(book.internal_account("rail:wire"), pocket.cash, 5_00)
    book.close()


def test_undo_restores_reservations_holds_and_both_bases(teller):
    pocket = teller.pocket()
    teller.deposit(pocket, 10_000_00)
    book, (lot,) = teller.book, pocket.lots
    for account, number in ((pocket.cash, 3), (lot, 5)):
        account.reserved = number
    pocket.liens = [(7_00, teller.bank.now)]
    book.savepoint()
    before = picture(book)
    book.touch(pocket)
    begin(teller)
    book.post(pocket.cash, book.internal_account("fees"), 1)
    book.post(lot, book.internal_account("street", lot.asset), 1)
    pocket.cash.reserved, lot.reserved = 4, 0
    pocket.liens.append((1_00, teller.bank.now))
    lot.tax_basis, lot.earnings_basis = 11, 13
    book.undo()
    assert picture(book) == before


def test_undo_restores_removed_lots_and_removes_new_ones(teller):
    pocket = teller.pocket()
    teller.deposit(pocket, 10_000_00)
    book, (lot,) = teller.book, pocket.lots
    book.savepoint()
    before = picture(book)
    book.touch(pocket)
    begin(teller)
    book.post(lot, book.internal_account("treasury", lot.asset), lot.balance)
    book.lot_out(pocket, lot, lot.tax_basis, earnings=lot.earnings_basis)
    book.retire_lots(pocket, [lot])
    made = book.lot(pocket, lot.asset, lot.acquired_on, maturity=lot.maturity)
    book.post(book.internal_account("street", lot.asset), made, 7)
    book.lot_in(pocket, made, 7, earnings=7)
    book.undo()
    assert picture(book) == before
    assert pocket.find_lot(lot.asset, lot.acquired_on) is lot
    assert made.no not in book.draft.touched_lots


def test_undo_reverts_repeated_puts_of_one_key(teller):
    book = teller.book
    book.savepoint()
    book.put(book.pending, "a", 1)
    book.put(book.pending, "a", 2)
    book.drop(book.pending, "a")
    book.undo()
    assert book.pending == {}


def test_undo_restores_dropped_values(teller):
    book = teller.book
    book.put(book.pending, "a", 1)
    book.savepoint()
    book.drop(book.pending, "a")
    assert book.pending == {}
    book.undo()
    assert book.pending == {"a": 1}


def test_undo_keeps_changes_made_before_the_savepoint(teller):
    pocket = teller.pocket()
    book = teller.book
    book.touch(pocket)
    begin(teller)
    book.post(book.internal_account("rail:wire"), pocket.cash, 5_00)
    book.close()
    book.savepoint()
    begin(teller)
    book.post(pocket.cash, book.internal_account("fees"), 1_00)
    book.undo()
    assert len(book.draft.rows_of(JournalEntry)) == len(book.draft.rows_of(Posting)) == 1
    assert pocket.cash.balance == 5_00


def test_closing_an_entry_with_a_nonzero_bank_account_is_refused(teller):
    pocket = teller.pocket()
    begin(teller)
    teller.book.post(teller.book.internal_account("rail:wire"), pocket.bank, 1)
    with pytest.raises(InvariantError):
        teller.book.close()


@pytest.mark.parametrize("amount", [0, -1])
def test_a_zero_or_negative_posting_is_refused(teller, amount):
    pocket = teller.pocket()
    begin(teller)
    with pytest.raises(InvariantError):
        teller.book.post(teller.book.internal_account("rail:wire"), pocket.bank, amount)


def test_an_entry_without_postings_is_dropped(teller):
    before = teller.book.entry_no
    begin(teller)
    teller.book.close()
    assert teller.book.entry_no == before
    assert not teller.book.draft.rows_of(JournalEntry)
