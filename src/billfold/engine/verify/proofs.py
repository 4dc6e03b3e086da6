"""Rows that no chain covers, against the fingerprints that a chain keeps of them.

A command that leaves such a row says in its outcome what the row's lasting part comes to: to whom
a wire goes, from which account an entry takes, whether a counterparty may be paid. Of commands of
one commit nothing tells which was the last: the row is what one of them said. Of the rows of dual
control the entries of the audit log say it, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.domain.ach.types import AchEntry
from billfold.domain.counterparties import payee_in
from billfold.domain.requests.proofs import KEYS, proof_of
from billfold.domain.wires import WireRow
from billfold.engine.verify.report import CHANGED, MISSING, Findings
from billfold.engine.verify.streams import PATIENCE_SECONDS
from billfold.kit.crypto import fingerprint

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.kit.db import Connection

CHECK = "proofs"
_AT_ONCE = 2_000
_TWICE = "it is there twice"
_CHANGED = "what left it said otherwise"
_GONE = "it was left here, and is not there"
_UNBORN = "nothing left it here"
_BESIDE = frozenset({"said", "is_there", "needs_one", "of_customer", "of_id"})
"""What a query of ours adds to the columns of a row."""
_OWNER = """CASE c.kind WHEN 'AssignFromSuspense' THEN (c.outcome->>'owner_id')::uuid
                  ELSE c.customer_id END"""
"""Whose row it is. What the house assigns is its owner's."""
_COMMANDS = f"""
  SELECT customer_id, id, array_agg(proof) AS said
    FROM (SELECT {_OWNER} AS customer_id, p.key AS id, p.value AS proof,
                 rank() OVER (PARTITION BY {_OWNER}, p.key ORDER BY c.version DESC) AS place
            FROM command c, json_each_text(c.outcome->'proves'->'{{table}}') p
           WHERE c.accepted AND c.kind IN ({{left_by}})) last
   WHERE place = 1 GROUP BY customer_id, id
"""
_ENTRIES = """
  SELECT DISTINCT ON (a.customer_id, p.key) a.customer_id, p.key AS id, ARRAY[p.value] AS said
    FROM audit_entry a, json_each_text(a.details->'proves'->'{table}') p
   WHERE a.outcome = 'SUCCESS' AND a.resource_type IN ({left_by})
   ORDER BY a.customer_id, p.key, a.entry_no DESC
"""


class Proved(NamedTuple):
    """A table: its key, who leaves its rows, what a row comes to, which rows need one, who says."""

    table: str
    key: tuple[str, ...]
    left_by: tuple[str, ...]
    proof_of: Callable[[Record], str]
    needs_one: str = "true"
    said: str = _COMMANDS


def _of_entry(row: Record) -> str:
    return AchEntry(**{name: row[name] for name in AchEntry.__struct_fields__}).proof


def _of_wire(row: Record) -> str:
    return WireRow(**{name: row[name] for name in WireRow.__struct_fields__}).proof


def _of(*names: str) -> Callable[[Record], str]:
    return lambda row: fingerprint([row[name] for name in names])


def _of_all(row: Record) -> str:
    return proof_of(row, set(row.keys()) - _BESIDE)


TABLES = (
    Proved(
        "ach_entry", ("ach_id",),
        ("OriginateAch", "PostponeAch", "ReverseAch", "RetryAch", "ReviewAch", "ReceiveAch",
         "SendMicroDeposits"),
        _of_entry,
    ),
    Proved(
        "ach_answer", ("answer_id",), ("ReceiveAch", "GiveBackAch"),
        _of("answer_id", "customer_id", "due_at", "told"),
        # What the house answers of its own it has held in suspense, or it moves nothing.
        "t.customer_id <> (SELECT house_customer_id FROM bank)",
    ),
    Proved(
        "wire", ("wire_id",),
        ("SendWire", "ReceiveMoney", "TakeBackWire", "PayBackWire", "AssignFromSuspense"),
        _of_wire,
    ),
    Proved(
        "wire_message", ("message_id",), ("SendWire", "ReceiveMoney", "PayBackWire"),
        _of("message_id", "customer_id", "wire_id", "kind", "terms"),
        # Those that ask and answer move no customer's money; nor do the house's own returns.
        "t.kind LIKE 'pacs.%' AND t.customer_id <> (SELECT house_customer_id FROM bank)",
    ),
    Proved(
        "counterparty", ("counterparty_id",),
        ("AddCounterparty", "UpdateCounterparty", "ConfirmDeposits", "DecideVerification",
         "FailVerification", "ExpireVerification", "SettleLink", "CorrectAccount", "ReceiveMoney"),
        lambda row: payee_in(row).proof,
    ),
    Proved("suspense_item", ("item_id",), ("HoldInSuspense",), _of("details")),
    *(
        Proved(
            table, key, ("transfer_request", "authorization_request", "customer"), _of_all,
            said=_ENTRIES,
        )
        for table, key in KEYS.items()
    ),
)  # fmt: skip


async def check_proofs(
    conn: Connection, found: Findings, tables: Iterable[Proved] = TABLES
) -> None:
    """Compare every row of these tables with what was last said about it."""
    for proved in tables:
        await _check(conn, found, proved)


async def _check(conn: Connection, found: Findings, proved: Proved) -> None:
    cursor = await conn.cursor(_sql(proved), timeout=PATIENCE_SECONDS)
    before: tuple[UUID, str] | None = None
    while rows := await cursor.fetch(_AT_ONCE, timeout=PATIENCE_SECONDS):
        for row in rows:
            place = row["of_customer"], row["of_id"]
            wrong = _TWICE if place == before else _wrong(proved, row, row["said"])
            before = place
            found.checked[proved.table] += row["is_there"]
            if wrong is not None:
                own = zip(proved.key, place[1].split("/"), strict=False)
                key = {"customer_id": place[0]} | {name: _as_id(value) for name, value in own}
                sureness = CHANGED if wrong == _CHANGED else MISSING
                found.add(CHECK, proved.table, key, wrong, sureness)


def _wrong(proved: Proved, row: Record, said: Sequence[str] | None) -> str | None:
    if not row["is_there"]:
        return _GONE if any(said or ()) else None
    if said is None:
        return _UNBORN if row["needs_one"] else None
    return None if proved.proof_of(row) in said else _CHANGED


def _sql(proved: Proved) -> str:
    left_by = ", ".join(f"'{each}'" for each in proved.left_by)
    own = " || '/' || ".join(f"t.{name}" for name in proved.key)
    own = own if len(proved.key) > 1 else f"{own}::text"
    return f"""
      WITH said AS ({proved.said.format(table=proved.table, left_by=left_by)})
      SELECT t.*, s.said, t.{proved.key[0]} IS NOT NULL AS is_there,
             {proved.needs_one} AS needs_one,
             coalesce(t.customer_id, s.customer_id) AS of_customer,
             coalesce({own}, s.id) AS of_id
        FROM {proved.table} t FULL JOIN said s ON s.customer_id = t.customer_id AND s.id = {own}
       ORDER BY of_customer, of_id
    """


def _as_id(value: str | None) -> object:
    try:
        return UUID(value)
    except (TypeError, ValueError):
        return int(value) if value is not None and value.isdecimal() else value
