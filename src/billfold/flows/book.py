"""One customer's state in memory, as flows see it, and the rows that flows write.

A book is loaded by the engine, changed by flows through a few verbs, and written by the
engine in one commit. It knows no SQL and no HTTP. What a refused command did to it is
taken back by `undo`, so a refusal leaves no trace.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from datetime import date, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.kit.errors import Broken

if TYPE_CHECKING:
    from collections.abc import Iterable

USD = "USD"

_encode = msgspec.json.Encoder().encode


def as_json(value: object) -> str:
    """JSON text of a small record."""
    return _encode(value).decode()




class Account:
    """A balance of one asset. `balance` is credits minus debits, in cents or bills.

    Lots carry two bases in cents: `tax_basis` travels with the bills, `earnings_basis` is
    what the pocket paid or the value at which it received them.
    """

    __slots__ = (
        "acquired_on",
        "asset",
        "balance",
        "earnings_basis",
        "kind",
        "maturity",
        "no",
        "pocket_id",
        "reserved",
        "tax_basis",
    )

    def __init__(
        self,
        no: int,
        kind: str,
        pocket_id: UUID | None,
        asset: str,
        acquired_on: date | None = None,
        maturity: date | None = None,
        *,
        balance: int = 0,
        reserved: int = 0,
        tax_basis: int = 0,
        earnings_basis: int = 0,
    ) -> None:
        self.no = no
        self.kind = kind
        self.pocket_id = pocket_id
        self.asset = asset
        self.acquired_on = acquired_on
        self.maturity = maturity
        self.balance = balance
        self.reserved = reserved
        self.tax_basis = tax_basis
        self.earnings_basis = earnings_basis

    @property
    def units(self) -> int:
        """Bills of $100 face held in a lot."""
        return self.balance

    @property
    def cusip(self) -> str:
        """The CUSIP of a lot."""
        return self.asset


def _selling_order(lot: Account) -> tuple[date, str, date]:
    """Shortest maturity first, first in first out within a bill."""
    assert lot.maturity is not None
    assert lot.acquired_on is not None
    return (lot.maturity, lot.asset, lot.acquired_on)


class PocketBook:
    """One pocket of a book: its accounts and the counters that outlive a day."""

    __slots__ = (
        "accrued_through",
        "bank",
        "cash",
        "charge_on",
        "closed_at",
        "closure_reason",
        "deposit_weeks",
        "due_at",
        "fee_accrued",
        "fees",
        "idle",
        "inflow",
        "invest_at",
        "liens",
        "lots",
        "lots_by_key",
        "moved_on",
        "name",
        "opened_at",
        "outflow",
        "owed",
        "partner_id",
        "pocket_id",
        "real_time_yield",
        "realised",
        "reinvestment_weeks",
        "status",
        "type",
    )

    def __init__(
        self,
        *,
        pocket_id: UUID,
        partner_id: UUID,
        name: str,
        type: str,  # noqa: A002 - the field's name on the wire
        status: str,
        deposit_weeks: int,
        reinvestment_weeks: int | None,
        opened_at: datetime,
        accrued_through: date,
        charge_on: date,
        real_time_yield: bool = False,
        inflow: int = 0,
        outflow: int = 0,
        fees: int = 0,
        realised: int = 0,
        fee_accrued: int = 0,
        idle: int = 0,
        moved_on: date | None = None,
        invest_at: datetime | None = None,
        closed_at: datetime | None = None,
        closure_reason: str | None = None,
    ) -> None:
        self.pocket_id = pocket_id
        self.partner_id = partner_id
        self.name = name
        self.type = type
        self.status = status
        self.deposit_weeks = deposit_weeks
        self.reinvestment_weeks = reinvestment_weeks
        self.opened_at = opened_at
        self.accrued_through = accrued_through
        self.charge_on = charge_on
        self.real_time_yield = real_time_yield
        self.inflow = inflow
        self.outflow = outflow
        self.fees = fees
        self.realised = realised
        self.fee_accrued = fee_accrued
        self.idle = idle
        self.moved_on = moved_on
        self.invest_at = invest_at
        self.closed_at = closed_at
        self.closure_reason = closure_reason
        self.due_at: datetime | None = None
        self.bank: Account
        self.cash: Account
        self.owed: Account | None = None
        self.lots: list[Account] = []
        self.lots_by_key: dict[tuple[str, date], Account] = {}
        self.liens: list[tuple[int, datetime]] = []

    def adopt(self, account: Account) -> None:
        """Take an account of this pocket into its place."""
        if account.kind == "lot":
            assert account.acquired_on is not None
            self.lots_by_key[account.asset, account.acquired_on] = account
            if account.balance:
                insort(self.lots, account, key=_selling_order)
        else:
            setattr(self, account.kind, account)

    def positions(self) -> list[tuple[str, int]]:
        """Units per CUSIP, shortest maturity first."""
        held: dict[str, int] = {}
        for lot in self.lots:
            held[lot.asset] = held.get(lot.asset, 0) + lot.balance
        return list(held.items())

    def earnings_basis(self) -> int:
        """Cents at which the bills still held entered the pocket."""
        return sum(lot.earnings_basis for lot in self.lots)

    def liened(self, now: datetime) -> int:
        """Cents that may not leave yet."""
        return sum(amount for amount, until in self.liens if until > now)


# What `undo` must restore of a pocket; accounts are restored one by one.
_PLAIN = (
    "accrued_through", "charge_on", "closed_at", "closure_reason", "deposit_weeks",
    "fee_accrued", "fees", "idle", "inflow", "invest_at", "moved_on", "name", "outflow", "owed",
    "real_time_yield", "realised", "reinvestment_weeks", "status",
)  # fmt: skip
_plain: Callable[[PocketBook], tuple[Any, ...]] = attrgetter(*_PLAIN)


class Draft:
    """The rows one batch writes for one customer, in the order they were made."""

    __slots__ = (
        "accounts",
        "activities",
        "commands",
        "counterparties",
        "customers",
        "directory",
        "events",
        "journals",
        "legs",
        "liens",
        "portals",
        "retired",
        "settlements",
        "snapshots",
        "trades",
        "transfers",
        "updates",
    )

    def __init__(self) -> None:
        self.accounts: list[Account] = []
        self.journals: list[tuple[Any, ...]] = []
        self.legs: list[tuple[Any, ...]] = []
        self.trades: list[tuple[Any, ...]] = []
        self.activities: list[tuple[Any, ...]] = []
        self.events: list[tuple[Any, ...]] = []
        self.commands: list[tuple[Any, ...]] = []
        self.snapshots: list[tuple[Any, ...]] = []
        self.liens: list[tuple[Any, ...]] = []
        self.customers: list[tuple[Any, ...]] = []
        self.directory: list[tuple[Any, ...]] = []
        self.portals: list[tuple[Any, ...]] = []
        self.counterparties: list[tuple[Any, ...]] = []
        self.transfers: list[tuple[Any, ...]] = []
        self.settlements: list[tuple[Any, ...]] = []
        self.retired: list[Account] = []
        # Small changes of waiting things: (table, key, {column: value}).
        self.updates: list[tuple[str, UUID, dict[str, Any]]] = []

    def lengths(self) -> tuple[int, ...]:
        """Where each list ends now, for `cut`."""
        return tuple(map(len, _lists_of(self)))

    def cut(self, lengths: tuple[int, ...]) -> None:
        """Forget every row made since `lengths` was taken."""
        for rows, length in zip(_lists_of(self), lengths, strict=True):
            del rows[length:]


_DRAFT_LISTS = tuple(Draft.__slots__)
_NOTHING = (0,) * len(_DRAFT_LISTS)
_lists_of: Callable[[Draft], tuple[list[Any], ...]] = attrgetter(*_DRAFT_LISTS)


class Book:
    """One customer: head, pockets, house accounts, and the draft of what changes.

    Flows read the attributes and change them only through the verbs below. Money verbs:
    `begin` a journal, `post` legs, `close` it (which asserts that every bank account it
    touched is at zero).
    """

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
        # How often each kind of due thing was done since the last commit.
        self.happened: dict[str, int] = {}
        self.pockets: dict[UUID, PocketBook] = {}
        self.house: dict[tuple[str, str], Account] = {}
        self.portals: dict[UUID, Any] = {}
        self.counterparties: dict[UUID, Any] = {}
        self.pending: dict[UUID, Any] = {}
        self.due_at: datetime | None = None
        self.draft = Draft()
        # Has anything been put into the draft, or may it have been?
        self.begun = False
        self.touched_pockets: set[UUID] = set()
        self.changed_pockets: set[UUID] = set()
        self.touched_lots: dict[int, Account] = {}
        self._leg_no = 0
        self._banks: list[Account] = []
        self._mark: tuple[Any, ...] | None = None
        self._saved: dict[int, tuple[Any, ...]] = {}
        self._saved_pockets: dict[UUID, tuple[Any, ...]] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    def is_changed(self) -> bool:
        """Is there anything to write?"""
        draft = self.draft
        return bool(
            draft.commands or draft.journals or draft.snapshots or draft.updates
            or draft.events or draft.retired or self.touched_pockets
        )  # fmt: skip

    def settle(self) -> None:
        """The draft has been written: start the next one."""
        self.draft = Draft()
        self.happened = {}
        self.touched_pockets = set()
        self.changed_pockets = set()
        self.touched_lots = {}
        self._mark = None

    # -- taking back ---------------------------------------------------------------

    def mark(self) -> None:
        """Remember this moment; `undo` comes back to it."""
        self._saved.clear()
        self._saved_pockets.clear()
        self._undo.clear()
        self._mark = (
            self.draft.lengths() if self.begun else _NOTHING, self.journal_no, self.event_no, self.account_no,
            self.booked_at, self.business_date, self.account_status,
        )  # fmt: skip
        self.begun = True

    def undo(self) -> None:
        """Take back everything since `mark`."""
        assert self._mark is not None
        lengths, journal, event, account, booked, day, status = self._mark
        made = self.draft.accounts[lengths[_DRAFT_LISTS.index("accounts")] :]
        self.draft.cut(lengths)
        self.journal_no, self.event_no, self.account_no = journal, event, account
        self.booked_at, self.business_date, self.account_status = booked, day, status
        for old in self._saved.values():
            acct, balance, reserved, tax, earnings = old
            acct.balance, acct.reserved = balance, reserved
            acct.tax_basis, acct.earnings_basis = tax, earnings
        for mapping, key, before in reversed(self._undo):
            if before is None:
                mapping.pop(key, None)
            else:
                mapping[key] = before
        for pocket, lots, liens, plain in self._saved_pockets.values():
            pocket.lots, pocket.liens = lots, liens
            for name, value in zip(_PLAIN, plain, strict=True):
                setattr(pocket, name, value)
        for acct in made:
            if acct.pocket_id is None:
                self.house.pop((acct.kind, acct.asset), None)
            elif acct.kind == "lot":
                pocket = self.pockets.get(acct.pocket_id)
                if pocket is not None and acct.acquired_on is not None:
                    pocket.lots_by_key.pop((acct.asset, acct.acquired_on), None)
        self._banks.clear()
        self._saved.clear()
        self._saved_pockets.clear()
        self._undo.clear()

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
        key = pocket.pocket_id
        if key not in self._saved_pockets:
            self._saved_pockets[key] = (pocket, pocket.lots.copy(), pocket.liens.copy(), _plain(pocket))
        self.touched_pockets.add(key)

    def enrol(self, role: str, type_: str, profile: dict[str, Any], now: datetime) -> None:
        """Write down the new customer this book belongs to."""
        self.draft.customers.append(
            (
                self.customer_id, self.partner_id, role, type_, self.name, self.account_status,
                as_json(profile), now,
            )  # fmt: skip
        )
        self.draft.directory.append(
            ("customer", str(self.customer_id), self.customer_id, self.customer_id)
        )

    def set_account_status(self, status: str) -> None:
        """Change the customer's own status."""
        self.account_status = status
        self.change("customer", self.customer_id, account_status=status)

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

    def lot(self, pocket: PocketBook, cusip: str, acquired_on: date, maturity: date) -> Account:
        """The lot of this bill acquired on this day, made when first needed."""
        lot = pocket.lots_by_key.get((cusip, acquired_on))
        if lot is None:
            lot = self._make("lot", pocket.pocket_id, cusip, acquired_on, maturity)
            pocket.lots_by_key[cusip, acquired_on] = lot
        return lot

    def _make(
        self,
        kind: str,
        pocket_id: UUID | None,
        asset: str,
        acquired_on: date | None = None,
        maturity: date | None = None,
    ) -> Account:
        self.account_no += 1
        account = Account(self.account_no, kind, pocket_id, asset, acquired_on, maturity)
        self.draft.accounts.append(account)
        return account

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
        if now < self.booked_at:
            now = self.booked_at
        if business_date < self.business_date:
            business_date = self.business_date
        self.booked_at, self.business_date = now, business_date
        self.journal_no += 1
        self._leg_no = 0
        self.draft.journals.append(
            (
                self.customer_id, self.journal_no, kind, command_id, now, business_date,
                business_date, settles_on, reverses,
            )  # fmt: skip
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
        self.draft.legs.append(
            (
                self.customer_id, self.journal_no, self._leg_no, debit.no, credit.no,
                debit.asset, amount, 0,
            )  # fmt: skip
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
            self.draft.journals.pop()
            self.journal_no -= 1

    # -- lots --------------------------------------------------------------------------

    def lot_in(self, pocket: PocketBook, lot: Account, tax: int, earnings: int) -> None:
        """Bills have been posted into `lot`: add their bases and keep the selling order."""
        lot.tax_basis += tax
        lot.earnings_basis += earnings
        self.touched_lots[lot.no] = lot
        if lot not in pocket.lots:
            insort(pocket.lots, lot, key=_selling_order)

    def lot_out(self, pocket: PocketBook, lot: Account, tax: int, earnings: int) -> None:
        """Bills have been posted out of `lot`: take their bases away."""
        lot.tax_basis -= tax
        lot.earnings_basis -= earnings
        self.touched_lots[lot.no] = lot
        if lot.balance == 0:
            pocket.lots.remove(lot)

    def lose_lots(self, pocket: PocketBook, lots: Iterable[Account]) -> None:
        """These lots' bills have matured: the book needs them no more."""
        for lot in lots:
            assert lot.acquired_on is not None
            self._undo.append((pocket.lots_by_key, (lot.asset, lot.acquired_on), lot))
            del pocket.lots_by_key[lot.asset, lot.acquired_on]
            self.draft.retired.append(lot)

    # -- events ------------------------------------------------------------------------

    def raise_event(self, event_id: UUID, kind: str, payload: str, now: datetime) -> None:
        """Append the customer's next numbered event; `payload` is JSON text."""
        self.event_no += 1
        if now < self.booked_at:
            now = self.booked_at
        self.draft.events.append((self.customer_id, self.event_no, event_id, kind, payload, now))

    def change(self, table: str, key: UUID, **columns: object) -> None:
        """Record a change of a waiting thing's state."""
        self.draft.updates.append((table, key, dict(columns)))
