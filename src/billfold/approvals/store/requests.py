"""Requests of both kinds: reading them, and changing their status along with the job that follows.

A request reads as EXPIRED from `expires_at` on, even before its row is updated.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Generic, TypeVar
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.approvals import types as approval_types
from billfold.approvals.rules import MAY_APPROVE, MAY_CONFIRM
from billfold.approvals.store.approval_rules import update
from billfold.audit.record import AuditedAction, audited
from billfold.events import kinds
from billfold.events.changes import job_of, report
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.errors import NotFound, Refused

RequestType = TypeVar("RequestType", bound=approval_types.StoredRequest)


@dataclass(frozen=True, kw_only=True)
class RequestKind(Generic[RequestType]):
    """A kind of request: its table, which also names it in the audit log, its rows, and its jobs.

    `select` reads requests of customer $1 at the bank's time $2, `filters` are further conditions
    with $3 and so on. `needs` is the permission of reviewers.
    """

    table: str
    row: type[RequestType]
    select: str
    filters: str
    needs: str
    expiry_job: str
    approval_job: str
    report_job: str | None = None
    """Raises the event of another status."""

    @cached_property
    def listed(self) -> KeysetList[RequestType]:
        """The requests of a customer, newest first."""
        sql = f"SELECT * FROM ({self.select}) q WHERE {self.filters} AND {{page}}"
        return KeysetList(sql, self._read, **BY_CREATION)

    async def find(self, conn: Db, customer_id: UUID, request_id: UUID, *, now: datetime) -> RequestType | None:
        """Return a request of a customer with its status at the bank's `now`, or None."""
        row = await conn.fetchrow(f"{self.select} AND q.request_id = $3", customer_id, now, request_id)
        return None if row is None else self._read(row)

    async def get(self, conn: Db, customer_id: UUID, request_id: UUID, *, now: datetime) -> RequestType:
        """Return the same. Raises NotFound."""
        found = await self.find(conn, customer_id, request_id, now=now)
        if found is None:
            raise NotFound(f"There is no such {self.table.replace('_', ' ')}.")
        return found

    async def list_named(
        self, conn: Db, customer_id: UUID, request_ids: Sequence[UUID], *, now: datetime
    ) -> list[RequestType]:
        """Return these requests of a customer, in this order; others are left out."""
        sql = f"{self.select} AND q.request_id = ANY($3) ORDER BY array_position($3, q.request_id)"
        return [self._read(row) for row in await conn.fetch(sql, customer_id, now, list(request_ids))]

    async def list_pending(self, conn: Db, customer_id: UUID, *, now: datetime) -> list[RequestType]:
        """Return all requests of a customer that are pending at the bank's `now`."""
        sql = f"{self.select} AND q.status = 'PENDING' AND q.expires_at > $2 ORDER BY q.created_at, q.written_no"
        return [self._read(row) for row in await conn.fetch(sql, customer_id, now)]

    async def lock(self, conn: Connection, customer_id: UUID, request_id: UUID, *, now: datetime) -> RequestType:
        """Return the same, locked until the transaction ends."""
        lock = f"SELECT 1 FROM {self.table} WHERE customer_id = $1 AND request_id = $2 FOR UPDATE"
        await conn.execute(lock, customer_id, request_id)
        return await self.get(conn, customer_id, request_id, now=now)

    def audited(
        self, by: approval_types.Actor, verb: str, request_id: UUID, **details: object
    ) -> AbstractAsyncContextManager[AuditedAction]:
        """Return the audited transaction in which a member acts on a request."""
        return audited(
            by, by.customer_id, by.origin, f"{self.table}.{verb}", resource_id=request_id, details=details, now=by.wall
        )

    def check_pending(self, request: RequestType) -> None:
        """Raise Refused when a request is decided, or has expired."""
        if request.status != "PENDING":
            raise Refused(f"{self.table.replace('_', '-')}-not-pending", f"The request is {request.status}.")

    async def move(
        self, audited_action: AuditedAction, request: RequestType, status: approval_types.Status, *, now: datetime
    ) -> None:
        """Record the new status of a pending request, and schedule what follows."""
        where = "status = 'PENDING'"
        key = (request.customer_id, request.request_id)
        await update(audited_action, self.table, *key, where=where, status=status, updated_at=now)
        await self.schedule_next(audited_action.conn, msgspec.structs.replace(request, status=status), now=now)

    async def schedule_next(self, conn: Connection, request: RequestType, *, now: datetime) -> None:
        """Schedule the next job: at its expiry, or at once if it is approved."""
        job, at = self.expiry_job, request.expires_at
        if request.status != "PENDING":
            await scheduler.cancel(conn, self.expiry_job, request.request_id)
            job, at = approval_types.RUN_SERIES if request.is_series else self.approval_job, now
        if request.status in {"PENDING", "APPROVED"}:
            await scheduler.schedule(conn, [ScheduledJob(job, request.request_id, request.customer_id, at=at)])
        await self._report(conn, request.customer_id, request.request_id, now)

    async def _report(self, conn: Connection, customer_id: UUID, request_id: UUID, now: datetime) -> None:
        if self.report_job is not None:
            await scheduler.schedule(conn, [job_of(self.report_job, request_id, customer_id, now)])

    async def update_by_bank(
        self,
        bank: Bank,
        customer_id: UUID,
        request_id: UUID,
        verb: str,
        *,
        where: str,
        details: Mapping[str, object],
        **columns: object,
    ) -> None:
        """Change columns of a request if a condition holds, as the bank itself; audited if it did."""
        async with audited(
            bank, customer_id, Origin.system(), f"{self.table}.{verb}", resource_id=request_id, details=details
        ) as audited_action:
            if await update(audited_action, self.table, customer_id, request_id, where=where, **columns):
                await self._report(audited_action.conn, customer_id, request_id, await bank.now(audited_action.conn))
            else:
                audited_action.skip()

    def _read(self, row: Record) -> RequestType:
        columns = dict(row)
        columns["terms"] = msgspec.json.decode(columns["terms"], type=approval_types.ApprovalRequirement)
        return msgspec.convert(columns, self.row)


_STATUS = "CASE WHEN q.status = 'PENDING' AND q.expires_at <= $2 THEN 'EXPIRED' ELSE q.status END AS status_now"
TRANSFER_REQUESTS = RequestKind(
    table="transfer_request",
    row=approval_types.TransferRequest,
    select=f"""
SELECT q.*, {_STATUS},
       CASE WHEN q.status <> 'APPROVED' THEN 'NOT_STARTED'
            WHEN q.reason IS NOT NULL THEN 'REJECTED'
            WHEN q.series_state IS NOT NULL THEN 'NOT_STARTED'
            WHEN 'PENDING' IN (t.status, w.status, c.status) THEN 'PROCESSING'
            ELSE coalesce(t.status, w.status, c.status, 'NOT_STARTED') END AS execution,
       CASE WHEN q.status = 'APPROVED' THEN coalesce(q.reason, t.reason, w.reason, c.reason) END AS reason_now,
       coalesce(w.fee, 0) AS fee,
       CASE WHEN coalesce(t.status, w.status) <> 'REJECTED' THEN nullif(coalesce(t.amount, w.amount), 0) END AS paid,
       j.due_at AS next_run_at
  FROM transfer_request q
  LEFT JOIN transfer t ON t.customer_id = q.customer_id AND t.transfer_id = q.request_id
  LEFT JOIN wire w ON w.customer_id = q.customer_id AND w.wire_id = q.request_id
  LEFT JOIN crypto_withdrawal c ON c.customer_id = q.customer_id AND c.withdrawal_id = q.request_id
  LEFT JOIN scheduled_job j ON q.series_state = 'ACTIVE' AND j.kind = '{approval_types.RUN_SERIES}'
   AND j.object_id = q.request_id
 WHERE q.customer_id = $1
""",
    filters="""
($3::text[] IS NULL OR q.status_now = ANY($3)) AND ($4::text[] IS NULL OR q.type = ANY($4))
   AND ($5::uuid[] IS NULL OR q.pocket_id = ANY($5)) AND ($6::uuid IS NULL OR q.member_id = $6)
   AND ($7::timestamptz IS NULL OR q.created_at >= $7) AND ($8::timestamptz IS NULL OR q.created_at < $8)
   AND ($9::uuid IS NULL OR $9 = ANY(q.reviewers) OR q.request_id IN (
        SELECT v.request_id FROM review v WHERE v.customer_id = $1 AND v.member_id = $9))
   AND ($10::uuid IS NULL OR q.series_id = $10) AND ($11::boolean IS NULL OR (q.series_state IS NOT NULL) = $11)
   AND ($12::uuid[] IS NULL OR q.request_id = ANY($12)) AND ($13::bigint[] IS NULL OR q.request_id IN (
        SELECT n.object_id FROM object_note n WHERE n.customer_id = $1 AND n.terms @> $13))""",
    needs=MAY_APPROVE,
    expiry_job=approval_types.EXPIRE_TRANSFER_REQUEST,
    approval_job=approval_types.EXECUTE_TRANSFER_REQUEST,
    report_job=approval_types.REPORT_TRANSFER_REQUEST,
)
AUTHORIZATION_REQUESTS = RequestKind(
    table="authorization_request",
    row=approval_types.AuthorizationRequestRow,
    select=f"SELECT q.*, {_STATUS} FROM authorization_request q WHERE q.customer_id = $1",
    filters="($3::text[] IS NULL OR q.status_now = ANY($3)) AND ($4::text[] IS NULL OR q.action = ANY($4))",
    needs=MAY_CONFIRM,
    expiry_job=approval_types.EXPIRE_AUTHORIZATION_REQUEST,
    approval_job=approval_types.APPLY_AUTHORIZATION_REQUEST,
)
# Each of our commands is in one commit; its journals lie between two chain entries.
_TRANSACTIONS = """
SELECT w.request_id, a.transaction_id
  FROM unnest($2::uuid[], $3::uuid[], $4::uuid[]) AS w(request_id, command_id, pocket_id)
  JOIN command c ON c.customer_id = $1 AND c.command_id = w.command_id
  JOIN chain_entry l ON l.customer_id = $1 AND l.version = c.version
  JOIN chain_entry b ON b.customer_id = $1 AND b.version = c.version - 1
  JOIN transaction a ON a.customer_id = $1 AND a.pocket_id = w.pocket_id
   AND a.entry_no > b.entry_no AND a.entry_no <= l.entry_no
   AND w.request_id::text IN (a.details ->> 'on_us_transfer_id', a.details ->> 'wire_id',
                              a.details ->> 'crypto_transfer_id')
 ORDER BY a.entry_no, a.posting_no
"""


_TO_COUNTERPARTY = """
SELECT request_id FROM transfer_request
 WHERE customer_id = $1 AND counterparty_id = $2 AND status = 'APPROVED' AND reason IS NULL
 ORDER BY created_at DESC LIMIT $3
"""


async def list_to_counterparty(
    conn: Db, customer_id: UUID, counterparty_id: UUID, *, now: datetime, limit: int = 5
) -> list[approval_types.TransferRequest]:
    """Return the newest approved requests that pay a counterparty."""
    ids = [row["request_id"] for row in await conn.fetch(_TO_COUNTERPARTY, customer_id, counterparty_id, limit)]
    return await TRANSFER_REQUESTS.list_named(conn, customer_id, ids, now=now) if ids else []


_LAST_PAYMENTS = """
SELECT c.counterparty_id, p.created_at, p.amount
  FROM unnest($2::uuid[]) AS c(counterparty_id) CROSS JOIN LATERAL (
       SELECT q.created_at, q.amount FROM transfer_request q
        WHERE q.customer_id = $1 AND q.counterparty_id = c.counterparty_id AND q.status = 'APPROVED'
          AND q.reason IS NULL AND q.series_state IS NULL
        ORDER BY q.created_at DESC LIMIT 1) p
"""
_PAID_LAST = """
SELECT counterparty_id FROM transfer_request WHERE customer_id = $1 ORDER BY created_at DESC, written_no DESC LIMIT 200
"""


async def list_last_payments(
    conn: Db, customer_id: UUID, counterparty_ids: Sequence[UUID]
) -> dict[UUID, tuple[datetime, int]]:
    """Return when the newest approved payment to each counterparty was requested, and its amount in cents."""
    rows = await conn.fetch(_LAST_PAYMENTS, customer_id, list(counterparty_ids)) if counterparty_ids else []
    return {key: (at, cents) for key, at, cents in rows}


async def list_paid_last(conn: Db, customer_id: UUID) -> list[UUID]:
    """Return the counterparties that the newest requests pay, each once, the last one first."""
    found = await conn.fetch(_PAID_LAST, customer_id)
    return list(dict.fromkeys(key for (key,) in found if key is not None))


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of transfer requests, in the order of the list's parameters; None does not filter.

    `until` is exclusive. `reviewer` finds requests that name a member as reviewer or that they have reviewed.
    """

    statuses: Sequence[str] | None = None
    types: Sequence[str] | None = None
    pockets: Sequence[UUID] | None = None
    requested_by: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    reviewer: UUID | None = None
    series_id: UUID | None = None
    scheduled: bool | None = None
    among: Sequence[UUID] | None = None
    terms: Sequence[int] | None = None


async def transactions_of(
    conn: Db, customer_id: UUID, commands: Iterable[tuple[approval_types.TransferRequest, UUID]]
) -> dict[UUID, list[UUID]]:
    """Return the transactions of requests, each given with a command that can have moved its money."""
    wanted = [(request.request_id, command_id, request.pocket_id) for request, command_id in commands]
    moved: dict[UUID, list[UUID]] = {request_id: [] for request_id, *_ in wanted}
    for row in await conn.fetch(_TRANSACTIONS, customer_id, *([each[n] for each in wanted] for n in range(3))):
        moved[row["request_id"]].append(row["transaction_id"])
    return moved


async def run_expiry_job(bank: Bank, job: ScheduledJob) -> None:
    """Record that a request has expired; a decided one is not changed."""
    if job.kind == TRANSFER_REQUESTS.expiry_job:
        await expire(TRANSFER_REQUESTS, bank, job)
    else:
        await expire(AUTHORIZATION_REQUESTS, bank, job)


async def expire(kind: RequestKind[RequestType], bank: Bank, job: ScheduledJob) -> None:
    """Record that a request of a kind has expired; a decided one is not changed."""
    assert job.customer_id is not None
    await kind.update_by_bank(
        bank,
        job.customer_id,
        job.object_id,
        verb="expired",
        where="status = 'PENDING' AND expires_at <= $3",
        details={},
        updated_at=await bank.now(),
        status="EXPIRED",
    )


async def report_transfer_request(bank: Bank, job: ScheduledJob) -> None:
    """Raise the event of the status that a transfer request has now."""
    assert job.customer_id is not None
    found = await TRANSFER_REQUESTS.get(bank.pool, job.customer_id, job.object_id, now=await bank.now())
    payload = kinds.RequestPayload(
        transfer_request_id=found.request_id, status=found.status, reason=found.reason or msgspec.UNSET
    )
    await report(bank, job, kinds.REQUEST_UPDATED, payload)
