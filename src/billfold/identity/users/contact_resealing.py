"""Seals contact details again that were sealed under a former encryption key, row by row: it may be repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

import asyncpg

from billfold.identity.users.contact_details import CONTACT_TABLES, ContactTable

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.ledger.bank import Bank

_BATCH_SIZE = 500
_NOT_CURRENT = """
SELECT {key} AS row_id, email, phone_number FROM {table}
 WHERE substring(email_index FOR 4) IS DISTINCT FROM $1 AND {key} > $2 ORDER BY {key} LIMIT $3
"""
_REPLACE = """
UPDATE {table} SET email = $3, email_index = $4, phone_number = $5 WHERE {key} = $1 AND email = $2 RETURNING true
"""


async def reseal_contact_details(bank: Bank, progress: Callable[[str], None]) -> int:
    """Seal every row that is not sealed under the current key; return how many."""
    return sum([await _reseal_table(bank, table, progress) for table in CONTACT_TABLES])


async def _reseal_table(bank: Bank, table: ContactTable, progress: Callable[[str], None]) -> int:
    count, after = 0, UUID(int=0)
    key_id, statement = bytes.fromhex(bank.vault.key_id), _NOT_CURRENT.format(**table._asdict())
    while rows := await bank.pool.fetch(statement, key_id, after, _BATCH_SIZE):
        for row in rows:
            count += await _reseal_row(bank, table, row, progress=progress)
        after = rows[-1]["row_id"]
        progress(f"{count} of {table.table} are sealed again")
    return count


async def _reseal_row(bank: Bank, table: ContactTable, row: Record, *, progress: Callable[[str], None]) -> bool:
    row_id = row["row_id"]
    found = table.open(bank.vault, row_id, row)
    sealed = table.seal(bank.vault, row_id, found["email"], phone_number=found["phone_number"])
    try:
        done = await bank.pool.fetchval(_REPLACE.format(**table._asdict()), row_id, row["email"], *sealed)
    except asyncpg.UniqueViolationError:
        progress(f"{table.table} {row_id} stays as it is: another has its e-mail address")
        return False
    return done is True
