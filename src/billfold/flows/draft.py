"""The rows one batch writes for one customer, as the flows make them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from billfold.flows.holdings import Account, Lot

_encode = msgspec.json.Encoder().encode


def as_json(value: object) -> str:
    """JSON text of a small record."""
    return _encode(value).decode()


class Draft:
    """The rows one batch writes for one customer, in the order they were made."""

    __slots__ = (
        "accounts",
        "ach_answers",
        "ach_entries",
        "activities",
        "agenda",
        "clearings",
        "commands",
        "counterparties",
        "customers",
        "directory",
        "events",
        "journals",
        "legs",
        "liens",
        "portals",
        "proofs",
        "retired",
        "security_transfers",
        "settlements",
        "snapshots",
        "suspense_items",
        "trades",
        "transfers",
        "updates",
        "wire_messages",
        "wires",
    )

    def __init__(self) -> None:
        self.accounts: list[tuple[Account, UUID | None]] = []
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
        self.ach_answers: list[tuple[Any, ...]] = []
        self.ach_entries: list[tuple[Any, ...]] = []
        self.settlements: list[tuple[Any, ...]] = []
        self.clearings: list[tuple[Any, ...]] = []
        self.suspense_items: list[tuple[Any, ...]] = []
        self.security_transfers: list[tuple[Any, ...]] = []
        self.wires: list[tuple[Any, ...]] = []
        self.wire_messages: list[tuple[Any, ...]] = []
        # What a command's outcome says of rows that change later: (table, id, fingerprint).
        self.proofs: list[tuple[str, UUID, str]] = []
        self.retired: list[Lot] = []
        # Appointments of the business clock: (kind, object_id, customer_id, at).
        self.agenda: list[tuple[str, UUID, UUID | None, datetime]] = []
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
ACCOUNTS = _DRAFT_LISTS.index("accounts")
NOTHING = (0,) * len(_DRAFT_LISTS)
_lists_of: Callable[[Draft], tuple[list[Any], ...]] = attrgetter(*_DRAFT_LISTS)
