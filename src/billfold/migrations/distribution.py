"""Spreads a migrated, empty database over the nodes of a Citus cluster (ADR 0093).

The placement of a table follows from the catalog. A tenant table lies with its customer: `customer_id` is in each of
its unique keys, no trigger guards it and no column holds a transaction id, which is valid on one server only. The
directory lies by its value, the list of a partner's Pockets with the partner, the market and the partners on every
node, everything else on the coordinator.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from billfold.migrations.runner import MigrationError, Progress, exclusive, ignore, read_migrations, run_briefly
from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import HEADS_LOCKED, SHARD_BATCH, SHARD_PARTS, shard_column
from billfold.platform.database.pool import APP_ROLE

_MOVES = ("head", "basis", "counters")
"""Parts that are not new rows."""
_PACKED = "packed_posting[]"

_COLUMNS = """
SELECT attname::text, format_type(atttypid, -1)
  FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE t.oid = $1::regtype ORDER BY a.attnum
"""
# A column that the table numbers by itself comes last.
_NUMBERED = "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::regclass AND attidentity <> ''"
_HAS = """
SELECT attname || ' ' || format_type(atttypid, -1)
  FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
"""
_BESIDE = """
SELECT b.shardid, array_agg(c.relname::text), array_agg(s.shardid)
  FROM pg_dist_shard b JOIN pg_dist_shard s USING (shardminvalue) JOIN pg_class c ON c.oid = s.logicalrelid
  JOIN pg_dist_partition p ON p.logicalrelid = b.logicalrelid
  JOIN pg_dist_partition q ON q.logicalrelid = s.logicalrelid AND q.colocationid = p.colocationid
 WHERE b.logicalrelid = $1::regclass GROUP BY b.shardid ORDER BY b.shardid
"""
_TAKEN_APART = f"""
CREATE OR REPLACE FUNCTION {SHARD_BATCH}_written() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('SELECT {SHARD_BATCH}_%s($1)', substring(TG_TABLE_NAME FROM '[0-9]+$'))
    USING ROW(NEW.*)::{SHARD_BATCH};
  RETURN NULL;
END $$
"""
_TRIGGER = f"""
CREATE TRIGGER {SHARD_BATCH}_written BEFORE INSERT ON {SHARD_BATCH} FOR ROW EXECUTE FUNCTION {SHARD_BATCH}_written()
"""


class _Column(NamedTuple):
    name: str
    type: str


_Parts = Mapping[str, Sequence[_Column]]
_Briefly = Callable[..., Awaitable[None]]
"""Runs a statement about a table, whose name comes first."""


async def create_shard_functions(conn: Connection, anchor: str, briefly: _Briefly) -> None:
    """Create or complete the table of batches, next to that of the name `anchor`, its trigger and the functions."""
    parts = {part: await _columns(conn, part, kind) for part, kind in SHARD_PARTS.items()}
    columns = {
        shard_column(part, n): "text" if column.type == _PACKED else column.type
        for part, its_columns in parts.items()
        for n, column in enumerate(its_columns, start=1)
    }
    has = {column for (column,) in await conn.fetch(_HAS, SHARD_BATCH)}
    added = [column for name, kind in columns.items() if (column := f"{name} {kind}[]") not in has]
    if added and has:  # the release before names the columns that it fills
        await briefly(SHARD_BATCH, f"ALTER TABLE {SHARD_BATCH} ADD COLUMN {', ADD COLUMN '.join(added)}")
    elif added:
        await conn.execute("SET LOCAL citus.enable_unsafe_triggers = on")
        await conn.execute(f"CREATE TABLE {SHARD_BATCH} (customer_id uuid NOT NULL, {', '.join(added)})")
        await conn.execute(
            f"SELECT create_distributed_table('{SHARD_BATCH}', 'customer_id', colocate_with => $1)", anchor
        )
        await conn.execute(_TAKEN_APART)
        await conn.execute(_TRIGGER)
    moves = [
        await conn.fetchval("SELECT pg_get_functiondef($1::regproc)", name) for name in ("ledger_move", "pockets_move")
    ]
    for shard, tables, ids in await conn.fetch(_BESIDE, SHARD_BATCH):
        for definition in (*moves, _book(shard, parts)):
            await conn.execute(_of_shard(definition, shard, dict(zip(tables, ids, strict=True))))


async def _columns(conn: Connection, part: str, kind: str) -> list[_Column]:
    columns = [_Column(*row) for row in await conn.fetch(_COLUMNS, kind)]
    if part not in _MOVES and part != kind:
        columns += [_Column(name, "bigint") for (name,) in await conn.fetch(_NUMBERED, part)]
    return columns


def _of_shard(definition: str, shard: int, tables: Mapping[str, int]) -> str:
    """Name the tables of one shard in a function, and the function after it."""

    def named(match: re.Match[str]) -> str:
        before, table = match.groups()
        return f"{before} {table}_{tables[table]}" if table in tables else match[0]

    definition = re.sub(r"\b(INSERT INTO|UPDATE|JOIN|FROM) (\w+)\b", named, definition)
    return re.sub(r"(FUNCTION [\w.]+)\(", rf"\g<1>_{shard}(", definition, count=1)


def _book(shard: int, parts: _Parts) -> str:
    """Return the function that writes one row of the table of batches."""
    entries = f"coalesce(cardinality(b.{shard_column('journal_entry', 1)}), 0)"
    inserts = {part: _insert(part, columns) for part, columns in parts.items() if part not in _MOVES}
    first = [inserts.pop(part) for part in ("account", "journal_entry")]
    return f"""
CREATE OR REPLACE FUNCTION {SHARD_BATCH}(b {SHARD_BATCH}) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
{"".join(first)}
  PERFORM ledger_move_{shard}({entries}, {_packed("head", parts)}, {_packed("basis", parts)});
  PERFORM pockets_move_{shard}({_packed("counters", parts)});
{"".join(inserts.values())}
END $$
"""


def _insert(table: str, columns: Sequence[_Column]) -> str:
    names = ", ".join(column.name for column in columns)
    return f"""
  IF cardinality(b.{shard_column(table, 1)}) > 0 THEN
    INSERT INTO {table} ({names}) SELECT {_unnested(table, columns)};
  END IF;"""


def _packed(part: str, parts: _Parts) -> str:
    """Return an SQL array of its type from the columns of a part."""
    names = ", ".join(f"u.{column.name}" for column in parts[part])
    return f"ARRAY(SELECT ROW({names})::{SHARD_PARTS[part]} FROM (SELECT {_unnested(part, parts[part])}) AS u)"


def _unnested(part: str, columns: Sequence[_Column]) -> str:
    return ", ".join(
        f"unnest(b.{shard_column(part, n)}){'::' + _PACKED if column.type == _PACKED else ''} AS {column.name}"
        for n, column in enumerate(columns, start=1)
    )


_ANCHOR = "ledger_head"
"""The table that all tenant tables are co-located with."""


_KNOWN_HERE = "coordinator_write"

_BESIDE_WHAT_STAYS = ("audit_chain_head",)
"""Tables that are co-located with their own rows that stay on the coordinator."""


SETTINGS = (
    # One connection per node and transaction: a lock held on one would block another.
    "citus.multi_shard_modify_mode = 'sequential'",
    # Rows on different nodes are brought together where necessary.
    "citus.enable_repartition_joins = on",
    # Hiding shards costs each connection a second, because the driver looks types up among all relations.
    "citus.override_table_visibility = off",
)
"""Settings of a distributed database."""


class Placement(StrEnum):
    """The placement of a table's rows."""

    TENANT = "customer_id"
    VALUE = "value"
    PARTNER = "partner_id"
    EVERYWHERE = "everywhere"
    COORDINATOR = "coordinator"


# Deepest first are the tables that others refer to.
_PLACEMENTS = """
WITH RECURSIVE placed AS (
  SELECT c.oid, c.relname::text AS name, CASE
    WHEN c.relname = 'directory' THEN 'value'
    WHEN c.relname = 'partner_pocket' THEN 'partner_id'
    WHEN c.relname = ANY($2) THEN 'coordinator'
    WHEN c.relname IN ('partner', 'security', 'auction', 'bill_rate', 'closing_price', 'calendar_override')
         THEN 'everywhere'
    WHEN EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'customer_id'
                    AND a.attnotnull AND NOT a.attisdropped)
     AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND NOT EXISTS (
           SELECT 1 FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attname = 'customer_id' AND a.attnum = ANY(i.indkey::int2[])))
     AND NOT EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
     AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.atttypid = 'xid8'::regtype)
         THEN 'customer_id'
    ELSE 'coordinator' END AS placement
  FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
), ranked AS (
  SELECT oid, name, placement, 0 AS rank FROM placed
  UNION
  SELECT p.oid, p.name, p.placement, r.rank + 1
    FROM ranked r JOIN pg_constraint k ON k.confrelid = r.oid AND k.contype = 'f' AND k.conrelid <> k.confrelid
    JOIN placed p ON p.oid = k.conrelid
)
SELECT name, placement FROM ranked GROUP BY name, placement ORDER BY name <> $1, max(rank), name
"""
# A statement lies with its customer, if its key names it. The lock of heads returns their shards, too.
_WIDEN_KEYS = f"""
DROP FUNCTION IF EXISTS {HEADS_LOCKED};
ALTER TABLE statement DROP CONSTRAINT statement_pkey, ADD CONSTRAINT statement_pkey PRIMARY KEY
  (customer_id, statement_id)
"""
# On one server it is a view. A page of the table comes from one shard, not from all (ADR 0166).
_KEEP_LIST = f"""
DO $$ BEGIN IF (SELECT relkind = 'v' FROM pg_class WHERE oid = 'partner_pocket'::regclass) THEN
  DROP VIEW partner_pocket;
  CREATE TABLE partner_pocket (
    partner_id uuid NOT NULL, customer_id uuid NOT NULL, pocket_id uuid NOT NULL, status text NOT NULL,
    opened_at timestamptz NOT NULL, written_no bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (partner_id, customer_id, pocket_id)
  );
  CREATE INDEX partner_pocket_list ON partner_pocket (partner_id, opened_at, written_no);
  GRANT UPDATE ON partner_pocket TO {APP_ROLE};
END IF; END $$
"""
_FILL_LIST = """
INSERT INTO partner_pocket (partner_id, customer_id, pocket_id, opened_at, status)
SELECT partner_id, customer_id, pocket_id, opened_at, status FROM pocket ORDER BY opened_at, written_no
    ON CONFLICT (partner_id, customer_id, pocket_id) DO NOTHING
"""
_IN_ONE_PHASE = """
SELECT name FROM unnest($1::text[]) AS name WHERE name <> ALL($2)
   AND NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = to_regclass(quote_ident(name)) AND tgname = 'two_phases')
"""
_IN_TWO_PHASES = """
CREATE TRIGGER two_phases AFTER INSERT OR UPDATE OR DELETE ON "{}"
FOR EACH STATEMENT EXECUTE FUNCTION commit_in_two_phases()
"""
_KNOW_IT = f"""
SELECT citus_add_local_table_to_metadata('{_KNOWN_HERE}')
 WHERE NOT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = '{_KNOWN_HERE}'::regclass)
"""
_FOREIGN_KEYS = """
SELECT conname::text, conrelid::regclass::text, confrelid::regclass::text
  FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace ORDER BY 2, 1
"""
_SENT = "SELECT c.relname::text FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid"
# A lock of rows is for one shard at a time. Every process takes the shards, and the customers of one, in one order.
_LOCK_HEADS = f"""
CREATE OR REPLACE FUNCTION {HEADS_LOCKED}(customers uuid[]) RETURNS TABLE (
  customer_id uuid, version bigint, entry_no bigint, event_no bigint, account_no int, booked_at timestamptz,
  business_date date, due_at timestamptz, chain bytea, serialized_book bytea, shard bigint
) LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  this bigint;
  of_shard uuid[];
BEGIN
  FOR this, of_shard IN
    SELECT s.shard, array_agg(id ORDER BY id) FROM (
      SELECT id, get_shard_id_for_distribution_column('ledger_head', id) AS shard FROM unnest(customers) AS id) s
     GROUP BY s.shard ORDER BY s.shard
  LOOP
    RETURN QUERY
      SELECT h.*, this FROM ledger_head h WHERE h.customer_id = ANY(of_shard) ORDER BY h.customer_id FOR UPDATE;
  END LOOP;
END $$
"""
# A plan is made for the shards that the values name.
_GENERIC_FUNCTIONS = """
SELECT oid::regprocedure::text FROM pg_proc
 WHERE pronamespace = current_schema()::regnamespace AND 'plan_cache_mode=force_generic_plan' = ANY(proconfig)
"""
# Names by which all nodes are restored to one moment.
_RESTORE_POINTS = f"""
CREATE TABLE IF NOT EXISTS restore_point (name text PRIMARY KEY, made_at timestamptz NOT NULL);
GRANT DELETE ON restore_point TO {APP_ROLE};
"""
# Citus commits a transaction that wrote to one worker there first, and then here, in one phase, unless it knows that it
# wrote here too: it knows of this table. A statement about any other table of the coordinator also writes to it.
_TWO_PHASES = f"""
CREATE TABLE IF NOT EXISTS {_KNOWN_HERE} (written bool);
GRANT DELETE ON {_KNOWN_HERE} TO {APP_ROLE};
CREATE OR REPLACE FUNCTION commit_in_two_phases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM {_KNOWN_HERE};
  RETURN NULL;
END $$;
"""
# As they are on one node, but in the language whose statements take parameters there. `verify` called the first.
_PLANNED_WITH_VALUES = """
DROP FUNCTION IF EXISTS tables_gathered;
CREATE OR REPLACE FUNCTION ledger_retire(r_customer uuid[], r_account int[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE account a SET live = false FROM unnest(r_customer, r_account) AS r(customer, no)
   WHERE a.customer_id = r.customer AND a.account_no = r.no AND a.live AND a.kind = 'lot' AND a.credits = a.debits;
END $$;
CREATE OR REPLACE FUNCTION customer_features(of_customer uuid) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN array(
    SELECT f.feature FROM customer c JOIN partner p USING (partner_id) CROSS JOIN unnest(p.features) AS f(feature)
     WHERE c.customer_id = of_customer
       AND NOT EXISTS (SELECT 1 FROM customer_feature o WHERE o.customer_id = of_customer AND o.feature = f.feature)
     UNION
    SELECT o.feature FROM customer_feature o WHERE o.customer_id = of_customer AND o.enabled
     ORDER BY 1);
END $$;
"""


async def has_citus(conn: Connection) -> bool:
    """Tell whether the database has the extension."""
    return bool(await conn.fetchval("SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')"))


async def placements(conn: Connection) -> dict[str, Placement]:
    """Return the placement of each table, in an order in which the tables can be sent there."""
    return {
        name: Placement(placement) for name, placement in await conn.fetch(_PLACEMENTS, _ANCHOR, [*_BESIDE_WHAT_STAYS])
    }


async def distribute(conn: Connection, progress: Progress = ignore) -> list[str]:
    """Send the tables of a migrated database to their nodes; return the foreign keys that cannot go along.

    All or nothing; in a distributed database, which may be in use, what is new, one after the other, and again after a
    crash. Raises MigrationError if there is no Citus, or if there are rows that were written on one node.
    """
    if not await has_citus(conn):
        raise MigrationError("this database has no Citus: CREATE EXTENSION citus, and add its nodes")
    # Its shards are not tables of the bank.
    await conn.execute("SET citus.override_table_visibility = on; SET citus.multi_shard_modify_mode = 'sequential'")
    briefly = partial(run_briefly, conn, progress)
    async with exclusive(conn), AsyncExitStack() as whole:
        sent = {table for (table,) in await conn.fetch(_SENT)}
        if "statement" not in sent:
            await whole.enter_async_context(conn.transaction())
            await conn.execute(_WIDEN_KEYS)
        await conn.execute(_RESTORE_POINTS)
        await conn.execute(_KEEP_LIST)
        places = await placements(conn)
        waiting = {t: place for t, place in places.items() if place is not Placement.COORDINATOR and t not in sent}
        for table in waiting:
            if await conn.fetchval(f'SELECT EXISTS (SELECT 1 FROM "{table}")'):
                raise MigrationError(f"only an empty table is distributed, and {table} has rows")
        dropped = await _drop_foreign_keys(conn, places, briefly)
        for table, placement in waiting.items():
            progress(f"Distributing {table} ({placement})")
            await _send(table, placement, briefly)
        if Placement.PARTNER in waiting.values():
            await conn.execute(_FILL_LIST)
        await _replace_functions(conn)
        await _use_two_phases(conn, [t for t, place in places.items() if place is Placement.COORDINATOR], briefly)
        await create_shard_functions(conn, _ANCHOR, briefly)
        name = await conn.fetchval("SELECT quote_ident(current_database())")
        for setting in SETTINGS:
            await conn.execute(f"ALTER DATABASE {name} SET {setting}")
        await conn.execute(f"COMMENT ON TABLE {SHARD_BATCH} IS '{len(read_migrations())}'")
    return dropped


async def _drop_foreign_keys(conn: Connection, places: dict[str, Placement], briefly: _Briefly) -> list[str]:
    """Drop foreign keys between tables with different placements: no node could check that the other row exists.

    Of two tables on every node, too: Citus lets only those change a row that may change the rows it refers to.
    """
    dropped = []
    for name, table, referred in await conn.fetch(_FOREIGN_KEYS):
        # Citus hides its shards among the tables, but not their keys.
        if table in places and (places[table] is not places[referred] or places[table] is Placement.EVERYWHERE):
            await briefly(table, f'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"')
            dropped.append(name)
    return dropped


async def _replace_functions(conn: Connection) -> None:
    await conn.execute(_LOCK_HEADS)
    await conn.execute(_PLANNED_WITH_VALUES)
    for (function,) in await conn.fetch(_GENERIC_FUNCTIONS):
        await conn.execute(f"ALTER FUNCTION {function} SET plan_cache_mode = 'force_custom_plan'")


async def _use_two_phases(conn: Connection, tables: Sequence[str], briefly: _Briefly) -> None:
    """Let a transaction that writes to the coordinator and a worker commit in two phases."""
    await conn.execute(_TWO_PHASES)
    await conn.execute(_KNOW_IT)
    for (table,) in await conn.fetch(_IN_ONE_PHASE, tables, [_KNOWN_HERE, SHARD_BATCH]):
        await briefly(table, _IN_TWO_PHASES.format(table))


async def _send(table: str, placement: Placement, briefly: _Briefly) -> None:
    if placement is Placement.EVERYWHERE:
        await briefly(table, "SELECT create_reference_table($1::regclass)", table)
        return
    colocated = _ANCHOR if placement is Placement.TENANT and table != _ANCHOR else "none"
    sent = "SELECT create_distributed_table($1::regclass, $2, colocate_with => $3)"
    await briefly(table, sent, table, placement, colocated)
