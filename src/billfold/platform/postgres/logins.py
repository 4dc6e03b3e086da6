"""Users of a server that are neither its superuser nor the owner of anything."""

from billfold.platform.database.connection import connect

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
