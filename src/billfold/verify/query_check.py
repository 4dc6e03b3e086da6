"""A check that is one query."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from billfold.verify.report import DERIVED

if TYPE_CHECKING:
    from billfold.ledger.commands import Command


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
