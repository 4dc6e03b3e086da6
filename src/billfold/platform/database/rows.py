"""Rows as they are written to the database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import msgspec

from billfold.platform.crypto import fingerprint

if TYPE_CHECKING:
    from asyncpg import Record


class Row(msgspec.Struct, frozen=True, gc=False):
    """A row of `table`: its fields are the columns, in their order.

    `key_column` is the column by which a row is found among its customer's; None where there is
    one row per customer.
    """

    table: ClassVar[str]
    key_column: ClassVar[str | None] = None


_STORED_NAMES = {"ach_return_entry": "ach_answer", "authorization_request": "change_request"}


def stored_name(table: str) -> str:
    """The word for a table in outcomes and audit entries, which are never rewritten."""
    return _STORED_NAMES.get(table, table)


def proof_of(row: Record, columns: Iterable[str]) -> str:
    """Return the fingerprint of all these columns: an empty column is left out.

    So a column that is added later changes nothing, until something is in it. Nor is its place among
    the rows of the table part of a row.
    """
    return fingerprint([(n, row[n]) for n in sorted(columns) if n != "written_no" and row[n] is not None])
