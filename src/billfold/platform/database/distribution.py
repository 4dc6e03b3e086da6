"""Tells whether the customers of this bank lie on the nodes of a Citus cluster, and sends batches to a shard there.

ADRs 0093 and 0107.
"""

from billfold.platform.database.connection import Connection, Pool

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

GATHER = "tables_gathered"
"""The function that copies all shards to the coordinator, into tables that one transaction reads."""
_GATHER_SECONDS = 3_600.0


async def is_distributed(conn: Connection | Pool) -> bool:
    """Tell whether a statement goes to the shards of the customers that its values name."""
    return bool(await conn.fetchval("SELECT to_regclass($1) IS NOT NULL", SHARD_BATCH))


async def gather_tables(conn: Connection) -> None:
    """Copy all shards to the coordinator, as tables that only this transaction reads from now on.

    For a verification, which compares all rows with each other: Citus joins only co-located tables.
    """
    await conn.execute(f"SELECT {GATHER}()", timeout=_GATHER_SECONDS)


def shard_column(part: str, number: int) -> str:
    """Return the name of the column that carries column `number`, from 1 on, of a part."""
    return f"{part}_{number}"
