"""Files under the data keys of their customers: cut into parts, each sealed, so that none is in memory as a whole."""

from __future__ import annotations

from billfold.documents.ports import FileStore
from billfold.data_keys.keys import DataKeys
import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from io import BytesIO
from typing import IO, TYPE_CHECKING
from uuid import UUID

from billfold.data_keys.types import DataShredded
from billfold.documents.ports import StoredFile, StoredFileMissing
from billfold.platform.crypto import associated_data
from billfold.platform.errors import InvariantError, NotFound
from billfold.reports.downloads import store
from billfold.reports.downloads.types import PART_BYTES, KeptFile, ReportFile

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.ledger.bank import Bank

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
    """Keep the file of (customer_id, file_id), read from its beginning; when this returns it survives a crash.

    It can be downloaded once `store.add_file` has written it down, in the caller's transaction. Parts of a file that is
    never written down are discarded after days. `at` is business time.
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
        await _discard_parts(bank, parts)  # there may have been no room for the next one
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


async def discard(bank: Bank, kept: KeptFile) -> None:
    """Discard the parts of a file that was not written down, as far as the store lets it."""
    await _discard_parts(bank, kept.parts)


async def _discard_parts(bank: Bank, parts: Sequence[StoredFile]) -> None:
    for part in parts:
        with suppress(Exception):
            await bank.ports[FileStore].discard(part.key)


async def open_file(bank: Bank, file: ReportFile) -> AsyncIterator[bytes]:
    """Return the content of a file, part by part.

    The first part is read before this returns. Raises NotFound when it is not in the store, or was destroyed with the
    data key of its customer.
    """
    parts = await store.list_parts(bank.pool, file.file_id)
    first = await _open_part(bank, file, parts, 1) if parts else b""

    async def content() -> AsyncIterator[bytes]:
        yield first
        for part_no in range(2, len(parts) + 1):
            yield await _open_part(bank, file, parts, part_no)

    return content()


async def read_file(bank: Bank, file: ReportFile) -> bytes:
    """Return a file that is known to be small. Raises NotFound, and InvariantError when it is not what was kept."""
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
