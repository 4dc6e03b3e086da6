"""The contents of files, encrypted as a whole with the bank's own data key: a file holds payments of many customers."""

import asyncio
from hashlib import sha256
from uuid import UUID

from billfold.data_keys.data_key import DataKey
from billfold.data_keys.keys import bank_key
from billfold.ledger.bank import Bank
from billfold.payments.files import store
from billfold.payments.files.types import RailFile, SealedContent
from billfold.platform.crypto import associated_data


def seal_content(data_key: DataKey, file_id: UUID, plain: bytes) -> SealedContent:
    """Return the content of a file as it is stored."""
    return SealedContent(data_key.seal(plain, _place(data_key, file_id)), data_key.digest(plain))


def open_content(data_key: DataKey, file_id: UUID, stored: bytes) -> bytes:
    """Return the content of a file. Raises InvariantError when it was altered or moved."""
    return data_key.open(stored, _place(data_key, file_id))


async def read_content(bank: Bank, file_id: UUID) -> bytes:
    """Return the content of a file. Raises NotFound, and InvariantError when it was altered or moved."""
    stored, is_sealed = await store.get_content(bank.pool, file_id)
    if not is_sealed:
        return stored
    return await asyncio.to_thread(open_content, await bank_key(bank), file_id, stored)


def is_content_of(data_key: DataKey, file: RailFile, plain: bytes) -> bool:
    """Tell whether a file has this content."""
    return file.digest in {data_key.digest(plain), sha256(plain).digest()}


def _place(data_key: DataKey, file_id: UUID) -> bytes:
    return associated_data("rail_file", "content", file_id, tenant_id=data_key.subject_id)
