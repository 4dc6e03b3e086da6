"""Spreads a migrated, empty database over the nodes of a Citus cluster (ADR 0093).

Where a table goes follows from the catalogue. A tenant table lies with its customer: `customer_id` is in each of its
unique keys, no trigger guards it and no column holds a transaction id, which means something on one server only. The
directory lies by its value, the market and the partners on every node, everything else on the coordinator.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from billfold.migrations.runner import MigrationError
from billfold.migrations.shard_functions import create_shard_functions
from billfold.platform.database.distribution import GATHER, HEADS_LOCKED, SHARD_BATCH
from billfold.platform.database.pool import APP_ROLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from billfold.platform.database.connection import (Connection)

_TIMEOUT_SECONDS = 3600.0
_ANCHOR = "ledger_head"
"""The table with whose shards those of all tenant tables lie."""


_BESIDE_WHAT_STAYS = ("audit_chain_head",)
"""Tables that lie with rows of theirs that stay on the coordinator."""


SETTINGS = (
    # One connection per node and transaction: a lock that is held on one is not waited for by another.
    "citus.multi_shard_modify_mode = 'sequential'",
    # Rows that lie apart are brought together where it must be.
    "citus.enable_repartition_joins = on",
    # To hide shards takes a second of each connection, whose driver looks types up among all relations.
    "citus.override_table_visibility = off",
)
"""Settings of a distributed database."""


class Placement(StrEnum):
    """Where the rows of a table lie."""

    TENANT = "customer_id"
    VALUE = "value"
    EVERYWHERE = "everywhere"
    COORDINATOR = "coordinator"


# Deepest first are the tables that others refer to.
_PLACEMENTS = """
WITH RECURSIVE placed AS (
  SELECT c.oid, c.relname::text AS name, CASE
    WHEN c.relname = 'directory' THEN 'value'
    WHEN c.relname = ANY($2) THEN 'coordinator'
    WHEN c.relname IN ('partner', 'security', 'auction', 'bill_rate', 'closing_price', 'calendar_override')
         THEN 'everywhere'
    WHEN EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'customer_id'
                    AND a.attnotnull AND NOT a.attisdropped)
     AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND NOT EXISTS (
           SELECT FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attname = 'customer_id' AND a.attnum = ANY(i.indkey::int2[])))
     AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
     AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.atttypid = 'xid8'::regtype)
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
_FOREIGN_KEYS = """
SELECT conname::text, conrelid::regclass::text, confrelid::regclass::text
  FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace
 ORDER BY 2, 1
"""
_SENT = "SELECT c.relname::text FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid"
# A lock of rows is for one shard at a time. Every process takes the shards, and the customers of one, in one order.
_LOCK_HEADS = f"""
DROP FUNCTION IF EXISTS {HEADS_LOCKED};
CREATE FUNCTION {HEADS_LOCKED}(customers uuid[]) RETURNS TABLE (
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
# Of two tables of one name a session reads the temporary one. The application itself may make none.
_GATHER = f"""
CREATE OR REPLACE FUNCTION {GATHER}() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  shared name;
BEGIN
  FOR shared IN
    SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
     WHERE p.partmethod = 'h' AND c.relname <> '{SHARD_BATCH}'
  LOOP
    EXECUTE format('CREATE TEMPORARY TABLE %1$I ON COMMIT DROP AS SELECT * FROM %1$I', shared);
    EXECUTE format('GRANT SELECT ON pg_temp.%I TO {APP_ROLE}', shared);
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION {GATHER} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {GATHER} TO {APP_ROLE};
"""
# As they are on one node, but in the language whose statements take parameters there.
_PLANNED_WITH_VALUES = """
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
    return bool(await conn.fetchval("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"))


async def placements(conn: Connection) -> dict[str, Placement]:
    """Where each table goes, in an order in which they can be sent there."""
    return {
        name: Placement(placement) for name, placement in await conn.fetch(_PLACEMENTS, _ANCHOR, [*_BESIDE_WHAT_STAYS])
    }


async def distribute(conn: Connection, progress: Callable[[str], None] | None = None) -> list[str]:
    """Send the tables of a migrated database to their nodes; return the foreign keys that cannot go along.

    All of it or nothing; of a distributed database what was added since. Raises MigrationError where there is no Citus,
    or rows that were written on one node.
    """
    if not await has_citus(conn):
        raise MigrationError("this database has no Citus: CREATE EXTENSION citus, and add its nodes")
    # Its shards are no tables of the bank.
    await conn.execute("SET citus.override_table_visibility = on")
    sent = {table for (table,) in await conn.fetch(_SENT)}
    places = await placements(conn)
    waiting = {t: place for t, place in places.items() if place is not Placement.COORDINATOR and t not in sent}
    for table in waiting:
        if await conn.fetchval(f'SELECT EXISTS (SELECT FROM "{table}")'):
            raise MigrationError(f"only an empty table is distributed, and {table} has rows")
    async with conn.transaction():
        await conn.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        dropped = await _drop_foreign_keys(conn, places)
        for table, placement in waiting.items():
            if progress:
                progress(f"Distributing {table} ({placement})")
            await _send(conn, table, placement)
        await _replace_functions(conn)
        await create_shard_functions(conn, _ANCHOR)
        name = await conn.fetchval("SELECT quote_ident(current_database())")
        for setting in SETTINGS:
            await conn.execute(f"ALTER DATABASE {name} SET {setting}")
    return dropped


async def _drop_foreign_keys(conn: Connection, places: dict[str, Placement]) -> list[str]:
    """Drop those between tables that lie differently: no node could tell whether the other row is there."""
    dropped = []
    for name, table, referred in await conn.fetch(_FOREIGN_KEYS):
        # Citus hides its shards among the tables, and not their keys.
        if table in places and places[table] is not places[referred]:
            await conn.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"')
            dropped.append(name)
    return dropped


async def _replace_functions(conn: Connection) -> None:
    await conn.execute(_LOCK_HEADS)
    await conn.execute(_GATHER)
    await conn.execute(_PLANNED_WITH_VALUES)
    for (function,) in await conn.fetch(_GENERIC_FUNCTIONS):
        await conn.execute(f"ALTER FUNCTION {function} SET plan_cache_mode = 'force_custom_plan'")


async def _send(conn: Connection, table: str, placement: Placement) -> None:
    if placement is Placement.EVERYWHERE:
        await conn.execute("SELECT create_reference_table($1::regclass)", table, timeout=_TIMEOUT_SECONDS)
        return
    beside = _ANCHOR if placement is Placement.TENANT and table != _ANCHOR else "none"
    await conn.execute(
        "SELECT create_distributed_table($1::regclass, $2, colocate_with => $3)",
        table,
        str(placement),
        beside,
        timeout=_TIMEOUT_SECONDS,
    )
