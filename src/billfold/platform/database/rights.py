"""Whose rights a session has: the application's sessions can become nobody who owns a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection)

_MAY_BECOME_OWNER = """
SELECT session_user, pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = to_regclass($1)), 'MEMBER')
"""


async def find_owner(conn: Connection, table: str) -> str | None:
    """Return who has logged in if it owns a table or can become its owner, else None."""
    row = await conn.fetchrow(_MAY_BECOME_OWNER, table)
    return row[0] if row and row[1] else None
