"""The functions by which the shards of a distributed bank take their parts of a batch (ADR 0107).

They are those of one node with the names of the shards' tables in place of the bank's, so that PostgreSQL keeps their
plans in each session. Every node has them all: a shard that moves finds its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from billfold.platform.database.distribution import SHARD_BATCH, SHARD_PARTS, shard_column

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection)

_MOVES = ("head", "basis", "counters")
"""Parts that are no new rows."""
_PACKED = "packed_posting[]"

_COLUMNS = """
SELECT attname::text, format_type(atttypid, -1)
  FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE t.oid = $1::regtype ORDER BY a.attnum
"""
# A column that the table numbers by itself comes last.
_NUMBERED = "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::regclass AND attidentity <> ''"
_HAS = """
SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
 WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
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
CREATE TRIGGER {SHARD_BATCH}_written BEFORE INSERT ON {SHARD_BATCH}
  FOR EACH ROW EXECUTE FUNCTION {SHARD_BATCH}_written()
"""


class _Column(NamedTuple):
    name: str
    type: str


_Parts = Mapping[str, Sequence[_Column]]


async def create_shard_functions(conn: Connection, anchor: str) -> None:
    """Create or replace the table of batches, beside that of the name `anchor`, its trigger and the functions."""
    parts = {part: await _columns(conn, part, kind) for part, kind in SHARD_PARTS.items()}
    columns = {
        shard_column(part, n): "text" if column.type == _PACKED else column.type
        for part, its_columns in parts.items()
        for n, column in enumerate(its_columns, start=1)
    }
    if await conn.fetchval(_HAS, SHARD_BATCH) != ["customer_id", *columns]:
        await conn.execute("SET LOCAL citus.enable_unsafe_triggers = on")
        await conn.execute(f"DROP TABLE IF EXISTS {SHARD_BATCH} CASCADE")
        declared = ", ".join(f"{name} {kind}[]" for name, kind in columns.items())
        await conn.execute(f"CREATE TABLE {SHARD_BATCH} (customer_id uuid NOT NULL, {declared})")
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
    """Return what makes an array of its type of the columns of a part."""
    names = ", ".join(f"u.{column.name}" for column in parts[part])
    return f"ARRAY(SELECT ROW({names})::{SHARD_PARTS[part]} FROM (SELECT {_unnested(part, parts[part])}) AS u)"


def _unnested(part: str, columns: Sequence[_Column]) -> str:
    return ", ".join(
        f"unnest(b.{shard_column(part, n)}){'::' + _PACKED if column.type == _PACKED else ''} AS {column.name}"
        for n, column in enumerate(columns, start=1)
    )
