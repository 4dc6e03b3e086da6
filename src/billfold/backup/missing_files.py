"""Which documents a restored database names and its file store lacks."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.documents.ports import FileStore
    from billfold.platform.database.connection import (Connection)

_NAMED = "SELECT file_key FROM document WHERE file_key IS NOT NULL UNION ALL SELECT key FROM report_file_part"


async def count_missing_files(conn: Connection, files: FileStore) -> int:
    """Return how many documents and parts of reports were uploaded or made after the files were copied."""
    kept = set(await files.list_stored(wall_now() + timedelta(days=1)))
    return sum(row["file_key"] not in kept for row in await conn.fetch(_NAMED))
