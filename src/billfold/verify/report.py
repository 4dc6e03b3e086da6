"""What a proof found: how much was checked, and the first bad row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

MAX_FINDINGS = 1_000
"""How many findings a report holds: a bank whose every customer is damaged fits into memory."""
CHANGED, MISSING, UNEXPECTED, DERIVED, SUSPECT = range(5)
"""How surely a finding names the row itself, surest first.

A row that is not what the chain says is the damage; that a sum is off may only follow from it.
"""


class Finding(NamedTuple):
    """One bad row: which check met it, where it is, what is wrong with it."""

    check: str
    table: str
    key: Mapping[str, object]
    wrong: str

    def __str__(self) -> str:  # type: ignore[explicit-override]  # Python 3.11 has no `override`
        """The finding as one line for a person."""
        key = ", ".join(f"{name}={value}" for name, value in self.key.items())
        return f"{self.table}({key}): {self.wrong} [{self.check}]"


class Report(NamedTuple):
    """The outcome of a proof. `findings` holds, per customer, the first of every failed check."""

    checked: Mapping[str, int]
    findings: tuple[Finding, ...]
    first: Finding | None
    left_out: int = 0

    @property
    def is_clean(self) -> bool:
        """Is everything as it should be?"""
        return self.first is None


class Findings:
    """Collects the surest finding of every check and customer, up to a thousand of them."""

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self._first: tuple[int, Finding] | None = None
        self._section = 0
        self._by_place: dict[tuple[str, object], tuple[int, int, Finding]] = {}
        self._omitted = 0

    def next_section(self) -> None:
        """The next customer begins, or the next set of checks over all of them."""
        self._section += 1
        if self._first is None and self._by_place:
            certainty, _, finding = min(self._by_place.values(), key=lambda found: found[:2])
            self._first = certainty, finding

    def add(self, check: str, table: str, key: Mapping[str, object], wrong: str, certainty: int = DERIVED) -> None:
        """Keep this finding unless the check has a surer or an earlier one of the customer."""
        place = check, key.get("customer_id")
        previous = self._by_place.get(place)
        if previous is not None and (previous[1] < self._section or previous[0] <= certainty):
            return
        if previous is None and len(self._by_place) >= MAX_FINDINGS:
            self._omitted += 1
            return
        self._by_place[place] = (certainty, self._section, Finding(check, table, key, wrong))

    def report(self) -> Report:
        """Everything that was found."""
        self.next_section()
        found = tuple(finding for _, _, finding in self._by_place.values())
        first = self._first[1] if self._first else None
        return Report(dict(self.checked), found, first, self._omitted)
