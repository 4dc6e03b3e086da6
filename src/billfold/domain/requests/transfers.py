"""Transfer requests: asked for, changed, cancelled, decided, and expired.

Each in one transaction with its audit entry, the word to the team and the appointments that follow.
What is approved has an appointment to be carried out: nothing is lost when the bank stops here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from billfold.domain import agenda, audit, notifications
from billfold.domain.agenda import Appointment
from billfold.domain.audit import Deed, Origin
from billfold.domain.requests import rules
from billfold.domain.requests.approval_rules import terms_for
from billfold.domain.requests.deciding import Subject, cast, void_all, who_is
from billfold.domain.requests.payees import check_same_payee
from billfold.domain.requests.proofs import prove
from billfold.domain.requests.reads import find_request, hold_request, possible_reviewers
from billfold.domain.requests.types import (
    Asked,
    Decision,
    Principal,
    Status,
    Terms,
    TransferRequest,
)
from billfold.kit.errors import Broken, FieldError, InvalidInput, Refused
from billfold.kit.money import format_usd

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.kit.crypto import Vault
    from billfold.kit.db import Connection, Pool

Probe = Callable[["Connection", Asked], Awaitable[None]]
"""Finds out, in the transaction of an approval, whether the transfer is possible; raises if not."""
EXPIRE: Final = "request.expire"
EXECUTE: Final = "request.execute"
"""Kinds of appointments; the object is the request."""
_RESOURCE = "transfer_request"
_NOT_PENDING = "transfer-request-not-pending"
_NOUNS = {"ON_US": "transfer", "WIRE": "wire", "USDC": "transfer of USDC"}

_TAKEN = "SELECT 1 FROM directory WHERE kind IN ('transfer', 'wire') AND value = $1"
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
_EXPIRE = f"{_MOVE.replace('RETURNING', 'AND expires_at <= $4 RETURNING')}"
_REJECT = """
UPDATE transfer_request SET reason = $3, updated_at = $4
 WHERE customer_id = $1 AND request_id = $2 AND status = 'APPROVED' AND reason IS NULL
RETURNING *
"""
_NAME = "SELECT name FROM pocket WHERE customer_id = $1 AND pocket_id = $2"


async def create(by: Principal, asked: Asked, probe: Probe) -> TransferRequest:
    """Ask for a transfer. What needs no approval is APPROVED at once, when it is possible.

    The same request under the same id is answered with what it made before. Raises InvalidInput
    at `reviewers`, Refused `duplicate-id` for another one, `amount-not-allowed`, and as `probe`.
    """
    about = _about(asked)
    async with _deed(by, "created", asked.request_id, **about) as doing:
        conn = doing.conn
        if await conn.fetchval(_TAKEN, str(asked.request_id)):
            await _same_or_refuse(conn, by, asked)
        terms, status = await _weighed(conn, by, asked, probe)
        text = _content_of(asked)
        made = await conn.fetch(
            _INSERT, by.customer_id, asked.request_id, asked.type, asked.pocket_id,
            asked.counterparty_id, asked.amount, text, rules.hash_of(text), _fingerprint(asked),
            by.member_id, by.user_id, by.client_id, asked.reviewers, terms.rule_id,
            rules.text_of(terms), by.business_date, status, by.now, by.now + rules.LASTS,
        )  # fmt: skip
        if not made:
            doing.skip()
            return await _same_or_refuse(conn, by, asked)
        prove(doing, _RESOURCE, made)
        await _go_on(conn, by, asked.request_id, status, by.now + rules.LASTS)
        found = await hold_request(conn, by.customer_id, asked.request_id, by.now)
        if status == "PENDING":
            await _tell_reviewers(doing, by, found)
    return found


async def change(by: Principal, asked: Asked, probe: Probe) -> TransferRequest:
    """Give a request that waits another content: what was said about the one before is void.

    Raises NotFound, Refused `forbidden` for everybody but who asked,
    `transfer-request-not-pending`, and as `create`.
    """
    async with _deed(by, "updated", asked.request_id, **_about(asked)) as doing:
        conn = doing.conn
        before = await hold_request(conn, by.customer_id, asked.request_id, by.now)
        if before.member_id != by.member_id:
            raise Refused("forbidden", "Only who asked for the transfer changes it.")
        _must_wait(before)
        terms, status = await _weighed(conn, by, asked, probe)
        text = _content_of(asked)
        if text == before.content:
            doing.skip()
            return before
        await void_all(doing, by, asked.request_id)
        changed = await conn.fetch(
            _CHANGE, by.customer_id, asked.request_id, asked.counterparty_id, asked.amount, text,
            rules.hash_of(text), asked.reviewers, terms.rule_id, rules.text_of(terms),
            by.business_date, status, by.now, asked.pocket_id,
        )  # fmt: skip
        prove(doing, _RESOURCE, changed)
        await _go_on(conn, by, asked.request_id, status, before.expires_at)
        found = await hold_request(conn, by.customer_id, asked.request_id, by.now)
        if status == "PENDING":
            await _tell_reviewers(doing, by, found)
    return found


async def cancel(by: Principal, request_id: UUID) -> None:
    """Take a request back: who asked does, or an administrator.

    Raises NotFound, Refused `forbidden`, `transfer-request-not-pending`.
    """
    async with _deed(by, "cancelled", request_id) as doing:
        found = await hold_request(doing.conn, by.customer_id, request_id, by.now)
        if by.member_id != found.member_id and by.role != "ADMIN":
            raise Refused("forbidden", "Who asked for the transfer cancels it, or an ADMIN.")
        _must_wait(found)
        await _move(doing, by, request_id, "CANCELLED")
        await _go_on(doing.conn, by, request_id, "CANCELLED", found.expires_at)


async def decide(
    by: Principal,
    request_id: UUID,
    decision: Decision,
    probe: Probe,
    *,
    comment: str | None,
    content_hash: bytes | None = None,
) -> TransferRequest:
    """Approve or deny a request, as one of those who may.

    `content_hash` is of the content the reviewer has seen, when he says so. Raises NotFound,
    Refused `content-changed`, and as `cast`; as `probe` when its voice would be the last, which
    is then not heard.
    """
    async with _deed(by, decision.lower(), request_id) as doing:
        conn = doing.conn
        found = await hold_request(conn, by.customer_id, request_id, by.now)
        status = await cast(doing, by, subject_of(found), decision, comment)
        if content_hash is not None and content_hash != found.content_hash:
            raise Refused("content-changed", "The request was changed since you read it.")
        if decision == "APPROVED":
            await check_same_payee(conn, found)
        doing.details |= {"content_hash": found.content_hash.hex(), "status": status}
        if status == "APPROVED":
            await probe(conn, asked_of(found))
        if status != "PENDING":
            await _move(doing, by, request_id, status)
            await _go_on(conn, by, request_id, status, found.expires_at)
        after = await hold_request(conn, by.customer_id, request_id, by.now)
        await _tell_reviewed(doing, by, after, decision)
    return after


async def expire(
    pool: Pool, vault: Vault, customer_id: UUID, request_id: UUID, *, now: datetime, wall: datetime
) -> None:
    """Write down that nobody has decided in time; what was decided stays as it is."""
    async with audit.deed(
        pool, vault, customer_id, Origin.system(), f"{_RESOURCE}.expired",
        resource=(_RESOURCE, request_id), now=wall,
    ) as doing:  # fmt: skip
        over = await doing.conn.fetch(_EXPIRE, customer_id, request_id, "EXPIRED", now)
        prove(doing, _RESOURCE, over)
        if not over:
            doing.skip()


async def note_rejected(
    pool: Pool,
    vault: Vault,
    customer_id: UUID,
    request_id: UUID,
    reason: str,
    *,
    now: datetime,
    wall: datetime,
) -> None:
    """Note why an approved request could not be carried out, for good."""
    async with audit.deed(
        pool, vault, customer_id, Origin.system(), f"{_RESOURCE}.rejected",
        resource=(_RESOURCE, request_id), now=wall, details={"reason": reason},
    ) as doing:  # fmt: skip
        noted = await doing.conn.fetch(_REJECT, customer_id, request_id, reason, now)
        prove(doing, _RESOURCE, noted)
        if not noted:
            doing.skip()


async def find_same(by: Principal, asked: Asked) -> TransferRequest | None:
    """Return what the same request has made before. Raises Refused `duplicate-id` for another."""
    async with by.pool.acquire() as conn:
        known = await find_request(conn, by.customer_id, asked.request_id, by.now)
        return None if known is None else await _same_or_refuse(conn, by, asked)


def asked_of(request: TransferRequest) -> Asked:
    """Return what a request asks for."""
    transfer, payee = told_in(request.content)
    return Asked(
        request_id=request.request_id,
        type=request.type,
        pocket_id=request.pocket_id,
        counterparty_id=request.counterparty_id,
        amount=request.amount,
        transfer=transfer,
        payee=payee,
        reviewers=request.reviewers,
    )


def told_in(content: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return what was sent, and whom the counterparty stood for, out of what is approved."""
    told = msgspec.json.decode(content)
    return told["transfer"], told["payee"]


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


async def _weighed(
    conn: Connection, by: Principal, asked: Asked, probe: Probe
) -> tuple[Terms, Status]:
    """Return the terms of a request, and what it is when nobody has said anything yet."""
    terms = await terms_for(
        conn, by.customer_id, type_=asked.type, amount=asked.amount, day=by.business_date,
        request_id=asked.request_id,
    )  # fmt: skip
    await _check_named(conn, by, asked, terms)
    if terms.required:
        return terms, "PENDING"
    await probe(conn, asked)
    return terms, "APPROVED"


async def _check_named(conn: Connection, by: Principal, asked: Asked, terms: Terms) -> None:
    """Raise InvalidInput unless the reviewers who are named may approve, and are enough."""
    if not asked.reviewers:
        return
    itself = await who_is(conn, by.user_id, by.client_id)
    able = await possible_reviewers(conn, by.customer_id, apart_from=itself, terms=terms)
    known = {each.member_id for each in able}
    wrong = [
        FieldError(
            ("reviewers", place), "must be an active member who may approve this", "value_error"
        )
        for place, member_id in enumerate(asked.reviewers)
        if member_id not in known
    ]
    if not wrong and len(asked.reviewers) < terms.required:
        needed = f"must name {terms.required} members or more, or none: so many approve this"
        wrong = [FieldError(("reviewers",), needed, "too_short")]
    if wrong:
        raise InvalidInput(wrong)


async def _same_or_refuse(conn: Connection, by: Principal, asked: Asked) -> TransferRequest:
    """Return the request that has this id when it was asked for with the same words."""
    found = await find_request(conn, by.customer_id, asked.request_id, by.now)
    if found is None or found.asked != _fingerprint(asked) or found.member_id != by.member_id:
        raise Refused("duplicate-id", "Another transfer, or request, already has this id.")
    return found


async def _go_on(
    conn: Connection, by: Principal, request_id: UUID, status: Status, expires_at: datetime
) -> None:
    """Make the appointment that follows: when its time is over, or at once when it is approved."""
    if status == "PENDING":
        await agenda.make(conn, [Appointment(EXPIRE, request_id, by.customer_id, expires_at)])
        return
    await agenda.cancel(conn, EXPIRE, request_id)
    if status == "APPROVED":
        await agenda.make(conn, [Appointment(EXECUTE, request_id, by.customer_id, by.now)])


async def _move(doing: Deed, by: Principal, request_id: UUID, status: Status) -> None:
    moved = await doing.conn.fetch(_MOVE, by.customer_id, request_id, status, by.now)
    prove(doing, _RESOURCE, moved)


def _must_wait(request: TransferRequest) -> None:
    if request.status != "PENDING":
        raise Refused(_NOT_PENDING, f"The request is {request.status}.")


def _content_of(asked: Asked) -> str:
    return rules.text_of(
        {"transfer": asked.transfer, "payee": asked.payee, "reviewers": asked.reviewers}
    )


def _fingerprint(asked: Asked) -> bytes:
    """Return the hash of what was sent, whatever the request is changed to later."""
    sent = rules.text_of([asked.transfer, asked.reviewers])
    return hashlib.sha256(sent.encode()).digest()


def _about(asked: Asked) -> dict[str, Any]:
    told = {"type": asked.type, "pocket_id": asked.pocket_id, "amount_usdc": asked.amount}
    return told if asked.counterparty_id is None else told | {"to": asked.counterparty_id}


def _deed(by: Principal, verb: str, request_id: UUID, **details: Any) -> Any:  # noqa: ANN401 - a context of the audit log
    return audit.deed(
        by.pool, by.vault, by.customer_id, by.origin, f"{_RESOURCE}.{verb}",
        resource=(_RESOURCE, request_id), now=by.wall, details=details,
    )  # fmt: skip


async def _tell_reviewers(doing: Deed, by: Principal, request: TransferRequest) -> None:
    said = await _sentence(doing.conn, request)
    await notifications.notify(
        doing.conn, by.vault, by.customer_id, "TRANSFER_REQUEST_PENDING_REVIEW",
        title="A transfer waits for approval", description=f"{by.name} asks for {said}.",
        metadata={"transfer_request_id": request.request_id, "amount_usdc": request.amount},
        now=by.wall, informed=by.user_id,
    )  # fmt: skip


async def _tell_reviewed(
    doing: Deed, by: Principal, request: TransferRequest, decision: Decision
) -> None:
    said = await _sentence(doing.conn, request)
    more = " More approvals are needed." if request.status == "PENDING" else ""
    await notifications.notify(
        doing.conn, by.vault, by.customer_id, "TRANSFER_REQUEST_REVIEWED",
        title=f"A transfer was {decision.lower()}",
        description=f"{by.name} {decision.lower()} {said}.{more}",
        metadata={"transfer_request_id": request.request_id, "decision": decision,
                  "status": request.status},
        now=by.wall, informed=by.user_id,
    )  # fmt: skip


async def _sentence(conn: Connection, request: TransferRequest) -> str:
    name = await conn.fetchval(_NAME, request.customer_id, request.pocket_id)
    if name is None:
        raise Broken("a request names a pocket that is not there")
    return f"a {_NOUNS[request.type]} of {format_usd(request.amount)} from the Pocket {name}"
