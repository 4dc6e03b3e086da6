"""Event types in groups, and presets of them, as a form offers them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from billfold.events.schemas import EventType

_PAYMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "Wires": ("transfers.wire.",),
    "ACH": ("transfers.ach.",),
    "Transfers within this bank": ("transfers.on-us.",),
    "Stablecoins": ("transfers.crypto.",),
    "Transfer requests, series and batches": ("transfers.", "batches."),
}
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    **_PAYMENTS,
    "Cards": ("card.",),
    "Pockets, holds and trades": ("pocket.", "portal.", "hold.", "trades.", "settlements."),
    "Company, team and payees": ("customer.", "team.", "policy.", "counterparty.", "application."),
    "Documents": ("reports.", "statements.", "proofs."),
    "Other": ("",),
}
_PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "payments": ("transfers.", "batches."),
    "cards": ("card.",),
    "all": ("",),
}
PRESETS: Final = {"payments": "Payments", "cards": "Cards", "failures": "Failures only", "all": "All", "none": "None"}
"""Choices of event types: how a form sends them, and what they are called."""
_FAILED = (".rejected", ".failed")


class EventGroup(NamedTuple):
    """A group of event types."""

    title: str
    types: Sequence[EventType]


def grouped(types: Iterable[EventType]) -> list[EventGroup]:
    """Return event types in groups, each in the first that it fits; empty groups are left out."""
    found: dict[str, list[EventType]] = {title: [] for title in _GROUPS}
    for each in sorted(types, key=lambda one: one.event):
        found[next(title for title, prefixes in _GROUPS.items() if each.event.startswith(prefixes))].append(each)
    return [EventGroup(title, items) for title, items in found.items() if items]


def of_preset(name: str, types: Iterable[EventType]) -> list[str]:
    """Return the event types of a preset; none of an unknown one."""
    names = [each.event for each in types]
    if name == "failures":
        return [each for each in names if each.endswith(_FAILED)]
    prefixes = _PRESETS.get(name)
    return [each for each in names if prefixes and each.startswith(prefixes)]
