"""Creates, changes, cancels and decides transfer requests.

Each in one transaction with its audit entry, its notifications and the jobs that follow. An
approval schedules the job that executes the transfer, so a crash at this point loses nothing.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.counterparties.types import format_name
from billfold.approvals import execute_transfers, rules
from billfold.approvals.store import reviews
from billfold.approvals.store.approval_rules import insert, update
from billfold.approvals.store.policies import requirement_for
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.transfer_orders import RequestContent, check_same_payee, content_of
from billfold.approvals.types import (
    DEFAULT_REQUIREMENT,
    Actor,
    ApprovalRequirement,
    Status,
    StoredRequest,
    TransferRequest,
    Verdict,
)
from billfold.audit.record import AuditedAction
from billfold.data_keys.keys import DataKeys
from billfold.events.notifications import notify
from billfold.ledger.bank import Bank
from billfold.platform.database.connection import Connection
from billfold.platform.errors import FieldError, InvalidInput, InvariantError, Refused

_NOUNS = {"ON_US": "transfer", "WIRE": "wire", "USDC": "transfer of USDC"}

_ID_EXISTS = "SELECT 1 FROM directory WHERE kind IN ('transfer', 'wire', 'crypto_withdrawal') AND value = $1"
_NAME = "SELECT name FROM pocket WHERE customer_id = $1 AND pocket_id = $2"


async def create(bank: Bank, by: Actor, content: RequestContent) -> TransferRequest:
    """Create a request. If no approvals are required and it is feasible, it is APPROVED at once.

    The same request with the same id returns the existing one. Raises InvalidInput
    at `reviewers`, Refused `duplicate-id` for another one, `amount-not-allowed`, `approval-impossible`
    when it has too few reviewers, and as `check_feasible`.
    """
    async with TRANSFER_REQUESTS.audited(
        by, "created", content.request_id, **_audit_details(content)
    ) as audited_action:
        conn = audited_action.conn
        if await conn.fetchval(_ID_EXISTS, str(content.request_id)):
            await _same_or_refuse(conn, by, content)
        terms, status = await _required_approvals(bank, by, content, conn=conn)
        if not await insert_content(audited_action, by, content, terms=terms, status=status):
            audited_action.skip()
            return await _same_or_refuse(conn, by, content)
        return await after_submission(audited_action, by, content)


async def change(bank: Bank, by: Actor, content: RequestContent) -> TransferRequest:
    """Change the content of a pending request, which voids its reviews.

    Raises NotFound, Refused `forbidden` for anyone but the requester,
    `transfer-request-not-pending`, `duplicate-id` when another transfer has used its id, and as `create`.
    """
    async with TRANSFER_REQUESTS.audited(
        by, "updated", content.request_id, **_audit_details(content)
    ) as audited_action:
        conn, key = audited_action.conn, (by.customer_id, content.request_id)
        before = await TRANSFER_REQUESTS.lock(conn, *key, now=by.now)
        if before.member_id != by.member_id:
            raise Refused("forbidden", "Only the requester can change the transfer request.")
        if before.series_id is not None:
            raise Refused("forbidden", "The run of a series has its content. Cancel it and request another transfer.")
        TRANSFER_REQUESTS.check_pending(before)
        await _check_id(conn, content.request_id)
        terms, status = await _required_approvals(bank, by, content, conn=conn)
        columns = _content_columns(by, content, terms, status)
        if columns["content"] == before.content:
            audited_action.skip()
            return before
        await reviews.void_reviews(audited_action, by, content.request_id)
        columns["version"] = (before.version or 1) + 1
        await update(audited_action, TRANSFER_REQUESTS.table, *key, where="status = 'PENDING'", **columns)
        return await after_submission(audited_action, by, content)


async def cancel(by: Actor, request_id: UUID) -> None:
    """Cancel a request, as its requester or as an administrator.

    Raises NotFound, Refused `forbidden`, `transfer-request-not-pending`.
    """
    async with TRANSFER_REQUESTS.audited(by, "cancelled", request_id) as audited_action:
        found = await TRANSFER_REQUESTS.lock(audited_action.conn, by.customer_id, request_id, now=by.now)
        if by.member_id != found.member_id and by.role != "ADMIN":
            raise Refused("forbidden", "Only the requester or an ADMIN can cancel the transfer request.")
        TRANSFER_REQUESTS.check_pending(found)
        await TRANSFER_REQUESTS.move(audited_action, found, "CANCELLED", now=by.now)


async def decide(bank: Bank, by: Actor, request_id: UUID, *, verdict: Verdict) -> TransferRequest:
    """Approve or deny a request, as an eligible reviewer.

    Raises NotFound, Refused as `record_review`, `approval-impossible` when its requester may no longer make it,
    and as `check_feasible` and `duplicate-id` when it would be the last approval, which then does not count.
    """
    decision = verdict.decision
    ring = await bank.ports[DataKeys].load(bank.pool, (by.customer_id,))
    async with TRANSFER_REQUESTS.audited(by, decision.lower(), request_id) as audited_action:
        conn = audited_action.conn
        found = await TRANSFER_REQUESTS.lock(conn, by.customer_id, request_id, now=by.now)
        status = await reviews.record_review(audited_action, by, found, kind=TRANSFER_REQUESTS, verdict=verdict)
        if decision == "APPROVED":
            await check_requester(conn, found)
            await check_same_payee(conn, by.customer_id, content_of(found), ring.get(by.customer_id))
        audited_action.details |= {"content_hash": found.content_hash.hex(), "status": status}
        if status == "APPROVED":
            await _check_id(conn, request_id)
            if not found.is_series:
                await execute_transfers.check_feasible(
                    bank, conn, content_of(found), customer_id=by.customer_id, approved=True
                )
        if status != "PENDING":
            await TRANSFER_REQUESTS.move(audited_action, found, status, now=by.now)
        more = " More approvals are needed." if status == "PENDING" else ""
        await notify_team(
            audited_action,
            by,
            found,
            kind="TRANSFER_REQUEST_REVIEWED",
            title=f"A transfer was {decision.lower()}",
            verb=decision.lower(),
            more=more,
            metadata={"decision": decision, "status": status},
        )
        return await TRANSFER_REQUESTS.get(conn, by.customer_id, request_id, now=by.now)


async def find_same(by: Actor, content: RequestContent) -> TransferRequest | None:
    """Return the existing request with the same id and content. Raises Refused `duplicate-id` for another."""
    async with by.pool.acquire() as conn:
        known = await TRANSFER_REQUESTS.find(conn, by.customer_id, content.request_id, now=by.now)
        return None if known is None else await _same_or_refuse(conn, by, content)


# -- of each -----------------------------------------------------------------------------


async def insert_content(
    audited_action: AuditedAction,
    by: Actor,
    content: RequestContent,
    *,
    terms: ApprovalRequirement,
    status: Status,
    **run: Any,
) -> bool:
    """Insert a request, the run of a series, or the row of a batch; return False if its id is in use."""
    return await insert(
        audited_action,
        TRANSFER_REQUESTS.table,
        customer_id=by.customer_id,
        request_id=content.request_id,
        type=content.type,
        asked=fingerprint_of(content),
        member_id=by.member_id,
        user_id=by.user_id,
        client_id=by.client_id,
        created_at=by.now,
        expires_at=by.now + rules.REQUEST_LIFETIME,
        **_content_columns(by, content, terms, status),
        **run,
    )


def _content_columns(by: Actor, content: RequestContent, terms: ApprovalRequirement, status: Status) -> dict[str, Any]:
    """Return the columns that store a content, with its initial status."""
    text = rules.text_of(msgspec.to_builtins(content))
    return {
        "pocket_id": content.pocket_id,
        "counterparty_id": content.counterparty_id,
        "amount": content.amount,
        "content": text,
        "content_hash": rules.hash_of(text),
        "reviewers": content.reviewers,
        "rule_id": terms.rule_id,
        "policy_version": terms.policy_version,
        "policy_rule": terms.policy_rule,
        "terms": rules.text_of(terms),
        "business_date": by.business_date,
        "status": status,
        "series_state": None if content.schedule is UNSET else "ACTIVE",
        "updated_at": by.now,
    }


async def after_submission(audited_action: AuditedAction, by: Actor, content: RequestContent) -> TransferRequest:
    """Return a request that was just written, after scheduling its job and notifying its reviewers."""
    found = await TRANSFER_REQUESTS.lock(audited_action.conn, by.customer_id, content.request_id, now=by.now)
    await TRANSFER_REQUESTS.schedule_next(audited_action.conn, found, now=by.now)
    if found.status == "PENDING":
        await notify_team(
            audited_action,
            by,
            found,
            kind="TRANSFER_REQUEST_PENDING_REVIEW",
            title="A transfer waits for approval",
            verb="asks for",
            metadata={"amount_usdc": found.amount},
        )
    return found


async def _required_approvals(
    bank: Bank, by: Actor, content: RequestContent, *, conn: Connection
) -> tuple[ApprovalRequirement, Status]:
    """Return the approvals that a request requires, and its initial status."""
    terms = await required_approvals(bank, conn, by, content)
    if terms.required:
        return terms, "PENDING"
    if content.schedule is UNSET:
        await execute_transfers.check_feasible(bank, conn, content, customer_id=by.customer_id)
    return terms, "APPROVED"


async def required_approvals(bank: Bank, conn: Connection, by: Actor, content: RequestContent) -> ApprovalRequirement:
    """Return the approvals that a request requires, with the members who can give them.

    Raises InvalidInput at `reviewers`, Refused `approval-impossible`, `amount-not-allowed`, `policy-refused`.
    """
    terms = await requirement_for(bank, conn, by, content)
    if not terms.required and content.must_be_approved is True:
        terms = msgspec.structs.replace(DEFAULT_REQUIREMENT, policy_version=terms.policy_version)
    return await with_candidates(conn, by, terms, reviewers=content.reviewers) if terms.required else terms


async def with_candidates(
    conn: Connection,
    by: Actor,
    terms: ApprovalRequirement,
    *,
    reviewers: Sequence[UUID],
    needs: str = rules.MAY_APPROVE,
) -> ApprovalRequirement:
    """Return a requirement with the members who can give its approvals, the named reviewers or all others.

    Raises InvalidInput at `reviewers`, Refused `approval-impossible`.
    """
    others = await reviews.list_other_members(
        conn, by.customer_id, than=await reviews.users_behind(conn, by.user_id, by.client_id)
    )
    able = rules.find_candidates(others, terms, named=(), needs=needs)
    _check_reviewers(reviewers, able, terms=terms)
    candidates = {each: able[each] for each in reviewers or able}
    blocker = rules.find_blocker(terms, candidates, approvals=0)
    if blocker is not None:
        raise Refused("approval-impossible", blocker)
    return msgspec.structs.replace(terms, candidates=candidates)


def _check_reviewers(reviewers: Sequence[UUID], able: Container[UUID], *, terms: ApprovalRequirement) -> None:
    """Raise InvalidInput unless the named reviewers may approve and are numerous enough."""
    wrong = [
        FieldError(("reviewers", place), "must be an active member who may approve this", "value_error")
        for place, member_id in enumerate(reviewers)
        if member_id not in able
    ]
    if not wrong and reviewers and len(reviewers) < terms.required:
        needed = f"must name {terms.required} members or more, or none: it needs that many approvals"
        wrong = [FieldError(("reviewers",), needed, "too_short")]
    if wrong:
        raise InvalidInput(wrong)


async def check_requester(conn: Connection, request: StoredRequest) -> None:
    """Raise Refused `approval-impossible` when the requester of a transfer may no longer make it."""
    for blocker in (await reviews.find_requester_blockers(conn, request.customer_id, [request])).values():
        raise Refused("approval-impossible", blocker)


async def check_unused(conn: Connection, by: Actor, content: RequestContent) -> None:
    """Refuse an id that is used by a transfer or another request. Raises Refused `duplicate-id`."""
    if await TRANSFER_REQUESTS.find(conn, by.customer_id, content.request_id, now=by.now) is not None:
        await _same_or_refuse(conn, by, content)
    else:
        await _check_id(conn, content.request_id)


async def _check_id(conn: Connection, request_id: UUID) -> None:
    """Refuse what another transfer has taken the id of, because a reader of the request would take that one for it."""
    if await conn.fetchval(_ID_EXISTS, str(request_id)):
        raise Refused("duplicate-id", "Another transfer has been made under this id. Request it under a new one.")


async def _same_or_refuse(conn: Connection, by: Actor, content: RequestContent) -> TransferRequest:
    """Return the request that has this id, if it was created with the same content."""
    found = await TRANSFER_REQUESTS.find(conn, by.customer_id, content.request_id, now=by.now)
    if found is None or found.asked != fingerprint_of(content) or found.member_id != by.member_id:
        raise Refused("duplicate-id", "Another transfer, or request, already has this id.")
    return found


def fingerprint_of(content: RequestContent) -> bytes:
    """Return the hash of the content as sent, independent of later changes."""
    optional = (content.wire_instructions, content.schedule, content.must_be_approved, content.attached)
    also = [each for each in optional if each is not UNSET]
    return rules.hash_of(rules.text_of(msgspec.to_builtins([content.transfer, content.reviewers, *also])))


def _audit_details(content: RequestContent) -> dict[str, Any]:
    details = {"type": content.type, "pocket_id": content.pocket_id, "amount_usdc": content.amount}
    if content.reverses_id is not None and content.payee is not None:
        return details | {"to": format_name(content.payee["counterparty_name"])}
    return details if content.counterparty_id is None else details | {"to": content.counterparty_id}


async def notify_team(
    audited_action: AuditedAction,
    by: Actor,
    request: TransferRequest,
    *,
    kind: str,
    title: str,
    verb: str,
    metadata: Mapping[str, object],
    more: str = "",
) -> None:
    """Notify the team that a member requested a transfer, or decided about it."""
    name = await audited_action.conn.fetchval(_NAME, request.customer_id, request.pocket_id)
    if name is None:
        raise InvariantError("a request names a pocket that does not exist")
    content = content_of(request)
    payee = await _payee_name(audited_action.conn, request, content)
    to = f" to {payee}" if payee else ""
    transfer = f"a {_NOUNS[request.type]} of {content.amount_text}{to} from the Pocket {name}"
    transfer += " on the days of a schedule" if request.is_series else ""
    await notify.notify(
        audited_action.conn,
        by.vault,
        by.customer_id,
        kind=kind,
        title=title,
        description=f"{by.name} {verb} {transfer}.{more}",
        metadata={"transfer_request_id": request.request_id, **metadata},
        now=by.wall,
        except_user_id=by.user_id,
    )


async def _payee_name(conn: Connection, request: TransferRequest, content: RequestContent) -> str | None:
    """Return the name of the counterparty of a request, or of the own Pocket that it pays."""
    if content.payee is not None:
        return format_name(content.payee["counterparty_name"])
    pocket_id = getattr(getattr(content.transfer, "details", None), "destination_pocket_id", None)
    return pocket_id and await conn.fetchval(_NAME, request.customer_id, pocket_id)
