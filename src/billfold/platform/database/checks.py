"""The framework of `verify`: checks that are queries, the findings they yield, and the report.

A part of the bank declares its checks as `CHECKS` in its `checks.py`; the runner finds them there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import compress
from string import Formatter
from typing import NamedTuple, Protocol
from uuid import UUID

from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import fetch_of_all, is_distributed

MAX_FINDINGS = 1_000
"""Maximum number of findings in a report: a bank whose every customer is damaged fits into memory."""
STATEMENT_TIMEOUT_SECONDS = 3_600.0
"""Timeout of one statement of a verification."""


class Certainty(IntEnum):
    """The certainty with which a finding names the damaged row itself, surest first.

    A row that differs from the chain is the damage; a wrong sum may only follow from it.
    """

    EXACT = 0
    CHANGED = 1
    MISSING = 2
    UNEXPECTED = 3
    DERIVED = 4
    SUSPECT = 5


class Finding(NamedTuple):
    """One bad row: its table, its key, and what is wrong with it."""

    table: str
    key: Mapping[str, object]
    message: str

    def __str__(self) -> str:  # type: ignore[explicit-override]  # Python 3.11 has no `override`
        """Return the finding as one line."""
        key = ", ".join(f"{name}={value}" for name, value in self.key.items())
        return f"{self.table}({key}): {self.message}"


class Report(NamedTuple):
    """The result of a verification: rows checked by table, the findings, and the surest of the first ones."""

    checked: Mapping[str, int]
    findings: tuple[Finding, ...]
    first: Finding | None
    left_out: int = 0

    @property
    def is_clean(self) -> bool:
        """Return whether every row is intact."""
        return self.first is None


class Findings:
    """Collects findings, up to a thousand of them, in sections: one per customer, one per set of checks."""

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self.found: list[Finding] = []
        self.first: tuple[int, int, Finding] | None = None
        self.section = 0
        self.omitted = 0

    def next_section(self) -> None:
        """Begin the next customer, or the next set of checks over all of them."""
        self.section += 1

    def add(
        self,
        table: str,
        key: Mapping[str, object],
        message: str,
        *,
        certainty: Certainty = Certainty.DERIVED,
    ) -> None:
        """Add a finding. The report begins with the surest of the first section that has any."""
        finding = Finding(table, key, message)
        if self.first is None or (self.section, certainty) < self.first[:2]:
            self.first = (self.section, certainty, finding)
        if len(self.found) < MAX_FINDINGS:
            self.found.append(finding)
        else:
            self.omitted += 1

    def extend(self, later: "Findings") -> None:
        """Add the findings of later sections."""
        if later.first is not None:
            section, certainty, finding = later.first
            if self.first is None or (self.section + section, certainty) < self.first[:2]:
                self.first = (self.section + section, certainty, finding)
        self.checked.update(later.checked)
        self.section += later.section
        self.found += later.found
        self.omitted += later.omitted + max(len(self.found) - MAX_FINDINGS, 0)
        del self.found[MAX_FINDINGS:]

    def report(self) -> Report:
        """Return all findings."""
        first = self.first[2] if self.first else None
        return Report(dict(self.checked), tuple(self.found), first, left_out=self.omitted)


class Check(NamedTuple):
    """A query that returns bad rows: columns quoted in the message are values, the others are the key.

    Its rows exist in the table, unless the certainty is MISSING: then they may be rows that should exist.
    """

    table: str
    message: str
    sql: str
    certainty: Certainty = Certainty.DERIVED


Declared = Mapping[tuple[str, Certainty], Mapping[str, str]]
"""Queries of bad rows by their message, by table and certainty."""


def declared(*parts: Declared) -> Iterator[Check]:
    """Yield the declared checks."""
    for part in parts:
        for (table, certainty), queries in part.items():
            yield from (Check(table, message, sql, certainty) for message, sql in queries.items())


async def run_checks(conn: Connection, findings: Findings, checks: Iterable[Check]) -> None:
    """Report the first hundred rows of every check; on one server one statement determines which checks have any.

    Planning a check costs more than running it on an empty table, so only those that can fail are planned.
    """
    checks = tuple(checks)
    tables = sorted({check.table for check in checks})
    filled = set(compress(tables, await any_rows(conn, [f"SELECT 1 FROM {table}" for table in tables])))
    checks = tuple(each for each in checks if each.table in filled or each.certainty is Certainty.MISSING)
    if not await is_distributed(conn):
        checks = tuple(compress(checks, await any_rows(conn, [check.sql for check in checks])))
    for check in checks:
        quoted = {name for _, name, *_ in Formatter().parse(check.message) if name}
        columns = (await conn.prepare(check.sql)).get_attributes()
        order = ", ".join(str(number + 1) for number in range(len(columns)))
        sql = f"SELECT * FROM ({check.sql}) bad ORDER BY {order} LIMIT 100"
        for row in await fetch_of_all(conn, sql, timeout=STATEMENT_TIMEOUT_SECONDS):
            key = {name: _key_value(name, value) for name, value in row.items() if name not in quoted}
            findings.add(check.table, key, check.message.format(**row), certainty=check.certainty)


async def any_rows(conn: Connection, queries: Sequence[str]) -> Iterable[bool]:
    """Return for each query whether it has any row, in one statement."""
    exists = ", ".join(f"EXISTS ({sql})" for sql in queries)
    return await conn.fetchrow(f"SELECT {exists}", timeout=STATEMENT_TIMEOUT_SECONDS * len(queries)) or ()


async def count_rows(conn: Connection, findings: Findings, tables: Iterable[str]) -> None:
    """Report the number of rows of these tables."""
    counts = ", ".join(f"(SELECT count(*) FROM {table}) AS {table}" for table in tables)
    counted = await conn.fetchrow(f"SELECT {counts}", timeout=STATEMENT_TIMEOUT_SECONDS)
    findings.checked.update(dict(counted or {}))


class NamedCommand(Protocol):
    """The part of a command class that its rows name."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the class names of its rows."""


def names_in_sql(*kinds: type[NamedCommand]) -> str:
    """Return the names of commands as stored in their rows, for an IN."""
    return ", ".join(f"'{name}'" for kind in kinds for name in kind.names())


def _key_value(name: str, value: object) -> object:
    """Return the id in a text of an outcome: ids in JSON are compared as text, because they may be damaged too."""
    if not (name.endswith("_id") and isinstance(value, str)):
        return value
    try:
        return UUID(value)
    except ValueError:
        return value
