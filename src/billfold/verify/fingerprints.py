"""Rows that no chain covers, compared with the fingerprints of them in chained rows.

A command that leaves such a row keeps in its outcome the fingerprint of the row's lasting part: the payee of
a wire, the account of an entry, whether a counterparty may be paid. The order of a commit's commands
is not recorded: the row must match one of them. Rows of dual
control have their fingerprints in the entries of the audit log, in order.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from billfold.approvals.store.approval_rules import KEYS
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings, any_rows
from billfold.platform.database.connection import Connection
from billfold.platform.database.rows import Row, fingerprinted_rows, proof_of, reads, stored_name

_BATCH_SIZE = 2_000
_CHANGED = "it differs from its last fingerprint"
_DELETED = "it has a fingerprint, but the row is missing"
_UNEXPLAINED = "no command left its fingerprint"
_QUERY_COLUMNS = frozenset({"said", "is_there", "needs_one", "of_customer", "of_id"})
"""Columns that our query adds to those of a row."""
_OWNER = """CASE c.kind WHEN 'AssignFromSuspense' THEN (c.outcome->>'owner_id')::uuid
                  ELSE c.customer_id END"""
"""The customer of the row. Items that the bank assigns from suspense belong to their owner."""


# Few kinds of commands leave any, and searching the text costs half as much as parsing outcomes without one.
_LEFT_BY = """
SELECT p.key, string_agg(DISTINCT quote_literal(c.kind), ', ') AS kinds
  FROM command c, json_object_keys(c.outcome->'proves') p(key)
 WHERE c.accepted AND c.outcome::text LIKE '%"proves"%' GROUP BY p.key
"""


# Of rows without any fingerprint nothing is known, as of the present ones that need none.
_FORMER = """
  WITH said AS (SELECT {owner} AS customer_id, p.key AS id, array_agg(p.value) AS said
                  FROM {fingerprints} GROUP BY 1, 2)
SELECT t.*, s.said, f.customer_id AS of_customer, f.object_id::text AS of_id, f.until AS of_until
  FROM former_row f CROSS JOIN LATERAL json_populate_record(NULL::{table}, f.row) t
  JOIN said s ON s.customer_id = f.customer_id AND s.id = f.object_id::text
 WHERE f.kind = '{table}' ORDER BY of_customer, of_id, of_until
"""


class Log(NamedTuple):
    """SQL for the fingerprints of a table and for the last fingerprint of each row."""

    fingerprints: str
    last: str


_COMMANDS = Log(
    """command c, json_each_text(c.outcome->'proves'->'{table}') p
       WHERE c.accepted AND c.kind IN ({left_by})""",
    f"""SELECT customer_id, id, array_agg(proof) AS said
          FROM (SELECT {_OWNER} AS customer_id, p.key AS id, p.value AS proof,
                       rank() OVER (PARTITION BY {_OWNER}, p.key ORDER BY c.version DESC) AS place
                  FROM {{fingerprints}}) last
         WHERE place = 1 GROUP BY customer_id, id""",
)
_ENTRIES = Log(
    """audit_entry a, json_each_text(a.details->'proves'->'{table}') p
       WHERE a.outcome = 'SUCCESS' AND a.resource_type IN ({left_by})""",
    """SELECT DISTINCT ON (a.customer_id, p.key) a.customer_id, p.key AS id, ARRAY[p.value] AS said
         FROM {fingerprints}
        ORDER BY a.customer_id, p.key, a.entry_no DESC""",
)


class FingerprintedTable(NamedTuple):
    """A table: its key, the commands of its rows (for an IN), the fingerprint, the rows that need one, its source."""

    table: str
    key: tuple[str, ...]
    left_by: str
    proof_of: Callable[[Record], str]
    needs_one: str = "true"
    log: Log = _COMMANDS
    keeps_former: bool = False

    @property
    def fingerprints(self) -> str:
        """All fingerprints, as SQL after a FROM."""
        return self.log.fingerprints.format(table=stored_name(self.table), left_by=self.left_by)


def _of_all(row: Record) -> str:
    return proof_of(row, set(row.keys()) - _QUERY_COLUMNS)


AUDITED_TABLES = tuple(
    FingerprintedTable(table, key, left_by, proof_of=_of_all, log=_ENTRIES)
    for left_by, tables in (
        ("'transfer_request', 'authorization_request', 'batch', 'customer'", KEYS),
        (
            "'application'",
            {
                "application": ("application_id",),
                "application_move": ("move_id",),
                "related_party_application": ("application_id", "related_party_id"),
                "application_invite": ("invite_id",),
                "awaited_team_member": ("member_id",),
            },
        ),
        ("'agreements'", {"agreement_version": ("version",), "agreement_document": ("version", "type")}),
        ("'cash_back_rule'", {"cash_back_rule": ("version",)}),
        ("'tax_status'", {"tax_status": ("version",)}),
        ("'freeze', 'movement'", {"freeze_proposal": ("proposal_id",)}),
        ("'sanctions_hit'", {"sanctions_hit": ("hit_id",)}),
    )
    for table, key in tables.items()
)
"""Tables whose rows have their fingerprints in the audit log."""


async def tables_of_commands(conn: Connection) -> list[FingerprintedTable]:
    """Return the tables of the fingerprinted classes of rows that are loaded."""
    left_by = {row["key"]: row["kinds"] for row in await conn.fetch(_LEFT_BY, timeout=STATEMENT_TIMEOUT_SECONDS)}
    return [
        FingerprintedTable(
            row.table,
            (row.key_column or "customer_id",),
            left_by.get(stored_name(row.table), "NULL"),
            proof_of=_proof_as(row),
            needs_one=row.proof_needed,
            keeps_former=row.keeps_former is True,
        )
        for row in sorted(fingerprinted_rows(), key=lambda row: row.table)
    ]


def _proof_as(row: type[Row]) -> Callable[[Record], str]:
    read = reads(row)
    return lambda record: read(record).proof


async def check_fingerprints(
    conn: Connection, findings: Findings, tables: Iterable[FingerprintedTable] | None = None
) -> None:
    """Compare every row of these tables, by default of all, with its last fingerprint."""
    tables = (*await tables_of_commands(conn), *AUDITED_TABLES) if tables is None else tuple(tables)
    rows = [f"SELECT 1 FROM {each.table} UNION ALL SELECT 1 FROM {each.fingerprints}" for each in tables]
    for fingerprinted in compress(tables, await any_rows(conn, rows)):
        await _check_table(conn, findings, fingerprinted)
        if fingerprinted.keeps_former:
            await _check_former(conn, findings, fingerprinted)


async def _check_table(conn: Connection, findings: Findings, fingerprinted: FingerprintedTable) -> None:
    cursor = await conn.cursor(_sql(fingerprinted), timeout=STATEMENT_TIMEOUT_SECONDS)
    while rows := await cursor.fetch(_BATCH_SIZE, timeout=STATEMENT_TIMEOUT_SECONDS):
        for row in rows:
            row_key = row["of_customer"], row["of_id"]
            message = _describe_mismatch(fingerprinted, row, row["said"])
            findings.checked[fingerprinted.table] += row["is_there"]
            if message is not None:
                own = zip(fingerprinted.key, row_key[1].split("/"), strict=False)
                key = {"customer_id": row_key[0]} | {name: _as_id(value) for name, value in own}
                certainty = Certainty.CHANGED if message == _CHANGED else Certainty.MISSING
                findings.add(fingerprinted.table, key, message, certainty=certainty)


async def _check_former(conn: Connection, findings: Findings, fingerprinted: FingerprintedTable) -> None:
    """Compare each state that a row had, as far as it is kept whole, with all fingerprints of the row."""
    statement = _FORMER.format(table=fingerprinted.table, owner=_OWNER, fingerprints=fingerprinted.fingerprints)
    cursor = await conn.cursor(statement, timeout=STATEMENT_TIMEOUT_SECONDS)
    while rows := await cursor.fetch(_BATCH_SIZE, timeout=STATEMENT_TIMEOUT_SECONDS):
        findings.checked["former_row"] += len(rows)
        for row in rows:
            if fingerprinted.proof_of(row) not in row["said"]:
                named = {"kind": fingerprinted.table, "object_id": UUID(row["of_id"]), "until": row["of_until"]}
                key = {"customer_id": row["of_customer"], **named}
                findings.add("former_row", key, "no command left its row so", certainty=Certainty.CHANGED)


def _describe_mismatch(fingerprinted: FingerprintedTable, row: Record, said: Sequence[str] | None) -> str | None:
    if not row["is_there"]:
        return _DELETED if any(said or ()) else None
    if said is None:
        return _UNEXPLAINED if row["needs_one"] else None
    return None if fingerprinted.proof_of(row) in said else _CHANGED


def _sql(fingerprinted: FingerprintedTable) -> str:
    own = " || '/' || ".join(f"t.{name}" for name in fingerprinted.key)
    own = own if len(fingerprinted.key) > 1 else f"{own}::text"
    return f"""
      WITH said AS ({fingerprinted.log.last.format(fingerprints=fingerprinted.fingerprints)})
      SELECT t.*, s.said, t.{fingerprinted.key[0]} IS NOT NULL AS is_there,
             {fingerprinted.needs_one} AS needs_one,
             coalesce(t.customer_id, s.customer_id) AS of_customer,
             coalesce({own}, s.id) AS of_id
        FROM {fingerprinted.table} t FULL JOIN said s ON s.customer_id = t.customer_id AND s.id = {own}
       ORDER BY of_customer, of_id
    """


def _as_id(value: str | None) -> object:
    try:
        return UUID(value)
    except (TypeError, ValueError):
        return int(value) if value is not None and value.isdecimal() else value
