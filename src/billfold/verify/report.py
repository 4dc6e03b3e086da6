"""What a proof found: how much was checked, and the first bad row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

KEPT_MAX = 1_000
"""How many findings a report holds: a bank whose every customer is damaged fits into memory."""
CHANGED, MISSING, LEFT_OVER, DERIVED, SUSPECT = range(5)
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
        self._chapter = 0
        self._found: dict[tuple[str, object], tuple[int, int, Finding]] = {}
        self._left_out = 0

    def turn_page(self) -> None:
        """The next customer begins, or the next set of checks over all of them."""
        self._chapter += 1
        if self._first is None and self._found:
            sureness, _, finding = min(self._found.values(), key=lambda found: found[:2])
            self._first = sureness, finding

    def add(
        self, check: str, table: str, key: Mapping[str, object], wrong: str, sureness: int = DERIVED
    ) -> None:
        """Keep this finding unless the check has a surer or an earlier one of the customer."""
        place = check, key.get("customer_id")
        known = self._found.get(place)
        if known is not None and (known[1] < self._chapter or known[0] <= sureness):
            return
        if known is None and len(self._found) >= KEPT_MAX:
            self._left_out += 1
            return
        self._found[place] = (sureness, self._chapter, Finding(check, table, key, wrong))

    def report(self) -> Report:
        """Everything that was found."""
        self.turn_page()
        found = tuple(finding for _, _, finding in self._found.values())
        first = self._first[1] if self._first else None
        return Report(dict(self.checked), found, first, self._left_out)
