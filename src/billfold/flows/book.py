"""One customer's state in memory, as flows see it, and the rows that flows write.

A book is loaded by the engine, changed by flows through a few verbs, and written by the
engine in one commit. It knows no SQL and no HTTP. What a refused command did to it is
taken back by `undo`, so a refusal leaves no trace.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.domain.agenda.types import Appointment
from billfold.domain.directory.types import CustomerRow, DirectoryEntry
from billfold.flows.draft import Draft
from billfold.flows.holdings import Account, Lot, PocketBook, PocketColumns, selling_order
from billfold.flows.rows import (
    AccountEntry,
    EventEntry,
    Fingerprint,
    JournalEntry,
    Posting,
    RetiredLot,
    Update,
)
from billfold.kit.errors import Broken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from billfold.kit.rows import Row

USD = "USD"

# What `undo` must restore of a pocket; accounts are restored one by one.
_RESTORED = (*PocketColumns.__struct_fields__, "owed")
_restored: Callable[[PocketBook], tuple[Any, ...]] = attrgetter(*_RESTORED)
_PASSING = frozenset({
    "draft", "happened", "touched_pockets", "changed_pockets", "touched_lots", "_banks", "_saved",
    "_saved_pockets", "_undo",
})  # fmt: skip
"""What a batch needs of a book; gone when it is written."""
_SELDOM = frozenset({"portals", "counterparties", "pending", "referenced"})
"""Loaded for the commands that look at it."""


class Book:
    """One customer: head, pockets, house accounts, and the draft of what changes.

    Flows read the attributes and change them only through the verbs below. Money verbs:
    `begin` a journal, `post` legs, `close` it (which asserts that every bank account it
    touched is at zero).
    """

    # How often each kind of due thing was done since the last commit.
    happened: dict[str, int]
    portals: dict[UUID, Any]
    counterparties: dict[UUID, Any]
    pending: dict[UUID, Any]
    # What the commands of this batch reference, by its id; forgotten when it is written.
    referenced: dict[UUID, Any]
    draft: Draft
    touched_pockets: set[UUID]
    changed_pockets: set[UUID]
    touched_lots: dict[int, Lot]
    _banks: list[Account]
    _saved: dict[int, tuple[Any, ...]]
    _saved_pockets: dict[UUID, tuple[Any, ...]]
    _undo: list[tuple[dict[Any, Any], Any, Any]]

    __slots__ = (
        "_banks",
        "_is_open",
        "_leg_no",
        "_mark",
        "_saved",
        "_saved_pockets",
        "_undo",
        "account_no",
        "account_status",
        "begun",
        "booked_at",
        "business_date",
        "chain",
        "changed_pockets",
        "counterparties",
        "customer_id",
        "draft",
        "due_at",
        "event_no",
        "happened",
        "house",
        "journal_no",
        "name",
        "names_loaded",
        "partner_id",
        "pending",
        "pockets",
        "portals",
        "referenced",
        "role",
        "touched_lots",
        "touched_pockets",
        "version",
    )  # fmt: skip

    def __init__(
        self,
        *,
        customer_id: UUID,
        version: int,
        journal_no: int,
        event_no: int,
        account_no: int,
        booked_at: datetime,
        business_date: date,
        chain: bytes,
        account_status: str = "OPEN",
        name: str = "",
        partner_id: UUID | None = None,
        role: str = "customer",
    ) -> None:
        self.customer_id = customer_id
        self.version = version
        self.journal_no = journal_no
        self.event_no = event_no
        self.account_no = account_no
        self.booked_at = booked_at
        self.business_date = business_date
        self.chain = chain
        self.account_status = account_status
        self.name = name
        self.partner_id = partner_id
        self.role = role
        self.pockets: dict[UUID, PocketBook] = {}
        self.house: dict[tuple[str, str], Account] = {}
        self.due_at: datetime | None = None
        self.names_loaded = False
        # Has anything been put into the draft, or may it have been?
        self.begun = False
        self._leg_no = 0
        self._mark: tuple[Any, ...] | None = None
        self._is_open = False

    if not TYPE_CHECKING:  # what is declared above is all there is

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as declared
            """Make what a batch or a few commands need when it is first asked for.

            Most books rest most of the time. A dozen empty containers in each would cost the
            collector more than all money does.
            """
            if name in _PASSING and not self._is_open:
                self._open()
            elif name in _SELDOM:
                setattr(self, name, {})
            else:
                raise AttributeError(name)
            return getattr(self, name)

    def _open(self) -> None:
        self.draft, self.happened = Draft(), {}
        self.touched_pockets, self.changed_pockets, self.touched_lots = set(), set(), {}
        self._banks, self._saved, self._saved_pockets, self._undo = [], {}, {}, []
        self._is_open = True

    def is_changed(self) -> bool:
        """Is there anything to write?"""
        return bool(self.touched_pockets or self.draft.lengths())

    def settle(self) -> None:
        """The draft has been written: start the next one."""
        if self._is_open:
            del self.draft, self.happened
            del self.touched_pockets, self.changed_pockets, self.touched_lots
            del self._banks, self._saved, self._saved_pockets, self._undo
            self._is_open = False
        with suppress(AttributeError):
            del self.referenced
        self.begun = False
        self._mark = None

    # -- taking back ---------------------------------------------------------------

    def mark(self) -> None:
        """Remember this moment; `undo` comes back to it."""
        self._saved.clear()
        self._saved_pockets.clear()
        self._undo.clear()
        self._mark = (
            self.draft.lengths() if self.begun else {},
            self.journal_no, self.event_no, self.account_no,
            self.booked_at, self.business_date, self.account_status,
        )  # fmt: skip
        self.begun = True

    def undo(self) -> None:
        """Take back everything since `mark`."""
        assert self._mark is not None
        lengths, journal, event, account, booked, day, status = self._mark
        made = self.draft.rows_of(AccountEntry)[lengths.get(AccountEntry, 0) :]
        self.draft.cut(lengths)
        self.journal_no, self.event_no, self.account_no = journal, event, account
        self.booked_at, self.business_date, self.account_status = booked, day, status
        for acct, balance, reserved, tax, earnings in self._saved.values():
            acct.balance, acct.reserved = balance, reserved
            acct.tax_basis, acct.earnings_basis = tax, earnings
        self._unmake(made)
        for mapping, key, before in reversed(self._undo):
            if before is None:
                mapping.pop(key, None)
            else:
                mapping[key] = before
        for pocket, lots, emptied, liens, plain in self._saved_pockets.values():
            pocket.lots, pocket.emptied, pocket.liens = lots, emptied, liens
            for name, value in zip(_RESTORED, plain, strict=True):
                setattr(pocket, name, value)
        self._banks.clear()
        self._saved.clear()
        self._saved_pockets.clear()
        self._undo.clear()

    def _unmake(self, made: Iterable[AccountEntry]) -> None:
        """Forget accounts opened since the savepoint; lots go with what their pocket was."""
        for account in made:
            if account.pocket_id is None:
                self.house.pop((account.kind, account.asset), None)
            else:
                self.touched_lots.pop(account.account_no, None)

    def put(self, mapping: dict[Any, Any], key: Any, value: Any) -> None:  # noqa: ANN401 - any noun
        """Set `mapping[key]` so that `undo` can take it back."""
        self._undo.append((mapping, key, mapping.get(key)))
        mapping[key] = value

    def drop(self, mapping: dict[Any, Any], key: Any) -> None:  # noqa: ANN401 - any noun
        """Remove `mapping[key]` so that `undo` can take it back."""
        self._undo.append((mapping, key, mapping.get(key)))
        mapping.pop(key, None)

    def alter(self, pocket: PocketBook) -> None:
        """Announce that more than the counters of this pocket is about to change."""
        self.touch(pocket)
        self.changed_pockets.add(pocket.pocket_id)

    def touch(self, pocket: PocketBook) -> None:
        """Announce that money is about to move in this pocket."""
        self.begun = True
        key = pocket.pocket_id
        if key not in self._saved_pockets:
            held = (pocket.lots.copy(), pocket.emptied.copy(), pocket.liens.copy())
            self._saved_pockets[key] = (pocket, *held, _restored(pocket))
        self.touched_pockets.add(key)

    def set_account_status(self, status: str) -> None:
        """Change the customer's own status."""
        self.account_status = status
        self.change(CustomerRow, self.customer_id, account_status=status)

    # -- accounts --------------------------------------------------------------------

    def house_account(self, kind: str, asset: str = USD) -> Account:
        """The customer's account on the house's side, made when first needed."""
        account = self.house.get((kind, asset))
        if account is None:
            account = self._make(kind, None, asset)
            self.house[kind, asset] = account
        return account

    def open_accounts(self, pocket: PocketBook) -> None:
        """Give a new pocket its bank and its cash account."""
        pocket.bank = self._make("bank", pocket.pocket_id, USD)
        pocket.cash = self._make("cash", pocket.pocket_id, USD)
        self.put(self.pockets, pocket.pocket_id, pocket)

    def owed_account(self, pocket: PocketBook) -> Account:
        """What the pocket owes, made when it first owes something."""
        if pocket.owed is None:
            self.touch(pocket)
            pocket.owed = self._make("owed", pocket.pocket_id, USD)
        return pocket.owed

    def lot(self, pocket: PocketBook, cusip: str, acquired_on: date, maturity: date) -> Lot:
        """The lot of this bill acquired on this day, made when first needed."""
        lot = pocket.find_lot(cusip, acquired_on)
        if lot is None:
            self.touch(pocket)
            number = self._open_account("lot", pocket.pocket_id, cusip, acquired_on)
            lot = Lot(number, "lot", cusip, acquired_on=acquired_on, maturity=maturity)
            pocket.emptied.append(lot)
        return lot

    def _make(self, kind: str, pocket_id: UUID | None, asset: str) -> Account:
        return Account(self._open_account(kind, pocket_id, asset), kind, asset)

    def _open_account(
        self, kind: str, pocket_id: UUID | None, asset: str, acquired_on: date | None = None
    ) -> int:
        self.account_no += 1
        self.draft.add(
            AccountEntry(
                customer_id=self.customer_id,
                account_no=self.account_no,
                kind=kind,
                pocket_id=pocket_id,
                asset=asset,
                acquired_on=acquired_on,
            )
        )
        return self.account_no

    # -- journals ----------------------------------------------------------------------

    def begin(
        self,
        kind: str,
        *,
        command_id: UUID,
        now: datetime,
        business_date: date,
        settles_on: date,
        reverses: int | None = None,
    ) -> int:
        """Open the next journal and return its number. Dates of a book never go back."""
        now = max(now, self.booked_at)
        business_date = max(business_date, self.business_date)
        self.booked_at, self.business_date = now, business_date
        self.journal_no += 1
        self._leg_no = 0
        self.draft.add(
            JournalEntry(
                customer_id=self.customer_id,
                journal_no=self.journal_no,
                kind=kind,
                command_id=command_id,
                booked_at=now,
                business_date=business_date,
                effective_date=business_date,
                settles_on=settles_on,
                reverses=reverses,
            )
        )
        return self.journal_no

    def post(self, debit: Account, credit: Account, amount: int) -> int:
        """Move `amount` of one asset from `debit` to `credit`; return the leg's number."""
        if amount <= 0 or debit.asset != credit.asset:
            msg = f"leg of {amount} {debit.asset} to {credit.asset}"
            raise Broken(msg)
        if debit.no not in self._saved:
            self._save(debit)
        if credit.no not in self._saved:
            self._save(credit)
        debit.balance -= amount
        credit.balance += amount
        if debit.kind == "bank":
            self._banks.append(debit)
        if credit.kind == "bank":
            self._banks.append(credit)
        self._leg_no += 1
        self.draft.add(
            Posting(
                customer_id=self.customer_id,
                journal_no=self.journal_no,
                leg_no=self._leg_no,
                debit=debit.no,
                credit=credit.no,
                asset=debit.asset,
                amount=amount,
            )
        )
        return self._leg_no

    def _save(self, account: Account) -> None:
        self._saved[account.no] = (
            account, account.balance, account.reserved, account.tax_basis, account.earnings_basis,
        )  # fmt: skip

    def close(self) -> None:
        """End the journal: every bank account it touched is at zero again.

        A journal in which nothing was posted never was.
        """
        for bank in self._banks:
            if bank.balance:
                raise Broken(f"bank account {bank.no} holds {bank.balance} cents")
        self._banks.clear()
        if self._leg_no == 0:
            self.draft.drop_last(JournalEntry)
            self.journal_no -= 1

    # -- lots --------------------------------------------------------------------------

    def lot_in(self, pocket: PocketBook, lot: Lot, tax: int, earnings: int) -> None:
        """Bills have been posted into `lot`: add their bases and keep the selling order."""
        lot.tax_basis += tax
        lot.earnings_basis += earnings
        self.touched_lots[lot.no] = lot
        if lot not in pocket.lots:
            pocket.emptied.remove(lot)
            insort(pocket.lots, lot, key=selling_order)

    def lot_out(self, pocket: PocketBook, lot: Lot, tax: int, earnings: int) -> None:
        """Bills have been posted out of `lot`: take their bases away."""
        lot.tax_basis -= tax
        lot.earnings_basis -= earnings
        self.touched_lots[lot.no] = lot
        if lot.balance == 0:
            pocket.lots.remove(lot)
            pocket.emptied.append(lot)

    def lose_lots(self, pocket: PocketBook, lots: Iterable[Lot]) -> None:
        """These lots' bills have matured: the book needs them no more."""
        self.touch(pocket)
        for lot in lots:
            pocket.emptied.remove(lot)
            self.draft.add(RetiredLot(self.customer_id, lot.no))

    # -- events ------------------------------------------------------------------------

    def raise_event(self, event_id: UUID, kind: str, payload: str, now: datetime) -> None:
        """Append the customer's next numbered event; `payload` is JSON text."""
        self.event_no += 1
        now = max(now, self.booked_at)
        self.draft.add(
            EventEntry(
                customer_id=self.customer_id,
                event_no=self.event_no,
                event_id=event_id,
                kind=kind,
                payload=payload,
                raised_at=now,
            )
        )

    def change(self, row: type[Row], key: UUID, **columns: object) -> None:
        """Record a change of a row that waits."""
        self.draft.add(Update(row, key, columns))

    def keep_fingerprint(self, row: type[Row], key: UUID, value: str) -> None:
        """Let the command's outcome say what a row comes to that changes later."""
        self.draft.add(Fingerprint(row, key, value))

    def schedule(
        self, kind: str, object_id: UUID, at: datetime, *, of_customer: bool = True
    ) -> None:
        """Make an appointment of the business clock."""
        customer_id = self.customer_id if of_customer else None
        self.draft.add(Appointment(kind, object_id, customer_id, at))

    def enter(self, kind: str, value: str, object_id: UUID) -> None:
        """Enter one of the customer's objects in the directory, under a name from outside."""
        self.draft.add(DirectoryEntry(kind, value, self.customer_id, object_id))
