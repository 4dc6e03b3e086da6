"""What a book was before a command: the way back when the command is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from billfold.ledger.book.holdings import PocketColumns

if TYPE_CHECKING:
    from uuid import UUID

    from billfold.ledger.book.holdings import Account, PocketBook

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
