"""Whose rights a session has: the application's sessions can become nobody who owns a table."""

from billfold.platform.database.connection import Connection, connect

_MAY_BECOME_OWNER = """
SELECT session_user, pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = to_regclass($1)), 'MEMBER')
"""


async def find_owner(conn: Connection, table: str) -> str | None:
    """Return who has logged in if it owns a table or can become its owner, else None."""
    row = await conn.fetchrow(_MAY_BECOME_OWNER, table)
    return row[0] if row and row[1] else None


_LOCK = 0x6C6F6769  # "logi"
_FIND = "SELECT rolcanlogin FROM pg_roles WHERE rolname = $1"


async def ensure_login(dsn: str, role: str) -> None:
    """Let there be a role that may log in, and may do nothing else until it is granted something."""
    conn = await connect(dsn)
    try:
        async with conn.transaction():
            await conn.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)  # others start at the same time
            may_login = await conn.fetchval(_FIND, role)
            if not may_login:
                await conn.execute(f'{"CREATE" if may_login is None else "ALTER"} ROLE "{role}" LOGIN')
    finally:
        await conn.close()
