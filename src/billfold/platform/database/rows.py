"""Rows as they are written to the database."""

from __future__ import annotations

from typing import ClassVar

import msgspec


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
