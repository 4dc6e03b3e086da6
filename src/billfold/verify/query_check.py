"""Checks that are one query each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.verify.report import DERIVED, Findings
from billfold.verify.streams import STATEMENT_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from billfold.ledger.commands import Command
    from billfold.platform.database.pool import Connection

_UUID_LENGTH = 36


class Check(NamedTuple):
    """A query whose rows are bad ones; its columns are their key."""

    check: str
    table: str
    wrong: str
    sql: str
    certainty: int = DERIVED


def names_in_sql(*kinds: type[Command]) -> str:
    """Return the names of commands as their rows have them, for an IN."""
    return ", ".join(f"'{name}'" for kind in kinds for name in kind.names())


async def run_checks(conn: Connection, findings: Findings, queries: Iterable[Check]) -> None:
    """Report every row that these queries yield; how many each does is asked of all in one go."""
    all_checks = tuple(queries)
    counted = ", ".join(f"(SELECT count(*) FROM ({each.sql}) rows)" for each in all_checks)
    timeout_seconds = STATEMENT_TIMEOUT_SECONDS * len(all_checks)
    counts = await conn.fetchrow(f"SELECT {counted}", timeout=timeout_seconds)
    for query in compress(all_checks, counts or ()):
        for row in await conn.fetch(query.sql, timeout=STATEMENT_TIMEOUT_SECONDS):
            key = {name: _as_id(value) if name.endswith("_id") else value for name, value in row.items()}
            findings.add(query.check, query.table, key, query.wrong, query.certainty)


def _as_id(value: object) -> object:
    """The id that a command's outcome names, when it is one."""
    try:
        return UUID(value) if isinstance(value, str) and len(value) == _UUID_LENGTH else value
    except ValueError:
        return value
