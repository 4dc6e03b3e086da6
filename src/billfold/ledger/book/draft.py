"""The rows one batch writes for one customer, and the savepoint to which a refused command goes back."""

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from billfold.ledger.book.holdings import Account, Lot, PocketBook, PocketColumns

Kind = TypeVar("Kind")

_encode = msgspec.json.Encoder().encode


def to_json(value: object) -> str:
    """JSON text of a small record."""
    return _encode(value).decode()


class Draft(msgspec.Struct, eq=False, gc=False):
    """The rows one batch writes for one customer, by class, in the order they were made.

    With it what else a batch needs of a book: what it has touched, the bank accounts of the open
    journal entry, and how often each kind of due thing was done. Empty dicts, unlike sets and lists, are
    nothing to the collector.
    """

    _rows: dict[type[Any], list[Any]] = {}
    banks: dict[int, Account] = {}
    changed_pockets: dict[UUID, PocketBook] = {}
    happened: dict[str, int] = {}
    touched_lots: dict[int, Lot] = {}
    touched_pockets: dict[UUID, PocketBook] = {}

    def is_changed(self) -> bool:
        """Is there anything to write?"""
        return bool(self.touched_pockets or any(self._rows.values()))

    def add(self, row: object) -> None:
        """Write down one more row."""
        self._rows.setdefault(type(row), []).append(row)

    def rows_of(self, kind: type[Kind]) -> Sequence[Kind]:
        """The rows of a class, none where none were made."""
        return self._rows.get(kind, ())

    def take(self, kind: type[Kind]) -> list[Kind]:
        """Remove the rows of a class and return them."""
        return self._rows.pop(kind, [])

    def add_in_order(self, row: Kind, place: Callable[[Kind], Any]) -> None:
        """Write down one more row where it stands by its place."""
        insort(self._rows.setdefault(type(row), []), row, key=place)

    def drop_last(self, kind: type[Any]) -> None:
        """Forget the last row of a class."""
        self._rows[kind].pop()

    def __iter__(self) -> Iterator[tuple[type[Any], list[Any]]]:
        """Each class of which there are rows, with its rows."""
        return ((kind, rows) for kind, rows in self._rows.items() if rows)

    def lengths(self) -> dict[type[Any], int]:
        """Where each list that has rows ends now, for `cut`."""
        return {kind: len(rows) for kind, rows in self._rows.items() if rows}

    def cut(self, lengths: Mapping[type[Any], int]) -> None:
        """Forget every row made since `lengths` was taken."""
        for kind, rows in self._rows.items():
            del rows[lengths.get(kind, 0) :]


_RESTORED = (*PocketColumns.__struct_fields__, "owed")
_restored: Callable[[PocketBook], tuple[Any, ...]] = attrgetter(*_RESTORED)


class Savepoint:
    """The accounts and pockets that were touched since, as they were."""

    __slots__ = ("_pockets", "accounts", "entries", "lengths", "numbers")

    def __init__(self, lengths: Mapping[type[Any], int], numbers: tuple[Any, ...]) -> None:
        self.lengths = lengths
        self.numbers = numbers
        # Of mappings: (mapping, key, value before).
        self.entries: list[tuple[dict[Any, Any], Any, Any]] = []
        self.accounts: dict[int, tuple[Account, int, int, int, int]] = {}
        self._pockets: dict[UUID, tuple[PocketBook, Any, Any, Any, tuple[Any, ...]]] = {}

    def keep_account(self, account: Account) -> None:
        """Remember an account before it moves for the first time."""
        self.accounts[account.no] = (
            account,
            account.balance,
            account.reserved,
            account.tax_basis,
            account.earnings_basis,
        )

    def keep_pocket(self, pocket: PocketBook) -> None:
        """Remember a pocket before it changes for the first time."""
        if pocket.pocket_id not in self._pockets:
            held = (pocket.lots.copy(), pocket.emptied.copy(), pocket.liens.copy())
            self._pockets[pocket.pocket_id] = (pocket, *held, _restored(pocket))

    def restore(self) -> None:
        """Make accounts, pockets and mappings what they were."""
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
