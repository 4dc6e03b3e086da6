"""Tells whether the customers of this bank lie on the nodes of a Citus cluster, and how to read and write there.

ADRs 0093, 0107 and 0164.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import asyncpg

from billfold.platform.clock import monotonic
from billfold.platform.database.business_clock import CLOCK_LOCK
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.shortage import PATIENCE_SECONDS, PAUSE_SECONDS, database_unavailable
from billfold.platform.errors import Unavailable

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

_PAUSE_SECONDS = 1.0
_LOCKED_SECONDS = 10.0
"""Bookings wait as long as the lock is held alone: a node that hangs must not stop them."""
# Bookings wait behind who waits for the lock.
_LOCK = f"SET LOCAL lock_timeout = '2s'; SELECT pg_advisory_lock({CLOCK_LOCK})"
_UNLOCK = f"SELECT pg_advisory_unlock({CLOCK_LOCK})"
_BEGIN_AGAIN = f"ROLLBACK AND CHAIN; {_UNLOCK}"
# One connection to each node, hence one snapshot of it, until the transaction ends.
_ONE_CONNECTION = """
SET LOCAL citus.max_adaptive_executor_pool_size = 1;
SET LOCAL citus.propagate_set_commands = 'local';
SET LOCAL citus.max_intermediate_result_size = -1
"""
_FROM_EVERY_NODE = "SELECT (SELECT customer_id FROM ledger_head LIMIT 1), (SELECT kind FROM directory LIMIT 1)"
_PREPARED = """
SELECT success, result FROM run_command_on_workers($$
  SELECT coalesce(string_agg(gid, ' '), '') FROM pg_prepared_xacts WHERE database = current_database() $$)
"""
# Where the shards lay, and where nodes know them to lie now: that is where statements go.
_PLACES = "SELECT md5(string_agg(shardid || ' ' || groupid, ',' ORDER BY shardid, groupid)) FROM pg_dist_placement"
_MOVED = f"SELECT bool_or(result <> ({_PLACES})) FROM run_command_on_workers($places${_PLACES}$places$)"


async def is_distributed(conn: Db) -> bool:
    """Tell whether a statement goes to the shards of the customers that its values name."""
    return bool(await conn.fetchval("SELECT to_regclass($1) IS NOT NULL", SHARD_BATCH))


@asynccontextmanager
async def one_snapshot(
    conn: Connection,
    *,
    distributed: bool,
    readonly: bool = True,
    begin_others: Callable[[], Awaitable[object]] | None = None,
    tries: int = 5,
) -> AsyncIterator[None]:
    """Begin a transaction that sees every batch whole, or not at all, on all nodes of a cluster.

    `begin_others` begins transactions of other connections at the same cut. Raises Unavailable if a booking, or what a
    node has prepared, does not end in a few `tries`, and before the commit if a shard was moved meanwhile.
    """
    async with conn.transaction(isolation="repeatable_read", readonly=readonly):
        if distributed:
            await _cut(conn, begin_others, tries)
        yield
        if distributed and await conn.fetchval(_MOVED):
            raise Unavailable("A shard was moved meanwhile: its rows were not seen. Try again.")


async def begin_snapshots(conn: Connection) -> None:
    """Begin the snapshot of every node, in a transaction that reads them as of now until its end."""
    await conn.execute(_ONE_CONNECTION)
    await conn.fetchval(_FROM_EVERY_NODE)


async def _cut(conn: Connection, begin_others: Callable[[], Awaitable[object]] | None, tries: int) -> None:
    """Begin the snapshots while no batch is half there. The first transaction waits for the lock, the next sees."""
    for _ in range(tries):
        is_cut = False
        try:
            async with asyncio.timeout(_LOCKED_SECONDS):
                await conn.execute(_LOCK)
                if not await _list_prepared(conn):
                    await conn.execute("COMMIT AND CHAIN")  # a pooler keeps the session, which has the lock
                    await begin_snapshots(conn)
                    if begin_others is not None:
                        await begin_others()
                    is_cut = True
        except (TimeoutError, asyncpg.LockNotAvailableError, Unavailable):
            pass
        finally:  # no cancellation may return a connection to its pool that holds the lock
            await asyncio.shield(conn.execute(_UNLOCK if is_cut else _BEGIN_AGAIN))
        if is_cut:
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise Unavailable("A booking, or a transaction that a node has prepared, does not end.")


async def await_prepared(conn: Db) -> None:
    """Wait until every node has ended what it has prepared: then all that was acknowledged before can be read.

    What a node has prepared when it dies cannot be read for seconds after its return, though it was acknowledged. For
    decisions that an absent row would make wrong for good. Raises Unavailable if a node does not answer or end it.
    """
    if not await is_distributed(conn):
        return
    waiting, until = await _list_prepared(conn), monotonic() + PATIENCE_SECONDS
    while waiting and monotonic() < until:
        await asyncio.sleep(PAUSE_SECONDS)
        waiting &= await _list_prepared(conn)
    if waiting:
        raise database_unavailable()


async def _list_prepared(conn: Db) -> set[str]:
    nodes = await conn.fetch(_PREPARED)
    if not all(succeeded for succeeded, _ in nodes):
        raise database_unavailable()
    return {gid for _, gids in nodes for gid in gids.split()}


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
