"""The rows one batch writes for one customer, as the flows make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from billfold.flows.holdings import Account, Lot

CHAINED = ("journals", "legs", "trades", "activities", "events", "commands")
"""The lists of a draft that the chain covers, in the order in which they are hashed."""

_encode = msgspec.json.Encoder().encode


def as_json(value: object) -> str:
    """JSON text of a small record."""
    return _encode(value).decode()


class Draft:
    """The rows one batch writes for one customer, in the order they were made.

    Most commands make rows of a few kinds only. The lists of what the chain covers are there from
    the start, any other from its first use on; `kinds` names those that are.
    """

    kinds: list[str]
    accounts: list[tuple[Account, UUID | None]]
    journals: list[tuple[Any, ...]]
    legs: list[tuple[Any, ...]]
    trades: list[tuple[Any, ...]]
    activities: list[tuple[Any, ...]]
    events: list[tuple[Any, ...]]
    commands: list[tuple[Any, ...]]
    snapshots: list[tuple[Any, ...]]
    liens: list[tuple[Any, ...]]
    customers: list[tuple[Any, ...]]
    directory: list[tuple[Any, ...]]
    portals: list[tuple[Any, ...]]
    counterparties: list[tuple[Any, ...]]
    transfers: list[tuple[Any, ...]]
    ach_answers: list[tuple[Any, ...]]
    ach_entries: list[tuple[Any, ...]]
    settlements: list[tuple[Any, ...]]
    clearings: list[tuple[Any, ...]]
    suspense_items: list[tuple[Any, ...]]
    security_transfers: list[tuple[Any, ...]]
    wires: list[tuple[Any, ...]]
    wire_messages: list[tuple[Any, ...]]
    # What a command's outcome says of rows that change later: (table, id, fingerprint).
    proofs: list[tuple[str, UUID, str]]
    retired: list[Lot]
    # Appointments of the business clock: (kind, object_id, customer_id, at).
    agenda: list[tuple[str, UUID, UUID | None, datetime]]
    # Small changes of waiting things: (table, key, {column: value}).
    updates: list[tuple[str, UUID, dict[str, Any]]]

    __slots__ = (
        "accounts", "ach_answers", "ach_entries", "activities", "agenda", "clearings", "commands",
        "counterparties", "customers", "directory", "events", "journals", "kinds", "legs", "liens",
        "portals", "proofs", "retired", "security_transfers", "settlements", "snapshots",
        "suspense_items", "trades", "transfers", "updates", "wire_messages", "wires",
    )  # fmt: skip

    def __init__(self) -> None:
        self.journals, self.legs, self.trades = [], [], []
        self.activities, self.events, self.commands = [], [], []
        self.kinds = [*CHAINED]

    def __getattr__(self, name: str) -> list[Any]:
        """The list of a kind of which there was no row yet."""
        if name not in Draft.__slots__:
            raise AttributeError(name)
        rows: list[Any] = []
        setattr(self, name, rows)
        self.kinds.append(name)
        return rows

    def rows_of(self, kind: str) -> Sequence[Any]:
        """The rows of a kind, none where none were made."""
        return getattr(self, kind) if kind in self.kinds else ()

    def lengths(self) -> dict[str, int]:
        """Where each list that has rows ends now, for `cut`."""
        return {kind: length for kind in self.kinds if (length := len(getattr(self, kind)))}

    def cut(self, lengths: Mapping[str, int]) -> None:
        """Forget every row made since `lengths` was taken."""
        for kind in self.kinds:
            del getattr(self, kind)[lengths.get(kind, 0) :]
