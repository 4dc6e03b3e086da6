"""Tells whether the customers of this bank lie on the nodes of a Citus cluster, and sends batches to a shard there.

ADRs 0093 and 0107.
"""

import re
from collections.abc import Sequence

import asyncpg

from billfold.platform.database.connection import Connection, Db

HEADS_LOCKED = "ledger_heads_locked"
"""The function that locks heads, in a cluster shard by shard."""

SHARD_BATCH = "shard_batch"
"""The table that `migrate up --distributed` creates, which marks a distributed bank.

A batch inserts one row per shard into it; a trigger writes its contents into the other tables.
"""

SHARD_PARTS = {
    "head": "ledger_head_move",
    "basis": "lot_basis",
    "counters": "pocket_counters",
    "account": "new_account",
    "journal_entry": "journal_entry",
    "chain_entry": "chain_entry",
    "trade": "trade",
    "transaction": "new_transaction",
    "command": "command",
    "transfer": "transfer",
    "card_authorization": "card_authorization",
}
"""The columns of a row, by the database type that has them: how rows move, then new rows by table.

Each column of each is an array, since Citus sends arrays of built-in types as they are and composite types as text.
"""

# Statements that copy a table from its shards, and views, which may read them; those that a view reads come later.
_COPIES = """
SELECT c.relname::text, CASE c.relkind WHEN 'v' THEN rtrim(pg_get_viewdef(c.oid), ';')
                                       ELSE format('SELECT * FROM %I', c.relname) END
  FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
 WHERE c.relnamespace = current_schema()::regnamespace AND (p.partmethod = 'h' OR c.relkind = 'v')
 ORDER BY c.relkind = 'v' DESC, c.oid DESC
"""


async def is_distributed(conn: Db) -> bool:
    """Tell whether a statement goes to the shards of the customers that its values name."""
    return bool(await conn.fetchval("SELECT to_regclass($1) IS NOT NULL", SHARD_BATCH))


async def fetch_of_all(conn: Connection, sql: str, *, timeout: float) -> Sequence[asyncpg.Record]:
    """Return the rows of a statement about all customers, in a transaction. Citus executes it where the rows lie.

    What it refuses, as it joins only co-located tables, reads copies of the tables that the statement names.
    """
    try:
        async with conn.transaction():
            return await conn.fetch(sql, timeout=timeout)
    except asyncpg.FeatureNotSupportedError:
        words, copies, used = set(re.findall(r"\w+", sql)), list[str](), ""
        for name, copy in await conn.fetch(_COPIES):
            if name in words:
                words.update(re.findall(r"\w+", copy))
                copies.insert(0, f'"{name}" AS MATERIALIZED ({copy})')
                used += f' LEFT JOIN "{name}" ON false'
        # A part that is executed on the coordinator by itself has no rows of a copy that the whole does not name.
        sql = f"WITH {', '.join(copies)} SELECT found.* FROM ({sql}) found{used}"
        return await conn.fetch(sql, timeout=timeout)


def shard_column(part: str, number: int) -> str:
    """Return the name of the column that carries column `number`, from 1 on, of a part."""
    return f"{part}_{number}"
