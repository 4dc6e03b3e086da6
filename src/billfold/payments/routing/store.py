"""The imported directories."""

from collections.abc import Sequence

from billfold.payments.routing.directory import DirectoryEntry
from billfold.platform.database.connection import Connection, Db

_COLUMNS = ", ".join(DirectoryEntry._fields)
_GET = f"SELECT {_COLUMNS} FROM routing_directory WHERE routing_number = $1"
_NAMES = (
    "SELECT DISTINCT ON (routing_number) routing_number, name FROM routing_directory WHERE routing_number = ANY($1)"
)
_DROP = "DELETE FROM routing_directory WHERE rail = $1"


async def list_entries(conn: Db, routing_number: str) -> dict[str, DirectoryEntry]:
    """Return the entries of a routing number by rail."""
    return {row["rail"]: DirectoryEntry(*row) for row in await conn.fetch(_GET, routing_number)}


async def list_bank_names(conn: Db, routing_numbers: Sequence[str]) -> dict[str, str]:
    """Return the names of the banks of these routing numbers, as far as the directories have them."""
    rows = await conn.fetch(_NAMES, list({*routing_numbers}))
    return {row["routing_number"]: row["name"] for row in rows}


async def replace_directory(conn: Connection, entries: Sequence[DirectoryEntry]) -> None:
    """Replace the directory of the rail of these entries, all at once."""
    async with conn.transaction():
        await conn.execute(_DROP, entries[0].rail)
        await conn.copy_records_to_table("routing_directory", records=entries, columns=DirectoryEntry._fields)
