"""What a proof found: how much was checked, and the first bad row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

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
    """The outcome of a proof. `findings` holds the first of every check that failed."""

    checked: Mapping[str, int]
    findings: tuple[Finding, ...]
    first: Finding | None

    @property
    def is_clean(self) -> bool:
        """Is everything as it should be?"""
        return self.first is None


class Findings:
    """Collects, per check, the surest finding of the first customer with one."""

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self._first: tuple[int, Finding] | None = None
        self._chapter = 0
        self._found: dict[str, tuple[int, int, Finding]] = {}

    def turn_page(self) -> None:
        """The next customer begins, or the next set of checks over all of them."""
        self._chapter += 1
        if self._first is None and self._found:
            sureness, _, finding = min(self._found.values(), key=lambda found: found[:2])
            self._first = sureness, finding

    def add(
        self, check: str, table: str, key: Mapping[str, object], wrong: str, sureness: int = DERIVED
    ) -> None:
        """Keep this finding unless the check has a surer or an earlier one."""
        known = self._found.get(check)
        if known is not None and (known[1] < self._chapter or known[0] <= sureness):
            return
        self._found[check] = (sureness, self._chapter, Finding(check, table, key, wrong))

    def report(self) -> Report:
        """Everything that was found."""
        self.turn_page()
        found = tuple(finding for _, _, finding in self._found.values())
        return Report(dict(self.checked), found, self._first[1] if self._first else None)
