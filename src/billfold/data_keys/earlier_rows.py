"""Seals what an earlier release stored in plain text, row by row: it may be stopped and begun again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.data_keys.columns import SealedColumn

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.ledger.bank import Bank

_BATCH_SIZE = 500
_PLAIN = """
SELECT customer_id, {key} AS row_id, {column}::text AS stored, {subject} AS subject_id FROM {table}
 WHERE NOT starts_with({column}::text, '"sealed:') AND NOT starts_with({column}::text, 'sealed:')
   AND {column}::text NOT IN ('{{}}', '') AND (customer_id, {key}) > ($1, $2)
 ORDER BY customer_id, {key} LIMIT $3
"""
_REPLACE = """
UPDATE {table} SET {column} = $4 WHERE customer_id = $1 AND {key} = $2 AND {column}::text = $3 RETURNING true
"""


async def seal_earlier_rows(bank: Bank, column: SealedColumn, progress: Callable[[str], None]) -> int:
    """Seal the plain values of a column that no chain and no fingerprint covers; return how many.

    A row that changes meanwhile is left to whoever changed it: this release writes it sealed.
    """
    names = column._asdict()
    count, after = 0, (UUID(int=0), UUID(int=0))
    while rows := await bank.pool.fetch(_PLAIN.format(**names), *after, _BATCH_SIZE):
        for row in rows:
            count += await _seal(bank, column, row, _REPLACE.format(**names))
        after = rows[-1]["customer_id"], rows[-1]["row_id"]
        progress(f"{count} of {column.table}.{column.column} are sealed")
    return count


async def _seal(bank: Bank, column: SealedColumn, row: Record, statement: str) -> bool:
    data_key = await bank.data_keys.of(bank.pool, row["subject_id"])
    stored = column.stored(column.seal(data_key, row["row_id"], row["stored"]))
    values = (row["customer_id"], row["row_id"], row["stored"], stored)
    return await bank.pool.fetchval(statement, *values) is not None
