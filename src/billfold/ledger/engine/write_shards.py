"""Writes the ledger of a distributed bank: one row per shard, which a trigger there takes apart (ADR 0107)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from billfold.ledger.book.rows import StoredEntry, TransactionEntry
from billfold.platform.database.distribution import SHARD_BATCH, shard_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from billfold.platform.database.connection import (Connection)

# The shards of a table number their rows by its one sequence.
_NUMBERS = """
SELECT array_agg(nextval('transaction_written_no_seq')) FROM generate_series(1, $1)
"""

Parts = dict[str, list[tuple[Any, ...]]]
"""Rows by part."""


async def write_shards(conn: Connection, parts_by_shard: Sequence[Parts]) -> None:
    """Write the parts of each shard, in the order of the shards."""
    await _number_transactions(conn, parts_by_shard)
    for parts in parts_by_shard:
        if entries := parts.get(StoredEntry.table):
            parts[StoredEntry.table] = [(*entry, _as_text(postings)) for *entry, postings in entries]
    widths = {part: len(rows[0]) for parts in parts_by_shard for part, rows in parts.items() if rows}
    columns = [shard_column(part, n) for part, width in widths.items() for n in range(1, width + 1)]
    records = [_record(parts, widths) for parts in parts_by_shard]
    await conn.copy_records_to_table(SHARD_BATCH, records=records, columns=["customer_id", *columns])


async def _number_transactions(conn: Connection, parts_by_shard: Sequence[Parts]) -> None:
    count = sum(len(parts.get(TransactionEntry.table, ())) for parts in parts_by_shard)
    if count:
        numbers = iter(await conn.fetchval(_NUMBERS, count))
        for parts in parts_by_shard:
            rows = parts.get(TransactionEntry.table, ())
            parts[TransactionEntry.table] = [(*row, next(numbers)) for row in rows]


def _record(parts: Parts, widths: Mapping[str, int]) -> list[Any]:
    """Return the row of one shard: a customer who lies in it, and the columns of its parts."""
    record: list[Any] = [parts["head"][0][0]]
    for part, width in widths.items():
        rows = parts.get(part)
        record.extend(zip(*rows, strict=True) if rows else [()] * width)
    return record


def _as_text(postings: Sequence[tuple[int, int, int, int, str]]) -> str:
    """Return packed postings as the database reads an array of them."""
    rows = [f'"({amount},{debit},{credit},{phase},{asset})"' for amount, debit, credit, phase, asset in postings]
    return f"{{{','.join(rows)}}}"
