"""Queries of batches and their rows."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.accounts.notes.store import created_between
from billfold.approvals.rules import MAY_APPROVE, text_of
from billfold.approvals.store.requests import RequestKind
from billfold.batches.types import EXPIRE_BATCH, RUN_BATCH, Batch, BatchRow, RowProblem, RowResult
from billfold.http.responses import ProblemWithHeaders
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import KeysetList
from billfold.platform.money import format_usd

_SELECT = """
SELECT q.*, CASE WHEN q.status = 'PENDING' AND q.expires_at <= $2 THEN 'EXPIRED' ELSE q.status END AS status_now,
       (SELECT count(*) FROM batch_row r
         WHERE r.customer_id = q.customer_id AND r.batch_id = q.request_id AND r.state = 'COMPLETED') AS completed,
       (SELECT count(*) FROM batch_row r
         WHERE r.customer_id = q.customer_id AND r.batch_id = q.request_id AND r.state = 'FAILED') AS failed
  FROM batch q WHERE q.customer_id = $1 AND q.partner_id IS {partner}
"""


_FILTERS = f"""($3::text[] IS NULL OR q.kind = ANY($3)) AND ($4::text[] IS NULL OR
       CASE WHEN q.status_now <> 'APPROVED' THEN q.status_now WHEN q.finished_at IS NULL THEN 'PROCESSING'
            WHEN q.refused IS NULL THEN 'COMPLETED' ELSE 'FAILED' END = ANY($4))
   AND {created_between(5, "q.")}"""


def _kind(partner: str) -> RequestKind[Batch]:
    return RequestKind(
        table="batch",
        row=Batch,
        select=_SELECT.format(partner=partner),
        filters=_FILTERS,
        needs=MAY_APPROVE,
        expiry_job=EXPIRE_BATCH,
        approval_job=RUN_BATCH,
    )


BATCHES, PARTNER_BATCHES = _kind("NULL"), _kind("NOT NULL")
"""The batches of a customer's members, and those of a partner, which lie with its own customer."""

_INSERT = """
INSERT INTO batch_row (customer_id, batch_id, row_no, row_key, content, content_hash, object_id, amount, rule_id, terms,
                       state, problem)
SELECT $1, $2, r.* FROM unnest($3::int[], $4::text[], $5::json[], $6::bytea[], $7::uuid[], $8::bigint[], $9::uuid[],
                               $10::json[], $11::text[], $12::json[]) AS r
"""
OPEN_ROWS_MAX: Final = 10_000
"""Rows of one customer, or partner, in batches that have not ended."""
_OPEN = """
SELECT sum(row_count) FROM batch
 WHERE customer_id = $1 AND status IN ('PENDING', 'APPROVED') AND finished_at IS NULL
"""
_COLUMNS = "row_no, row_key, content, content_hash, object_id, amount, terms, state, problem"
_WAITING = f"""
SELECT {_COLUMNS} FROM batch_row
 WHERE customer_id = $1 AND batch_id = $2 AND state = 'WAITING' ORDER BY row_no LIMIT $3
"""
_FIRST = f"""
SELECT batch_id, {_COLUMNS} FROM batch_row WHERE customer_id = $1 AND batch_id = ANY($2::uuid[]) AND row_no = 1
"""
_RESULTS = """
UPDATE batch_row b SET state = CASE WHEN r.problem IS NULL THEN 'COMPLETED' ELSE 'FAILED' END, problem = r.problem
  FROM unnest($3::int[], $4::json[]) AS r(row_no, problem)
 WHERE b.customer_id = $1 AND b.batch_id = $2 AND b.row_no = r.row_no AND b.state = 'WAITING'
"""
_MADE = """
SELECT r.object_id, r.content_hash, r.problem
  FROM batch_row r JOIN batch b ON b.customer_id = r.customer_id AND b.request_id = r.batch_id
 WHERE r.customer_id = $1 AND r.batch_id <> $2 AND r.object_id = ANY($3)
   AND (r.state = 'COMPLETED' OR (r.state = 'FAILED' AND b.mode = 'INDEPENDENT'))
   AND r.problem ->> 'code' IS DISTINCT FROM 'idempotency-key-reused'
"""


def _read_row(row: Record | dict[str, Any]) -> BatchRow:
    columns = dict(row)
    for name in ("terms", "problem"):
        columns[name] = None if columns[name] is None else msgspec.json.decode(columns[name])
    return msgspec.convert(columns, BatchRow)


ROWS: KeysetList[BatchRow] = KeysetList(
    f"SELECT {_COLUMNS} FROM batch_row WHERE customer_id = $1 AND batch_id = $2"
    " AND ($3::text[] IS NULL OR state = ANY($3)) AND {page}",
    _read_row,
    row_no="bigint",
)
"""The rows of a batch."""


async def insert_rows(conn: Connection, customer_id: UUID, batch_id: UUID, rows: Sequence[BatchRow]) -> None:
    """Insert the rows of a batch. Raises `rate-limited` if its owner has too many in batches that have not ended."""
    if await conn.fetchval(_OPEN, customer_id) > OPEN_ROWS_MAX:
        detail = f"Batches that have not ended may have {OPEN_ROWS_MAX} rows together. Wait until some have."
        raise ProblemWithHeaders("rate-limited", detail, (b"retry-after", b"60"))
    values: list[tuple[Any, ...]] = [
        (
            row.row_no,
            row.row_key,
            row.content,
            row.content_hash,
            row.object_id,
            row.amount,
            None if row.terms is None else row.terms.rule_id,
            None if row.terms is None else text_of(row.terms),
            row.state,
            _problem_text(row.problem),
        )
        for row in rows
    ]
    await conn.execute(_INSERT, customer_id, batch_id, *map(list, zip(*values, strict=True)))


async def list_waiting(conn: Db, customer_id: UUID, batch_id: UUID, *, limit: int) -> list[BatchRow]:
    """Return the first rows that have no result."""
    return [_read_row(row) for row in await conn.fetch(_WAITING, customer_id, batch_id, limit)]


async def list_first(conn: Db, customer_id: UUID, batch_ids: Sequence[UUID]) -> dict[UUID, BatchRow]:
    """Return the first row of each batch."""
    found = [dict(each) for each in await conn.fetch(_FIRST, customer_id, batch_ids)]
    return {each.pop("batch_id"): _read_row(each) for each in found}


async def record_results(conn: Db, batch: Batch, results: Sequence[RowResult]) -> None:
    """Record results of rows; one that has a result keeps it."""
    numbers, problems = [each.number for each in results], [_problem_text(each.problem) for each in results]
    await conn.execute(_RESULTS, batch.customer_id, batch.request_id, numbers, problems)


async def find_made(
    conn: Db, customer_id: UUID, batch_id: UUID, object_ids: Sequence[UUID | None]
) -> dict[UUID | None, tuple[bytes, RowProblem | None]]:
    """Return which of these transfers rows of other batches have decided: the hash of the content, and the problem."""
    rows = await conn.fetch(_MADE, customer_id, batch_id, object_ids)
    return {key: (content_hash, _problem_in(problem)) for key, content_hash, problem in rows}


_BATCHES_OF = """
SELECT r.object_id, b.request_id, b.row_count, b.amount
  FROM batch_row r JOIN batch b ON b.customer_id = r.customer_id AND b.request_id = r.batch_id
 WHERE r.customer_id = $1 AND r.object_id = ANY($2::uuid[]) AND r.state <> 'FAILED'
"""


_BY_IDS = """
SELECT request_id, kind, row_count, amount FROM batch WHERE customer_id = $1 AND request_id = ANY($2::uuid[])
"""


_ONE_OF = {"TRANSFERS": "transfer", "COUNTERPARTIES": "counterparty", "POCKETS": "Pocket"}


async def describe_batches(conn: Db, customer_id: UUID, batch_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return batches in words: "50 transfers, $1,200.00"."""
    rows = await conn.fetch(_BY_IDS, customer_id, batch_ids)
    return {
        key: f"{count} {kind.lower() if count > 1 else _ONE_OF[kind]}" + (f", {format_usd(amount)}" if amount else "")
        for key, kind, count, amount in rows
    }


class BatchOfTransfer(NamedTuple):
    """The batch that a transfer is a row of: its id, its number of rows, and its amount in cents."""

    batch_id: UUID
    row_count: int
    amount: int


async def find_batches_of(conn: Db, customer_id: UUID, transfer_ids: Sequence[UUID]) -> dict[UUID, BatchOfTransfer]:
    """Return the batches of those transfers that are rows of one."""
    rows = await conn.fetch(_BATCHES_OF, customer_id, transfer_ids)
    return {object_id: BatchOfTransfer(*batch) for object_id, *batch in rows}


def _problem_in(text: str | None) -> RowProblem | None:
    return None if text is None else msgspec.json.decode(text, type=RowProblem)


def _problem_text(problem: RowProblem | None) -> str | None:
    return None if problem is None else text_of(problem)
