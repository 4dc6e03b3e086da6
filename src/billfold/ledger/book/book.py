"""One customer's state in memory, as rules see it, and the rows that rules write.

A book is loaded by the engine, changed by rules through a few methods, and written by the
engine in one commit. It contains no SQL and no HTTP. `undo` restores
it after a refused command, so a refusal leaves no trace.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from datetime import date, datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

import msgspec

from billfold.ledger.book import postings
from billfold.ledger.book.draft import Account, Draft, Lot, PocketBook, Savepoint, selling_order
from billfold.ledger.context import Context
from billfold.ledger.customers import CustomerRow, CustomerStatus, DirectoryEntry
from billfold.ledger.types import AccountKind, JournalKind, PocketStatus, ScheduledJob
from billfold.platform.calendars import Calendars
from billfold.platform.database.rows import Row
from billfold.platform.errors import InvariantError

USD = "USD"

_BANK = AccountKind.BANK  # Python 3.11 is slow to find a member, and each posting asks twice
_NUMBERS = ("entry_no", "event_no", "account_no", "booked_at", "business_date", "account_status", "agreement_version")
"""The fields of a book itself that `undo` restores."""
_numbers: Callable[[Book], tuple[Any, ...]] = attrgetter(*_NUMBERS)


class Book(msgspec.Struct, eq=False, kw_only=True, gc=False):
    """One customer: head, pockets, accounts on the bank's side, and the draft of its changes.

    Rules read the attributes and change them only through the methods below. Money methods: `begin` a journal entry,
    `post` and `reserve` in it, `close` it (which asserts that every bank account it touched is at zero).
    `portals`, `counterparties` and `pending` are loaded for the commands that use them; `referenced` has what
    the commands of this batch reference, by its id. `draft` has this batch's changes to the book.

    The garbage collector does not track books: nothing in one refers to it.
    """

    customer_id: UUID
    version: int
    entry_no: int
    event_no: int
    account_no: int
    booked_at: datetime
    business_date: date
    chain: bytes
    account_status: CustomerStatus = CustomerStatus.OPEN
    name: str = ""
    partner_id: UUID | None = None
    role: str = "customer"
    agreement_version: str | None = None
    pockets: dict[UUID, PocketBook] = {}
    house: dict[str, Account] = {}
    """By kind and asset in one text: the garbage collector would track pairs."""
    due_at: datetime | None = None
    references_loaded: bool = False
    portals: dict[UUID, Any] = {}
    counterparties: dict[UUID, Any] = {}
    pending: dict[UUID, Any] = {}
    referenced: dict[UUID, Any] = {}
    draft: Draft = msgspec.field(default_factory=Draft)
    _savepoint: Savepoint | None = None
    _posting_no: int = 0
    _last_dates: tuple[datetime, date] | None = None

    def is_changed(self) -> bool:
        """Return whether there is anything to write."""
        return self.draft.is_changed()

    def reset_draft(self) -> None:
        """Start the next draft after this one has been written."""
        self.draft, self._savepoint = Draft(), None
        self.referenced = {}

    # -- undo ---------------------------------------------------------------------

    def savepoint(self) -> Savepoint | None:
        """Save this state; `undo` restores it. Return the savepoint before, for `undo_to`."""
        earlier, self._savepoint = self._savepoint, Savepoint(self.draft.lengths(), _numbers(self))
        return earlier

    def undo_to(self, earlier: Savepoint | None) -> None:
        """Undo, and make the savepoint before this one that of the next `undo`."""
        self.undo()
        self._savepoint = earlier

    def undo(self) -> None:
        """Restore everything to `savepoint`."""
        saved = self._savepoint
        assert saved is not None
        made = self.draft.rows_of(postings.AccountEntry)[saved.lengths.get(postings.AccountEntry, 0) :]
        self.draft.cut(saved.lengths)
        for name, value in zip(_NUMBERS, saved.numbers, strict=True):
            setattr(self, name, value)
        for account in made:
            if account.pocket_id is None:
                self.house.pop(account.kind + account.asset, None)
            else:  # lots are restored with their pocket
                self.draft.touched_lots.pop(account.account_no, None)
        saved.restore()
        self.draft.banks.clear()

    def put(self, mapping: dict[Any, Any], key: Any, value: Any) -> None:  # noqa: ANN401 - any noun
        """Set `mapping[key]` so that `undo` can restore it."""
        if self._savepoint is not None:
            self._savepoint.entries.append((mapping, key, mapping.get(key)))
        mapping[key] = value

    def drop(self, mapping: dict[Any, Any], key: Any) -> None:  # noqa: ANN401 - any noun
        """Remove `mapping[key]` so that `undo` can restore it."""
        if self._savepoint is not None:
            self._savepoint.entries.append((mapping, key, mapping.get(key)))
        mapping.pop(key, None)

    def alter(self, pocket: PocketBook) -> None:
        """Record that more than the counters of this pocket is about to change."""
        self.touch(pocket)
        self.draft.changed_pockets[pocket.pocket_id] = pocket

    def touch(self, pocket: PocketBook) -> None:
        """Record that money is about to move in this pocket."""
        if self._savepoint is not None:
            self._savepoint.keep_pocket(pocket)
        self.draft.touched_pockets[pocket.pocket_id] = pocket

    def set_account_status(self, status: CustomerStatus) -> None:
        """Change the customer's own status."""
        self.account_status = status
        self.change(CustomerRow, self.customer_id, account_status=status)

    # -- accounts --------------------------------------------------------------------

    def internal_account(self, kind: AccountKind, asset: str = USD) -> Account:
        """Return the customer's account on the bank's side, opened when first needed."""
        account = self.house.get(kind + asset)
        if account is None:
            account = self.house[kind + asset] = self._make(kind, None, asset)
        return account

    def open_accounts(self, pocket: PocketBook) -> None:
        """Open the bank and the cash account of a new pocket."""
        pocket.bank = self._make(AccountKind.BANK, pocket.pocket_id, USD)
        pocket.cash = self._make(AccountKind.CASH, pocket.pocket_id, USD)
        self.put(self.pockets, pocket.pocket_id, pocket)

    def owed_account(self, pocket: PocketBook) -> Account:
        """Return the overdraft account of the pocket, opened when first needed."""
        if pocket.owed is None:
            self.touch(pocket)
            pocket.owed = self._make(AccountKind.OWED, pocket.pocket_id, USD)
        return pocket.owed

    def lot(
        self, pocket: PocketBook, cusip: str, acquired_on: date, maturity: date, *, retired_no: int | None = None
    ) -> Lot:
        """Return the lot of this bill acquired on this day, created when first needed, or one retired with a number."""
        lot = pocket.find_lot(cusip, acquired_on)
        if lot is None:
            self.touch(pocket)
            number = retired_no or self._open_account(AccountKind.LOT, pocket.pocket_id, cusip, acquired_on=acquired_on)
            lot = Lot(number, AccountKind.LOT, cusip, acquired_on=acquired_on, maturity=maturity)
            pocket.emptied.append(lot)
        return lot

    def _make(self, kind: AccountKind, pocket_id: UUID | None, asset: str) -> Account:
        return Account(self._open_account(kind, pocket_id, asset), kind, asset)

    def _open_account(
        self, kind: AccountKind, pocket_id: UUID | None, asset: str, acquired_on: date | None = None
    ) -> int:
        self.account_no += 1
        self.draft.add(
            postings.AccountEntry(
                customer_id=self.customer_id,
                account_no=self.account_no,
                kind=kind,
                pocket_id=pocket_id,
                asset=asset,
                acquired_on=acquired_on,
            )
        )
        return self.account_no

    # -- journal entries ----------------------------------------------------------------------

    def begin(
        self,
        kind: JournalKind,
        ctx: Context,
        *,
        settles_on: date,
        business_date: date | None = None,
        reverses: int | None = None,
    ) -> int:
        """Open the next journal entry and return its number. Dates of a book never decrease."""
        now = max(ctx.now, self.booked_at)
        business_date = max(business_date or ctx.business_date, self.business_date)
        self._last_dates = self.booked_at, self.business_date
        self.booked_at, self.business_date = now, business_date
        self.entry_no += 1
        self._posting_no = 0
        self.draft.add(
            postings.JournalEntry(
                customer_id=self.customer_id,
                entry_no=self.entry_no,
                kind=kind,
                command_id=ctx.command_id,
                booked_at=now,
                business_date=business_date,
                effective_date=business_date,
                settles_on=settles_on,
                reverses=reverses,
            )
        )
        return self.entry_no

    def post(self, debit: Account, credit: Account, amount: int) -> int:
        """Move `amount` of one asset from `debit` to `credit`; return the posting's number."""
        if amount <= 0 or debit.asset != credit.asset:
            msg = f"posting of {amount} {debit.asset} to {credit.asset}"
            raise InvariantError(msg)
        saved, draft = self._savepoint, self.draft
        if saved is not None:
            for account in (debit, credit):
                if account.no not in saved.accounts:
                    saved.keep_account(account)
        debit.balance -= amount
        credit.balance += amount
        if debit.kind == _BANK:
            draft.banks[debit.no] = debit
        if credit.kind == _BANK:
            draft.banks[credit.no] = credit
        return self._add_posting(debit, credit, amount)

    def reserve(self, debit: Account, credit: Account, amount: int, *, phase: int = postings.RESERVED) -> int:
        """Reserve `amount` of `debit` for `credit`, or release it (RELEASED); return the posting's number."""
        reserved = debit.reserved + (amount if phase == postings.RESERVED else -amount)
        if amount <= 0 or not 0 <= reserved <= debit.balance:
            raise InvariantError(f"reservation of {reserved} of {debit.balance} {debit.asset}")
        if self._savepoint is not None and debit.no not in self._savepoint.accounts:
            self._savepoint.keep_account(debit)
        debit.reserved = reserved
        return self._add_posting(debit, credit, amount, phase=phase)

    def _add_posting(self, debit: Account, credit: Account, amount: int, phase: int = 0) -> int:
        self._posting_no += 1
        self.draft.add(
            postings.Posting(
                customer_id=self.customer_id,
                entry_no=self.entry_no,
                posting_no=self._posting_no,
                debit=debit.no,
                credit=credit.no,
                asset=debit.asset,
                amount=amount,
                phase=phase,
            )
        )
        return self._posting_no

    def close(self) -> None:
        """Close the journal entry: every bank account it touched is at zero again. One without postings is dropped."""
        for bank in self.draft.banks.values():
            if bank.balance:
                raise InvariantError(f"bank account {bank.no} holds {bank.balance} cents")
        self.draft.banks.clear()
        if self._posting_no == 0:
            self.draft.drop_last(postings.JournalEntry)
            self.entry_no -= 1
            assert self._last_dates is not None
            self.booked_at, self.business_date = self._last_dates

    # -- lots --------------------------------------------------------------------------

    def lot_in(self, pocket: PocketBook, lot: Lot, tax: int, earnings: int) -> None:
        """Add the bases of bills that were posted into `lot` and keep the selling order."""
        lot.tax_basis += tax
        lot.earnings_basis += earnings
        self.draft.touched_lots[lot.no] = lot
        if lot not in pocket.lots:
            pocket.emptied.remove(lot)
            insort(pocket.lots, lot, key=selling_order)

    def lot_out(self, pocket: PocketBook, lot: Lot, tax: int, earnings: int) -> None:
        """Subtract the bases of bills that were posted out of `lot`."""
        lot.tax_basis -= tax
        lot.earnings_basis -= earnings
        self.draft.touched_lots[lot.no] = lot
        if lot.balance == 0:
            pocket.lots.remove(lot)
            pocket.emptied.append(lot)

    def retire_lots(self, pocket: PocketBook, lots: Iterable[Lot]) -> None:
        """Remove lots whose bills have matured."""
        self.touch(pocket)
        for lot in lots:
            pocket.emptied.remove(lot)
            self.draft.add(postings.RetiredLot(self.customer_id, lot.no))

    # -- events ------------------------------------------------------------------------

    def raise_event(self, event_id: UUID, kind: str, payload: str, now: datetime) -> None:
        """Append the customer's next numbered event; `payload` is JSON text."""
        self.event_no += 1
        now = max(now, self.booked_at)
        self.draft.add(
            postings.EventEntry(
                customer_id=self.customer_id,
                event_no=self.event_no,
                event_id=event_id,
                kind=kind,
                payload=payload,
                raised_at=now,
            )
        )

    def change(self, row: type[Row], key: UUID, **columns: object) -> None:
        """Record a change of a row that is already stored."""
        self.draft.add(postings.Update(row, key, columns))

    def keep_fingerprint(self, row: Row) -> None:
        """Record in the command's outcome the new state of a row that changes later."""
        self.draft.add(postings.Fingerprint(type(row), getattr(row, row.key_column or "customer_id"), row.proof))

    def schedule(self, kind: str, object_id: UUID, at: datetime, *, of_customer: bool = True) -> None:
        """Schedule a job on the business clock."""
        customer_id = self.customer_id if of_customer else None
        self.draft.add(ScheduledJob(kind, object_id, customer_id, at=at))

    def enter(self, kind: str, value: str, object_id: UUID) -> None:
        """Enter one of the customer's objects in the directory, under an external name."""
        self.draft.add(DirectoryEntry(kind, value, self.customer_id, object_id=object_id))


BANK_ROLE = "house"
"""The role of the one customer that is the bank itself."""


def pocket_due(pocket: PocketBook, calendars: Calendars) -> datetime | None:
    """Return the next instant at which work is due in this pocket, if any."""
    if pocket.status == PocketStatus.CLOSED and pocket.last_activity_date is None:
        return None
    first: datetime | None = pocket.invest_at
    if pocket.last_activity_date is not None:
        at = calendars.closes_at(pocket.last_activity_date)
        first = at if first is None or at < first else first
    if pocket.lots:
        at = calendars.matures_at(pocket.lots[0].maturity)
        first = at if first is None or at < first else first
    if pocket.lots or pocket.cash.balance or pocket.fee_accrued:
        at = fee_due(pocket, calendars)
        first = at if first is None or at < first else first
    return first


def fee_due(pocket: PocketBook, calendars: Calendars) -> datetime:
    """Return the opening at which the fee is charged: the next one if its day has been declared closed since."""
    return calendars.opens_at(calendars.settlement_on_or_after(pocket.next_fee_date))


def refresh_due(book: Book, calendars: Calendars) -> datetime | None:
    """Compute the due instants of pockets that changed, and the book's first.

    The bank itself has no pockets: its day is due to close when business of that day is over.
    """
    if book.role == BANK_ROLE:
        return calendars.closes_at(book.business_date)
    for pocket_id in book.draft.touched_pockets:
        pocket = book.pockets.get(pocket_id)
        if pocket is not None:
            pocket.due_at = pocket_due(pocket, calendars)
    dues = [p.due_at for p in book.pockets.values() if p.due_at is not None]
    return min(dues) if dues else None
