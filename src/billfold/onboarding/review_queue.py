"""The bank's review queue: counterparties, documents, ACH entries, applications, hits of the sanctions screening.

`REVIEWS` names every kind; each part adds its own.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.commands import DecideVerification
from billfold.accounts.counterparties.types import CounterpartyRow, payee_from_row
from billfold.audit import record
from billfold.data_keys.keys import DataShredded
from billfold.documents import store as document_store
from billfold.documents.ports import DocumentRow
from billfold.documents.store import open_names
from billfold.identity.operators import Operator, Power
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.onboarding.applications import store as application_store
from billfold.onboarding.applications.content import describe_application, name_of, open_application, open_applications
from billfold.onboarding.applications.decisions import decide as decide_application
from billfold.onboarding.applications.ports import CheckResult, CheckStatus
from billfold.onboarding.applications.types import ApplicationRow, ApplicationStatus
from billfold.payments.ach import store as ach_store
from billfold.payments.ach.commands import AchStatus, ReviewAch
from billfold.platform import ids
from billfold.platform.errors import NotFound
from billfold.platform.money import format_usd
from billfold.screening import hits
from billfold.screening.hits import clear_hit, confirm_hit, describe_hit
from billfold.screening.types import HitRow, HitStatus


class PendingReview(NamedTuple):
    """An item of the queue: its customer, a short description, and when it was added."""

    kind: str
    object_id: UUID
    customer_id: UUID
    what: str
    since: datetime


class ReviewDecision(NamedTuple):
    """A decision, who made it, and why; the customer sees the reason."""

    approved: bool
    reason: str | None
    by: Operator


class ReviewDetails(NamedTuple):
    """Information for an operator before a decision: lines of text and documents; and whether the item is pending."""

    lines: list[str]
    waits: bool
    documents: Sequence[DocumentRow] = ()


class ReviewKind(NamedTuple):
    """A kind of item: how to list, describe and decide it.

    `describe` and `decide` raise NotFound for the id of another kind, and `decide` raises Refused if it is already
    decided; it returns a sentence.
    """

    kind: str
    list_waiting: Callable[[Bank, int], Awaitable[Sequence[PendingReview]]]
    describe: Callable[[Bank, UUID], Awaitable[ReviewDetails]]
    decide: Callable[[Bank, UUID, ReviewDecision], Awaitable[str]]


async def list_waiting(bank: Bank, limit: int, kind: str | None = None) -> list[PendingReview]:
    """Return pending items, of one kind or of all, oldest first."""
    found = [
        waiting
        for review in REVIEW_KINDS
        if kind in {None, review.kind}
        for waiting in await review.list_waiting(bank, limit)
    ]
    return sorted(found, key=lambda each: each.since)[:limit]


async def describe(bank: Bank, kind: str, object_id: UUID) -> ReviewDetails:
    """Return the details of one item, decided or not. Raises NotFound."""
    for review in REVIEW_KINDS:
        if review.kind == kind:
            return await review.describe(bank, object_id)
    raise NotFound("Nothing of this kind is reviewed.")


async def decide(bank: Bank, object_id: UUID, verdict: ReviewDecision) -> str:
    """Approve or reject the item with this id. Raises NotFound, Refused, also for operators who may not decide."""
    verdict.by.require(Power.DECIDE)
    for review in REVIEW_KINDS:
        try:
            return await review.decide(bank, object_id, verdict)
        except NotFound:
            continue
    raise NotFound("Nothing of this id is reviewed.")


async def _counterparties(bank: Bank, limit: int) -> list[PendingReview]:
    return [
        PendingReview(
            "counterparty",
            row.counterparty_id,
            row.customer_id,
            what=f"{payee_from_row(row).name} ({row.type})",
            since=row.created_at,
        )
        for row in await counterparty_store.list_awaiting_review(bank.pool, limit)
    ]


async def _counterparty(bank: Bank, object_id: UUID) -> CounterpartyRow:
    entry = await bank.directory.find("counterparty", object_id)
    if entry is None:
        raise NotFound("There is no such counterparty.")
    return await counterparty_store.get_counterparty(bank.pool, entry.customer_id, object_id)


async def _describe_counterparty(bank: Bank, object_id: UUID) -> ReviewDetails:
    row = await _counterparty(bank, object_id)
    payee = payee_from_row(row)
    ids_of = counterparty_store.document_ids_of(row)
    found = [await document_store.get_document(bank.pool, each, row.customer_id) for each in ids_of]
    return ReviewDetails(
        [
            f"{payee.name} ({row.type}) is {row.status}",
            f"customer: {row.customer_id}",
            f"verification: {payee.verification['type']}, {payee.verification['status']}",
            f"sanctions screening: {payee.sanctions}",
        ],
        payee.verification["status"] == "PENDING_REVIEW",
        await open_names(bank.pool, bank, found),
    )


async def _decide_counterparty(bank: Bank, object_id: UUID, verdict: ReviewDecision) -> str:
    row = await _counterparty(bank, object_id)
    await bank.engine.submit(
        DecideVerification(
            caller="review",
            key=ids.new(),
            customers=(row.customer_id,),
            origin=Origin.operator(),
            references=tuple(counterparty_store.document_ids_of(row)),
            counterparty_id=object_id,
            approved=verdict.approved,
            reason=verdict.reason,
        )
    )
    return "The counterparty is verified." if verdict.approved else "The counterparty is unlinked."


async def _documents(bank: Bank, limit: int) -> list[PendingReview]:
    return [
        PendingReview(
            "document",
            row.document_id,
            row.customer_id,
            what=f"{row.type} {row.name or ''}".strip(),
            since=row.uploaded_at or row.created_at,
        )
        for row in await open_names(bank.pool, bank, await document_store.list_awaiting_review(bank.pool, limit))
    ]


async def _describe_document(bank: Bank, object_id: UUID) -> ReviewDetails:
    found = await open_names(bank.pool, bank, [await document_store.get_document(bank.pool, object_id)])
    row = found[0]
    lines = [f"{row.type} is {row.status}", f"customer: {row.customer_id}"]
    return ReviewDetails([*lines, *filter(None, (row.exception_reason,))], row.status == "PENDING_REVIEW", found)


async def _decide_document(bank: Bank, object_id: UUID, verdict: ReviewDecision) -> str:
    found = await document_store.get_document(bank.pool, object_id)
    status = "APPROVED" if verdict.approved else "INVALID"
    async with record.audited(
        bank,
        found.customer_id,
        Origin.operator(),
        "document.reviewed",
        resource_id=object_id,
        details={"status": status},
    ) as audited:
        why = None if verdict.approved else verdict.reason or "It was rejected."
        await document_store.record_review(audited.conn, object_id, status, reason=why)
    return f"The document is {status}."


async def _entries(bank: Bank, limit: int) -> list[PendingReview]:
    return [
        PendingReview(
            "ach",
            row.ach_id,
            row.customer_id,
            what=f"{row.direction} {format_usd(row.amount)} {row.party_name}: {row.reason}",
            since=row.created_at,
        )
        for row in await ach_store.list_to_review(bank.pool, limit)
    ]


async def _describe_entry(bank: Bank, object_id: UUID) -> ReviewDetails:
    entry = await ach_store.get_entry(bank.pool, object_id)
    return ReviewDetails(
        [
            f"{entry.direction} of {format_usd(entry.amount)} is {entry.status}",
            f"customer: {entry.customer_id}",
            f"other side: {entry.party_name} at {entry.routing_number}",
            f"class, purpose: {entry.sec_code} {entry.description}",
            f"why it waits: {entry.reason or '-'}",
        ],
        entry.status == AchStatus.PENDING,
    )


async def _decide_entry(bank: Bank, object_id: UUID, verdict: ReviewDecision) -> str:
    entry = await ach_store.get_entry(bank.pool, object_id)
    await bank.engine.submit(
        ReviewAch(
            caller="review",
            key=ids.new(),
            customers=(entry.customer_id,),
            origin=Origin.operator(),
            references=(object_id,),
            ach_id=object_id,
            decision=AchStatus.APPROVED if verdict.approved else AchStatus.REJECTED,
            reason=verdict.reason,
        )
    )
    return "The entry waits for its window." if verdict.approved else "The entry is rejected."


async def _applications(bank: Bank, limit: int) -> list[PendingReview]:
    rows = await application_store.list_in_review(bank.pool, limit)
    return [
        PendingReview(
            "application",
            each.row.applicant_id,
            each.row.customer_id,
            what=f"{name_of(each)} ({each.row.kind.lower()})",
            since=each.row.submitted_at or each.row.created_at,
        )
        for each in await open_applications(bank.pool, bank, rows)
    ]


async def _application(bank: Bank, object_id: UUID) -> ApplicationRow:
    row = await application_store.find_by_applicant(bank.pool, object_id)
    if row is None:
        raise NotFound("There is no such application.")
    return row


async def _describe_application(bank: Bank, object_id: UUID) -> ReviewDetails:
    application = await open_application(bank.pool, bank, await _application(bank, object_id))
    waits = application.row.status == ApplicationStatus.MANUAL_REVIEW and not application.row.is_approved
    return ReviewDetails(await describe_application(bank, application), waits, application.documents)


async def _decide_application(bank: Bank, object_id: UUID, verdict: ReviewDecision) -> str:
    row = await _application(bank, object_id)
    status = CheckStatus.APPROVED if verdict.approved else CheckStatus.REJECTED
    reasons = () if verdict.approved else (verdict.reason or "It was rejected.",)
    result = CheckResult(status=status, reasons=reasons)
    await decide_application(bank, row, result, origin=Origin.operator(), now=await bank.now())
    return f"The application is {status}; what follows is done by the worker."


async def _hits(bank: Bank, limit: int) -> list[PendingReview]:
    rows = await hits.list_open(bank.pool, limit)
    return [
        PendingReview("sanctions", row.hit_id, row.owner_id, what=await _hit_text(bank, row), since=row.found_at)
        for row in rows
    ]


async def _hit_text(bank: Bank, row: HitRow) -> str:
    try:
        content = await hits.open_content(bank.pool, bank, row)
    except DataShredded:
        return f"{row.subject_kind} whose data is destroyed"
    screened, listed = content.screened.name, content.match.listed_name
    return f"{row.subject_kind} {screened} is like {listed} ({row.score} of 100)"


async def _describe_hit(bank: Bank, object_id: UUID) -> ReviewDetails:
    row = await hits.get_hit(bank.pool, object_id)
    return ReviewDetails(await describe_hit(bank, row), row.status == HitStatus.OPEN)


async def _decide_hit(bank: Bank, object_id: UUID, verdict: ReviewDecision) -> str:
    await hits.get_hit(bank.pool, object_id)
    decide_hit, default = (clear_hit, "Somebody else.") if verdict.approved else (confirm_hit, "The same.")
    decided = await decide_hit(
        bank, object_id, operator=verdict.by.name, note=verdict.reason or default, now=await bank.now()
    )
    is_open = decided.status == HitStatus.OPEN
    return "Another operator has to clear it too." if is_open else f"The hit is {decided.status}."


REVIEW_KINDS: Final[tuple[ReviewKind, ...]] = (
    ReviewKind("counterparty", _counterparties, _describe_counterparty, _decide_counterparty),
    ReviewKind("document", _documents, _describe_document, _decide_document),
    ReviewKind("ach", _entries, _describe_entry, _decide_entry),
    ReviewKind("application", _applications, _describe_application, _decide_application),
    ReviewKind("sanctions", _hits, _describe_hit, _decide_hit),
)
