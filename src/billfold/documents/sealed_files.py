"""Files of documents and their names under the data keys of those whom they are about."""

from __future__ import annotations

from billfold.documents.ports import FileStore
from billfold.data_keys.keys import DataKeys
import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.data_keys.columns import DOCUMENT_NAME, open_column
from billfold.data_keys.types import DataShredded
from billfold.documents.ports import StoredFileMissing
from billfold.platform.crypto import associated_data

if TYPE_CHECKING:
    from billfold.documents.ports import StoredFile
    from billfold.documents.types import DocumentRow
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection, Pool)

_BATCH_SIZE = 100


async def keep_sealed(bank: Bank, subject: UUID, document_id: UUID, content: bytes) -> StoredFile:
    """Keep a document's file for good, sealed with a key; size and hash are those of what is kept."""
    data_key = await bank.ports[DataKeys].of(bank.pool, subject)
    return await bank.ports[FileStore].keep(await asyncio.to_thread(data_key.seal, content, _place(subject, document_id)))


async def seal_name(bank: Bank, subject: UUID, document_id: UUID, name: str | None) -> str | None:
    """Return the name of a document's file, sealed."""
    return name and DOCUMENT_NAME.seal(await bank.ports[DataKeys].of(bank.pool, subject), document_id, name)


async def open_names(conn: Connection | Pool, bank: Bank, rows: Sequence[DocumentRow]) -> list[DocumentRow]:
    """Return documents with the names of their files as they were sent, None where one was destroyed with its key."""
    named = [(row.subject, row.document_id, row.name) for row in rows if row.name is not None]
    opened = iter(await open_column(bank.ports[DataKeys], conn, DOCUMENT_NAME, named))
    return [row if row.name is None else msgspec.structs.replace(row, name=next(opened)) for row in rows]


async def fetch_opened(bank: Bank, row: DocumentRow) -> bytes:
    """Return a document's file as it was sent. Raises StoredFileMissing, also when it was destroyed with its key."""
    if row.file is None:
        raise StoredFileMissing("the document has no file")
    content = await bank.ports[FileStore].fetch(row.file)
    if not row.file_sealed:
        return content
    try:
        return await bank.ports[DataKeys].open(bank.pool, row.subject, content, aad=_place(row.subject, row.document_id))
    except DataShredded:
        raise StoredFileMissing("it was destroyed at the end of its retention") from None


def _place(subject: UUID, document_id: UUID) -> bytes:
    return associated_data("document", "file", document_id, tenant_id=subject)
