"""Rows of files that customers download, and of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.documents.ports import StoredFile
from billfold.platform.errors import NotFound
from billfold.reports.downloads.types import ReportFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from billfold.platform.database.connection import (Connection, Pool)
    from billfold.reports.downloads.types import KeptFile

_COLUMNS = ", ".join(ReportFile.__struct_fields__)
_ADD = f"""
INSERT INTO report_file ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (file_id) DO NOTHING RETURNING true
"""
_ADD_PARTS = """
INSERT INTO report_file_part (file_id, part_no, key, size_bytes, sha256)
SELECT $1, t.part_no, t.key, t.size_bytes, t.sha256
  FROM unnest($2::text[], $3::bigint[], $4::text[]) WITH ORDINALITY AS t(key, size_bytes, sha256, part_no)
"""
_FIND = f"SELECT {_COLUMNS} FROM report_file WHERE file_id = $1 AND customer_id = $2"
_PARTS = "SELECT key, size_bytes, sha256 FROM report_file_part WHERE file_id = $1 ORDER BY part_no"
_ORPHANED = """
SELECT t.key FROM unnest($1::text[]) AS t(key)
 WHERE NOT EXISTS (SELECT 1 FROM report_file_part p WHERE p.key = t.key)
"""


async def add_file(conn: Connection, kept: KeptFile) -> bool:
    """Write down a file whose parts are kept; tell whether it was new. One that is there already stays as it is."""
    file, parts = kept.file, kept.parts
    values = (getattr(file, name) for name in ReportFile.__struct_fields__)
    if await conn.fetchval(_ADD, *values) is None:
        return False
    columns = ([each.key for each in parts], [each.size_bytes for each in parts], [each.sha256 for each in parts])
    await conn.execute(_ADD_PARTS, file.file_id, *columns)
    return True


async def get_file(conn: Connection | Pool, customer_id: UUID, file_id: UUID) -> ReportFile:
    """Return a file of a customer. Raises NotFound."""
    row = await conn.fetchrow(_FIND, file_id, customer_id)
    if row is None:
        raise NotFound("There is no such file.")
    return ReportFile(**row)


async def list_parts(conn: Connection | Pool, file_id: UUID) -> list[StoredFile]:
    """Return the parts of a file in their order."""
    return [StoredFile(**row) for row in await conn.fetch(_PARTS, file_id)]


async def find_orphaned_parts(conn: Connection | Pool, keys: Sequence[str]) -> list[str]:
    """Return those of these names in the file store that no file has as a part."""
    return [row["key"] for row in await conn.fetch(_ORPHANED, keys)]
