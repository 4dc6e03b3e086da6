"""Transfer requests: created, changed, cancelled and decided.

Each in one transaction with its audit entry, its notifications and the jobs that follow. An
approval schedules the job that carries the transfer out: nothing is lost when the bank stops here.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.approvals import rules
from billfold.approvals.feasibility import check_feasible
from billfold.approvals.store.approval_rules import requirement_for_transfer
from billfold.approvals.store.fingerprints import audited_request, record_checksums
from billfold.approvals.store.payees import check_same_payee
from billfold.approvals.store.reviews import Subject, record_review, users_behind, void_reviews
from billfold.approvals.store.transfer_requests import find_request, lock_request, possible_reviewers
from billfold.approvals.transfer_orders import RequestContent, content_of
from billfold.approvals.types import (
    EXECUTE_TRANSFER_REQUEST,
    EXPIRE_TRANSFER_REQUEST,
    Actor,
    ApprovalRequirement,
    Decision,
    Status,
    TransferRequest,
)
from billfold.audit import record as audit_record
from billfold.audit.record import AuditedAction
from billfold.audit.types import Origin
from billfold.events.notifications import notify as notification_notify
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.types import ScheduledJob
from billfold.platform.clock import wall_now
from billfold.platform.errors import FieldError, InvalidInput, InvariantError, Refused
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

_RESOURCE = "transfer_request"
_NOT_PENDING = "transfer-request-not-pending"
_NOUNS = {"ON_US": "transfer", "WIRE": "wire", "USDC": "transfer of USDC"}

_ID_EXISTS = "SELECT 1 FROM directory WHERE kind IN ('transfer', 'wire') AND value = $1"
_INSERT = """
INSERT INTO transfer_request (customer_id, request_id, type, pocket_id, counterparty_id, amount,
                              content, content_hash, asked, member_id, user_id, client_id,
                              reviewers, rule_id, terms, business_date, status, created_at,
                              updated_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18, $19)
ON CONFLICT DO NOTHING RETURNING *
"""
_CHANGE = """
UPDATE transfer_request
   SET counterparty_id = $3, amount = $4, content = $5, content_hash = $6, reviewers = $7,
       rule_id = $8, terms = $9, business_date = $10, status = $11, updated_at = $12,
       pocket_id = $13
 WHERE customer_id = $1 AND request_id = $2 AND status = 'PENDING' RETURNING *
"""
_MOVE = """
UPDATE transfer_request SET status = $3, updated_at = $4
 WHERE customer_id = $1 AND request_id = $2 AND status = 'PENDING' RETURNING *
"""
_REJECT = """
UPDATE transfer_request SET reason = $3, updated_at = $4
 WHERE customer_id = $1 AND request_id = $2 AND status = 'APPROVED' AND reason IS NULL
RETURNING *
"""
_NAME = "SELECT name FROM pocket WHERE customer_id = $1 AND pocket_id = $2"


async def create(bank: Bank, by: Actor, content: RequestContent) -> TransferRequest:
    """Create a request. Without required approvals it is APPROVED at once, if feasible.

    The same request under the same id is answered with what it made before. Raises InvalidInput
    at `reviewers`, Refused `duplicate-id` for another one, `amount-not-allowed`, and as
    `check_feasible`.
    """
    about = _audit_details(content)
    async with audited_request(by, _RESOURCE, "created", content.request_id, **about) as audited_action:
        conn = audited_action.conn
        if await conn.fetchval(_ID_EXISTS, str(content.request_id)):
            await _same_or_refuse(conn, by, content)
        terms, status = await _required(bank, by, content, conn=conn)
        text = rules.text_of(msgspec.to_builtins(content))
        made = await conn.fetch(
            _INSERT,
            by.customer_id,
            content.request_id,
            content.type,
            content.pocket_id,
            content.counterparty_id,
            content.amount,
            text,
            rules.hash_of(text),
            _fingerprint(content),
            by.member_id,
            by.user_id,
            by.client_id,
            content.reviewers,
            terms.rule_id,
            rules.text_of(terms),
            by.business_date,
            status,
            by.now,
            by.now + rules.REQUEST_LIFETIME,
        )
        if not made:
            audited_action.skip()
            return await _same_or_refuse(conn, by, content)
        record_checksums(audited_action, _RESOURCE, made)
        await _schedule_next(conn, by, content.request_id, status=status, expires_at=by.now + rules.REQUEST_LIFETIME)
        found = await lock_request(conn, by, content.request_id)
        if status == "PENDING":
            await _notify_reviewers(audited_action, by, found)
    return found


async def change(bank: Bank, by: Actor, content: RequestContent) -> TransferRequest:
    """Change the content of a pending request: its reviews become void.

    Raises NotFound, Refused `forbidden` for everybody but the requester,
    `transfer-request-not-pending`, and as `create`.
    """
    async with audited_request(
        by, _RESOURCE, "updated", content.request_id, **_audit_details(content)
    ) as audited_action:
        conn = audited_action.conn
        before = await lock_request(conn, by, content.request_id)
        if before.member_id != by.member_id:
            raise Refused("forbidden", "Only the requester can change the transfer request.")
        _must_be_pending(before)
        terms, status = await _required(bank, by, content, conn=conn)
        text = rules.text_of(msgspec.to_builtins(content))
        if text == before.content:
            audited_action.skip()
            return before
        await void_reviews(audited_action, by, content.request_id)
        changed = await conn.fetch(
            _CHANGE,
            by.customer_id,
            content.request_id,
            content.counterparty_id,
            content.amount,
            text,
            rules.hash_of(text),
            content.reviewers,
            terms.rule_id,
            rules.text_of(terms),
            by.business_date,
            status,
            by.now,
            content.pocket_id,
        )
        record_checksums(audited_action, _RESOURCE, changed)
        await _schedule_next(conn, by, content.request_id, status=status, expires_at=before.expires_at)
        found = await lock_request(conn, by, content.request_id)
        if status == "PENDING":
            await _notify_reviewers(audited_action, by, found)
    return found


async def cancel(by: Actor, request_id: UUID) -> None:
    """Cancel a request, as its requester or as an administrator.

    Raises NotFound, Refused `forbidden`, `transfer-request-not-pending`.
    """
    async with audited_request(by, _RESOURCE, "cancelled", request_id=request_id) as audited_action:
        found = await lock_request(audited_action.conn, by, request_id)
        if by.member_id != found.member_id and by.role != "ADMIN":
            raise Refused("forbidden", "Only the requester or an ADMIN can cancel the transfer request.")
        _must_be_pending(found)
        await _move(audited_action, by, request_id, status="CANCELLED")
        await _schedule_next(audited_action.conn, by, request_id, status="CANCELLED", expires_at=found.expires_at)


async def decide(
    bank: Bank,
    by: Actor,
    request_id: UUID,
    *,
    decision: Decision,
    comment: str | None,
    content_hash: bytes | None = None,
) -> TransferRequest:
    """Approve or deny a request, as one of those who may.

    `content_hash` is of the content the reviewer has read, if given. Raises NotFound,
    Refused `content-changed`, and as `cast`; as `check_feasible` when it would be the
    last approval, which then does not count.
    """
    async with audited_request(by, _RESOURCE, decision.lower(), request_id=request_id) as audited_action:
        conn = audited_action.conn
        found = await lock_request(conn, by, request_id)
        status = await record_review(audited_action, by, subject_of(found), decision=decision, comment=comment)
        if content_hash is not None and content_hash != found.content_hash:
            raise Refused("content-changed", "The request was changed since you read it.")
        if decision == "APPROVED":
            await check_same_payee(conn, found)
        audited_action.details |= {"content_hash": found.content_hash.hex(), "status": status}
        if status == "APPROVED":
            await check_feasible(bank, conn, content_of(found), customer_id=by.customer_id)
        if status != "PENDING":
            await _move(audited_action, by, request_id, status=status)
            await _schedule_next(conn, by, request_id, status=status, expires_at=found.expires_at)
        after = await lock_request(conn, by, request_id)
        await _notify_reviewed(audited_action, by, after, decision=decision)
    return after


async def record_rejection(bank: Bank, customer_id: UUID, request_id: UUID, *, reason: str) -> None:
    """Record why an approved request could not be carried out, for good."""
    async with audit_record.audited(
        bank.pool,
        bank.vault,
        customer_id,
        origin=Origin.system(),
        action=f"{_RESOURCE}.rejected",
        resource=(_RESOURCE, request_id),
        now=wall_now(),
        details={"reason": reason},
    ) as audited_action:
        now = await bank.now()
        noted = await audited_action.conn.fetch(_REJECT, customer_id, request_id, reason, now)
        record_checksums(audited_action, _RESOURCE, noted)
        if not noted:
            audited_action.skip()


async def find_same(by: Actor, content: RequestContent) -> TransferRequest | None:
    """Return what the same request has made before. Raises Refused `duplicate-id` for another."""
    async with by.pool.acquire() as conn:
        known = await find_request(conn, by.customer_id, content.request_id, now=by.now)
        return None if known is None else await _same_or_refuse(conn, by, content)


def subject_of(request: TransferRequest) -> Subject:
    """Return what reviewers decide about."""
    return Subject(
        request_id=request.request_id,
        status=request.status,
        content_hash=request.content_hash,
        terms=request.terms,
        named=request.reviewers,
        user_id=request.user_id,
        client_id=request.client_id,
        needs=rules.MAY_APPROVE,
        not_pending=_NOT_PENDING,
    )


# -- of each -----------------------------------------------------------------------------


async def _required(
    bank: Bank, by: Actor, content: RequestContent, *, conn: Connection
) -> tuple[ApprovalRequirement, Status]:
    """Return the approvals that a request requires, and its status before the first."""
    terms = await requirement_for_transfer(
        conn,
        by.customer_id,
        type_=content.type,
        amount=content.amount,
        day=by.business_date,
        request_id=content.request_id,
    )
    await _check_reviewers(conn, by, content, terms=terms)
    if terms.required:
        return terms, "PENDING"
    await check_feasible(bank, conn, content, customer_id=by.customer_id)
    return terms, "APPROVED"


async def _check_reviewers(conn: Connection, by: Actor, content: RequestContent, *, terms: ApprovalRequirement) -> None:
    """Raise InvalidInput unless the reviewers who are named may approve, and are enough."""
    if not content.reviewers:
        return
    requester_ids = await users_behind(conn, by.user_id, by.client_id)
    possible = await possible_reviewers(conn, by.customer_id, apart_from=requester_ids, terms=terms)
    known = {each.member_id for each in possible}
    wrong = [
        FieldError(("reviewers", place), "must be an active member who may approve this", "value_error")
        for place, member_id in enumerate(content.reviewers)
        if member_id not in known
    ]
    if not wrong and len(content.reviewers) < terms.required:
        needed = f"must name {terms.required} members or more, or none: so many approve this"
        wrong = [FieldError(("reviewers",), needed, "too_short")]
    if wrong:
        raise InvalidInput(wrong)


async def _same_or_refuse(conn: Connection, by: Actor, content: RequestContent) -> TransferRequest:
    """Return the request that has this id, when it was created with the same content."""
    found = await find_request(conn, by.customer_id, content.request_id, now=by.now)
    if found is None or found.asked != _fingerprint(content) or found.member_id != by.member_id:
        raise Refused("duplicate-id", "Another transfer, or request, already has this id.")
    return found


async def _schedule_next(
    conn: Connection, by: Actor, request_id: UUID, *, status: Status, expires_at: datetime
) -> None:
    """Schedule the next job: at its expiry, or at once when it is approved."""
    if status == "PENDING":
        await jobs_store.schedule(
            conn, [ScheduledJob(EXPIRE_TRANSFER_REQUEST, request_id, by.customer_id, at=expires_at)]
        )
        return
    await jobs_store.cancel(conn, EXPIRE_TRANSFER_REQUEST, request_id)
    if status == "APPROVED":
        await jobs_store.schedule(conn, [ScheduledJob(EXECUTE_TRANSFER_REQUEST, request_id, by.customer_id, at=by.now)])


async def _move(audited_action: AuditedAction, by: Actor, request_id: UUID, *, status: Status) -> None:
    moved = await audited_action.conn.fetch(_MOVE, by.customer_id, request_id, status, by.now)
    record_checksums(audited_action, _RESOURCE, moved)


def _must_be_pending(request: TransferRequest) -> None:
    if request.status != "PENDING":
        raise Refused(_NOT_PENDING, f"The request is {request.status}.")


def _fingerprint(content: RequestContent) -> bytes:
    """Return the hash of what was sent, whatever the request is changed to later."""
    sent = rules.text_of(msgspec.to_builtins([content.transfer, content.reviewers]))
    return hashlib.sha256(sent.encode()).digest()


def _audit_details(content: RequestContent) -> dict[str, Any]:
    told = {"type": content.type, "pocket_id": content.pocket_id, "amount_usdc": content.amount}
    return told if content.counterparty_id is None else told | {"to": content.counterparty_id}


async def _notify_reviewers(audited_action: AuditedAction, by: Actor, request: TransferRequest) -> None:
    said = await _sentence(audited_action.conn, request)
    await notification_notify.notify(
        audited_action.conn,
        by.vault,
        by.customer_id,
        kind="TRANSFER_REQUEST_PENDING_REVIEW",
        title="A transfer waits for approval",
        description=f"{by.name} asks for {said}.",
        metadata={"transfer_request_id": request.request_id, "amount_usdc": request.amount},
        now=by.wall,
        except_user_id=by.user_id,
    )


async def _notify_reviewed(
    audited_action: AuditedAction, by: Actor, request: TransferRequest, *, decision: Decision
) -> None:
    said = await _sentence(audited_action.conn, request)
    more = " More approvals are needed." if request.status == "PENDING" else ""
    await notification_notify.notify(
        audited_action.conn,
        by.vault,
        by.customer_id,
        kind="TRANSFER_REQUEST_REVIEWED",
        title=f"A transfer was {decision.lower()}",
        description=f"{by.name} {decision.lower()} {said}.{more}",
        metadata={"transfer_request_id": request.request_id, "decision": decision, "status": request.status},
        now=by.wall,
        except_user_id=by.user_id,
    )


async def _sentence(conn: Connection, request: TransferRequest) -> str:
    name = await conn.fetchval(_NAME, request.customer_id, request.pocket_id)
    if name is None:
        raise InvariantError("a request names a pocket that is not there")
    return f"a {_NOUNS[request.type]} of {format_usd(request.amount)} from the Pocket {name}"
