"""The rows one batch writes for one customer, and the savepoint to which a refused command is rolled back."""

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from billfold.ledger.types import AccountKind, PocketStatus
from billfold.platform.calendars import Calendars


class Account(msgspec.Struct, array_like=True, eq=False, gc=False):
    """A balance of one asset. `balance` is credits minus debits, in cents or bills."""

    no: int
    kind: AccountKind
    asset: str
    balance: int = 0
    reserved: int = 0
    tax_basis: int = 0
    earnings_basis: int = 0


class Lot(Account, array_like=True, eq=False, gc=False):
    """Bills of one CUSIP that a pocket acquired on one day.

    Two bases in cents: `tax_basis` travels with the bills, `earnings_basis` is what the
    pocket paid or the value at which it received them.
    """

    acquired_on: date = date.min
    maturity: date = date.min

    @property
    def units(self) -> int:
        """Bills of $100 face still held."""
        return self.balance

    @property
    def cusip(self) -> str:
        """The bill."""
        return self.asset


HOLDS_KEPT = timedelta(days=14)
"""Time for which a book keeps a hold beyond its end: days that are declared closed prolong it."""


def selling_order(lot: Lot) -> tuple[date, str, date]:
    """Shortest maturity first, first in first out within a bill."""
    return (lot.maturity, lot.asset, lot.acquired_on)


def _not_opened() -> Account:
    return Account(0, AccountKind.BANK, "USD")


class PocketCounters(msgspec.Struct, array_like=True, eq=False, kw_only=True, gc=False):
    """The counters of a pocket that money changes, in the order of the database's type `pocket_counters`."""

    inflow: int = 0
    outflow: int = 0
    fees: int = 0
    realised: int = 0
    fee_accrued: int = 0
    uninvested: int = 0
    accrued_through: date
    next_fee_date: date
    last_activity_date: date | None = None
    unsettled_until: date | None = None
    invest_at: datetime | None = None


class PocketColumns(PocketCounters, array_like=True, eq=False, kw_only=True, gc=False):
    """The columns of the table `pocket` except the customer.

    `unsettled` cents of the cash settle on `unsettled_on`; to use all of them before costs `unsettled_discount`.
    """

    pocket_id: UUID
    partner_id: UUID
    name: str
    type: str
    status: PocketStatus
    deposit_weeks: int
    reinvestment_weeks: int | None
    real_time_yield: bool = False
    opened_at: datetime
    closed_at: datetime | None = None
    closure_reason: str | None = None
    unsettled: int = 0
    unsettled_discount: int = 0
    unsettled_on: date | None = None


class PocketBook(PocketColumns, array_like=True, eq=False, kw_only=True, gc=False):
    """One pocket of a book: its accounts and the counters that outlive a day.

    `emptied` are lots without bills that may be bought again on their day, or sold ones whose
    bill has not matured.
    """

    due_at: datetime | None = None
    bank: Account = msgspec.field(default_factory=_not_opened)
    cash: Account = msgspec.field(default_factory=_not_opened)
    owed: Account | None = None
    lots: list[Lot] = []
    emptied: list[Lot] = []
    liens: list[tuple[int, datetime]] = []

    def adopt(self, account: Account) -> None:
        """Store an account of this pocket in its field."""
        if not isinstance(account, Lot):
            setattr(self, account.kind, account)
        elif account.balance:
            insort(self.lots, account, key=selling_order)
        else:
            self.emptied.append(account)

    def find_lot(self, cusip: str, acquired_on: date) -> Lot | None:
        """Return the lot of this bill acquired on this day."""
        for lots in (self.lots, self.emptied):
            for lot in lots:
                if lot.asset == cusip and lot.acquired_on == acquired_on:
                    return lot
        return None

    def positions(self) -> list[tuple[str, int]]:
        """Return units per CUSIP, shortest maturity first."""
        held: dict[str, int] = {}
        for lot in self.lots:
            held[lot.asset] = held.get(lot.asset, 0) + lot.balance
        return list(held.items())

    def earnings_basis(self) -> int:
        """Return the cents at which the bills still held entered the pocket."""
        return sum(lot.earnings_basis for lot in self.lots)

    def settles_after(self, day: date) -> bool:
        """Return whether a trade of the pocket settles only after this day."""
        return self.unsettled_until is not None and self.unsettled_until > day

    def unsettled_after(self, day: date) -> int:
        """Return the cents of the cash that have not settled on this day."""
        return self.unsettled if self.unsettled_on is not None and day < self.unsettled_on else 0

    def held_cents(self, now: datetime, calendars: Calendars) -> int:
        """Return the cents that may not leave yet: a hold does not end on a day that was declared closed since."""
        return sum(amount for amount, until in self.liens if calendars.settles_at(until) > now)


Kind = TypeVar("Kind")

_encode = msgspec.json.Encoder().encode


def to_json(value: object) -> str:
    """JSON text of a small record."""
    return _encode(value).decode()


class Draft(msgspec.Struct, eq=False, gc=False):
    """The rows one batch writes for one customer, by class, in the order they were made.

    It also holds the other data that a batch needs: what it has touched, the bank accounts of the open
    journal entry, and how often each kind of due work was done. The garbage collector ignores empty
    dicts, unlike sets and lists.
    """

    _rows: dict[type[Any], list[Any]] = {}
    banks: dict[int, Account] = {}
    changed_pockets: dict[UUID, PocketBook] = {}
    happened: dict[str, int] = {}
    touched_lots: dict[int, Lot] = {}
    touched_pockets: dict[UUID, PocketBook] = {}

    def is_changed(self) -> bool:
        """Return whether there is anything to write."""
        return bool(self.touched_pockets or any(self._rows.values()))

    def add(self, row: object) -> None:
        """Add a row."""
        self._rows.setdefault(type(row), []).append(row)

    def rows_of(self, kind: type[Kind]) -> Sequence[Kind]:
        """Return the rows of a class, or none."""
        return self._rows.get(kind, ())

    def take(self, kind: type[Kind]) -> list[Kind]:
        """Remove the rows of a class and return them."""
        return self._rows.pop(kind, [])

    def add_in_order(self, row: Kind, place: Callable[[Kind], Any]) -> None:
        """Add a row whose index is its key."""
        insort(self._rows.setdefault(type(row), []), row, key=place)

    def drop_last(self, kind: type[Any]) -> None:
        """Drop the last row of a class."""
        self._rows[kind].pop()

    def __iter__(self) -> Iterator[tuple[type[Any], list[Any]]]:
        """Return each class that has rows, with its rows."""
        return ((kind, rows) for kind, rows in self._rows.items() if rows)

    def lengths(self) -> dict[type[Any], int]:
        """Return the current length of each list that has rows, for `cut`."""
        return {kind: len(rows) for kind, rows in self._rows.items() if rows}

    def cut(self, lengths: Mapping[type[Any], int]) -> None:
        """Drop every row made since `lengths` was taken."""
        for kind, rows in self._rows.items():
            del rows[lengths.get(kind, 0) :]


_RESTORED = (*PocketColumns.__struct_fields__, "owed")
_restored: Callable[[PocketBook], tuple[Any, ...]] = attrgetter(*_RESTORED)


class Savepoint:
    """The accounts and pockets changed since, in their former state."""

    __slots__ = ("_pockets", "accounts", "entries", "lengths", "numbers")

    def __init__(self, lengths: Mapping[type[Any], int], numbers: tuple[Any, ...]) -> None:
        self.lengths = lengths
        self.numbers = numbers
        # Of mappings: (mapping, key, value before).
        self.entries: list[tuple[dict[Any, Any], Any, Any]] = []
        self.accounts: dict[int, tuple[Account, int, int, int, int]] = {}
        self._pockets: dict[UUID, tuple[PocketBook, Any, Any, Any, tuple[Any, ...]]] = {}

    def keep_account(self, account: Account) -> None:
        """Save an account before it changes for the first time."""
        self.accounts[account.no] = (
            account,
            account.balance,
            account.reserved,
            account.tax_basis,
            account.earnings_basis,
        )

    def keep_pocket(self, pocket: PocketBook) -> None:
        """Save a pocket before it changes for the first time."""
        if pocket.pocket_id not in self._pockets:
            held = (pocket.lots.copy(), pocket.emptied.copy(), pocket.liens.copy())
            self._pockets[pocket.pocket_id] = (pocket, *held, _restored(pocket))

    def restore(self) -> None:
        """Restore accounts, pockets and mappings."""
        for account, balance, reserved, tax, earnings in self.accounts.values():
            account.balance, account.reserved = balance, reserved
            account.tax_basis, account.earnings_basis = tax, earnings
        for mapping, key, before in reversed(self.entries):
            if before is None:
                mapping.pop(key, None)
            else:
                mapping[key] = before
        for pocket, lots, emptied, liens, columns in self._pockets.values():
            pocket.lots, pocket.emptied, pocket.liens = lots, emptied, liens
            for name, value in zip(_RESTORED, columns, strict=True):
                setattr(pocket, name, value)
        self.entries.clear()
        self.accounts.clear()
        self._pockets.clear()
