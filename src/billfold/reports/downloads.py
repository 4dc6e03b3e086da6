"""Files that the bank made for a customer, and temporary URLs to download them.

A file is split into parts, each sealed with its customer's data key, so that no file is in memory as a whole. The
holder of a URL can download one file of one customer for ten minutes, without a token: its signature is an HMAC over
file, customer and expiry under the bank's key.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import IO, Final, Protocol
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKeys, DataShredded
from billfold.documents.ports import FileStore, StoredFile, StoredFileMissing
from billfold.ledger.bank import Bank
from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.rows import Table
from billfold.platform.errors import BillfoldError, InvariantError, NotFound

URL_LIFETIME: Final = timedelta(minutes=10)
"""Lifetime of a temporary URL, in wall time."""
PART_BYTES: Final = 4 * 1024 * 1024
"""Size of a part of a file. One part is in memory at a time; each is sealed and stored separately."""


class ReportFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a customer: its name, size and hash. `created_at` is business time.

    The name is ASCII: letters, digits, dots, underscores and hyphens.
    """

    customer_id: UUID
    file_id: UUID
    name: str
    media_type: str
    size_bytes: int
    sha256: str
    created_at: datetime
    proof: str | None = None
    """The signature of a file that has no place for it."""


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file whose parts are stored, before its row is inserted."""

    file: ReportFile
    parts: Sequence[StoredFile]


class Downloadable(Protocol):
    """The subject of a temporary URL: a file of a customer."""

    @property
    def customer_id(self) -> UUID:
        """The customer who owns the file."""

    @property
    def file_id(self) -> UUID:
        """The id of the file."""


class TemporaryUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A URL to download a file without a token, and its expiry in wall time."""

    url: str
    expires_at: datetime


_files = Table(ReportFile, "report_file", key=("customer_id", "file_id"), noun="file")
get_file = _files.get
_ADD_PARTS = """
INSERT INTO report_file_part (file_id, part_no, key, size_bytes, sha256)
SELECT $1, t.part_no, t.key, t.size_bytes, t.sha256
  FROM unnest($2::text[], $3::bigint[], $4::text[]) WITH ORDINALITY AS t(key, size_bytes, sha256, part_no)
"""
_PARTS = "SELECT key, size_bytes, sha256 FROM report_file_part WHERE file_id = $1 ORDER BY part_no"
_ORPHANED = """
SELECT t.key FROM unnest($1::text[]) AS t(key)
 WHERE NOT EXISTS (SELECT 1 FROM report_file_part p WHERE p.key = t.key)
"""


async def add_file(conn: Connection, kept: KeptFile) -> bool:
    """Insert a file whose parts are stored; return whether it was new. An existing one stays as it is."""
    file, parts = kept.file, kept.parts
    if not await _files.insert(conn, file, then="ON CONFLICT (file_id) DO NOTHING"):
        return False
    columns = ([each.key for each in parts], [each.size_bytes for each in parts], [each.sha256 for each in parts])
    await conn.execute(_ADD_PARTS, file.file_id, *columns)
    return True


async def list_parts(conn: Db, file_id: UUID) -> list[StoredFile]:
    """Return the parts of a file in order."""
    return [StoredFile(**row) for row in await conn.fetch(_PARTS, file_id)]


async def find_orphaned_parts(conn: Db, keys: Sequence[str]) -> list[str]:
    """Return the given names in the file store that are not parts of any file."""
    return [row["key"] for row in await conn.fetch(_ORPHANED, keys)]


_GONE = "The file is no longer available."


async def keep_file(
    bank: Bank,
    ids: tuple[UUID, UUID],
    content: IO[bytes] | bytes,
    *,
    name: str,
    media_type: str,
    at: datetime,
    proof: str | None = None,
) -> KeptFile:
    """Store the file of (customer_id, file_id), read from its beginning; when this returns it survives a crash.

    It can be downloaded once `add_file` has inserted it, in the caller's transaction. Parts of a file that is
    never inserted are deleted after days. `at` is business time.
    """
    customer_id, file_id = ids
    source = BytesIO(content) if isinstance(content, bytes) else content
    source.seek(0)
    data_key = await bank.ports[DataKeys].of(bank.pool, customer_id)
    digest, size, parts = hashlib.sha256(), 0, list[StoredFile]()
    try:
        while part := await asyncio.to_thread(source.read, PART_BYTES):
            digest.update(part)
            size += len(part)
            sealed = await asyncio.to_thread(data_key.seal, part, _place(ids, len(parts) + 1))
            parts.append(await bank.ports[FileStore].keep(sealed))
    except Exception:
        await discard(bank, parts)  # the next part may have failed for lack of space
        raise
    file = ReportFile(
        customer_id=customer_id,
        file_id=file_id,
        name=name,
        media_type=media_type,
        size_bytes=size,
        sha256=digest.hexdigest(),
        created_at=at,
        proof=proof,
    )
    return KeptFile(file=file, parts=parts)


async def discard(bank: Bank, parts: Sequence[StoredFile]) -> None:
    """Delete the parts of a file that was not inserted, as far as the store allows."""
    for part in parts:
        with suppress(Exception):
            await bank.ports[FileStore].discard(part.key)


async def open_file(bank: Bank, file: ReportFile) -> AsyncIterator[bytes]:
    """Return the content of a file, part by part.

    The first part is read before this returns. Raises NotFound if it is not in the store, or was destroyed with its
    customer's data key.
    """
    parts = await list_parts(bank.pool, file.file_id)
    first = await _open_part(bank, file, parts, 1) if parts else b""

    async def content() -> AsyncIterator[bytes]:
        yield first
        for part_no in range(2, len(parts) + 1):
            yield await _open_part(bank, file, parts, part_no)

    return content()


async def read_file(bank: Bank, file: ReportFile) -> bytes:
    """Return a small file. Raises NotFound, and InvariantError if it differs from the stored one."""
    content = b"".join([part async for part in await open_file(bank, file)])
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InvariantError("A file is not what was kept.", file_id=str(file.file_id))
    return content


async def _open_part(bank: Bank, file: ReportFile, parts: list[StoredFile], part_no: int) -> bytes:
    place = _place((file.customer_id, file.file_id), part_no)
    try:
        sealed = await bank.ports[FileStore].fetch(parts[part_no - 1])
        return await bank.ports[DataKeys].open(bank.pool, file.customer_id, sealed, place)
    except (StoredFileMissing, DataShredded):
        raise NotFound(_GONE) from None


def _place(ids: tuple[UUID, UUID], part_no: int) -> bytes:
    customer_id, file_id = ids
    return associated_data("report_file_part", str(part_no), file_id, tenant_id=customer_id)


_PURPOSE: Final = "download"
_SIGNATURE = re.compile(r"[A-Za-z0-9_-]{48}")  # 36 bytes: one text for each


def temporary_url(vault: Vault, host: str, file: Downloadable, wall: datetime) -> TemporaryUrl:
    """Return a URL of a file on a host of either API, such as `caller.host`. It is valid from now on."""
    expires_at = (wall + URL_LIFETIME).replace(microsecond=0)
    expires = str(int(expires_at.timestamp()))
    signed = _message(str(file.file_id), str(file.customer_id), expires)
    signature = base64.urlsafe_b64encode(vault.compute_mac(signed, _PURPOSE)).decode()
    query = f"customer={file.customer_id}&expires={expires}&signature={signature}"
    return TemporaryUrl(url=f"https://{host}/downloads/{file.file_id}?{query}", expires_at=expires_at)


def check_url(
    vault: Vault, file_id: str, *, customer: str, expires: str, signature: str, wall: datetime
) -> tuple[UUID, UUID]:
    """Return (customer_id, file_id) of a URL from us. Raises `download-url-invalid`, `download-url-expired`."""
    if not vault.verify_mac(_mac_of(signature), _message(file_id, customer, expires), _PURPOSE):
        raise BillfoldError("download-url-invalid", "The URL was altered, or is not one of this bank.")
    if datetime.fromtimestamp(int(expires), UTC) <= wall:
        raise BillfoldError("download-url-expired", "The URL was valid for 10 minutes.")
    return UUID(customer), UUID(file_id)


def _mac_of(signature: str) -> bytes:
    """Return the bytes of a signature; empty unless it is in this module's encoding."""
    if not _SIGNATURE.fullmatch(signature):
        return b""
    return base64.urlsafe_b64decode(signature)


def _message(*parts: str) -> bytes:
    return "\n".join(parts).encode(errors="surrogatepass")
