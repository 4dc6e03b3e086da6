"""Batches of members: requested as a list, and approved or denied over the hashes of its rows."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.agreements.rules import require_version
from billfold.accounts.counterparties.store import find_payees
from billfold.accounts.counterparties.types import Payee
from billfold.accounts.notes.schemas import NewNote
from billfold.accounts.notes.store import note_fields
from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.pockets.store import list_by_id
from billfold.approvals import rules as approval_rules
from billfold.approvals import transfer_orders, transfer_requests
from billfold.approvals.store import reviews
from billfold.approvals.store.approval_rules import insert
from billfold.approvals.store.policies import requirements_for
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.transfer_orders import RequestContent
from billfold.approvals.types import Actor, ApprovalRequirement, Status, Verdict
from billfold.audit.record import AuditedAction
from billfold.batches import rules, store
from billfold.batches.rows import require_rows
from billfold.batches.store import BATCHES
from billfold.batches.types import REUSED, Batch, BatchKind, BatchMode, BatchRow, ReadRow, RowProblem, TransferRow
from billfold.data_keys.keys import DataKey, DataKeys, PartyField
from billfold.events.notifications import notify
from billfold.http.raw_request import in_body
from billfold.ledger.bank import Bank
from billfold.ledger.book.notes import TRANSFER, Note
from billfold.ledger.customers import CustomerRow, require_active
from billfold.payments.on_us.schemas import RequestedAmount
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date
from billfold.platform.errors import BillfoldError, NotFound, Refused
from billfold.platform.ids import command_id, derive
from billfold.platform.money import format_usd

NOUNS: Mapping[BatchKind, str] = {"TRANSFERS": "transfers", "COUNTERPARTIES": "counterparties", "POCKETS": "Pockets"}
TYPES = frozenset({"INTERNAL_REALLOCATION", "PEER_TO_PEER", "WIRE"})


class NewBatch(NamedTuple):
    """A batch to request; `asked` is the hash of the request as sent."""

    batch_id: UUID
    kind: BatchKind
    mode: BatchMode
    rows: Sequence[ReadRow]
    reviewers: tuple[UUID, ...]
    asked: bytes


class _Known(NamedTuple):
    """The Pockets and payees that rows name, as far as they are the customer's."""

    customer: CustomerRow
    pockets: Mapping[UUID, PocketRow]
    payees: Mapping[UUID, Payee]
    unverified_wires: bool
    has_agreed: BillfoldError | None


async def request_batch(bank: Bank, by: Actor, customer: CustomerRow, new: NewBatch) -> Batch:
    """Request a batch. If no row requires an approval, it is APPROVED at once; the same one returns the existing one.

    Raises InvalidInput with the problems of all rows of an atomic batch, Refused `customer-not-open`,
    `idempotency-key-reused`, `approval-impossible`.
    """
    require_active(customer.account_status)
    contents, problems = await read_contents(bank, by, customer, new)
    async with BATCHES.audited(by, "created", new.batch_id, rows=len(new.rows)) as audited_action:
        conn = audited_action.conn
        if (existing := await find_same(conn, by, new)) is not None:
            audited_action.skip()
            return existing
        problems |= await find_taken(conn, by, contents)
        terms = await requirements_of(bank, conn, by, {n: each for n, each in contents.items() if n not in problems})
        problems |= {n: problem_from(each) for n, each in terms.items() if isinstance(each, BillfoldError)}
        require_rows(new.rows, problems, new.mode)
        kept = {n: each for n, each in terms.items() if not isinstance(each, BillfoldError)}
        rows = [_row(each, contents.get(each.number), kept.get(each.number), problems) for each in new.rows]
        whole = await requirement_of_all(conn, by, list(kept.values()), new.reviewers)
        return await insert_batch(audited_action, by, new, rows, terms=whole)


async def find_same(conn: Connection, by: Actor, new: NewBatch) -> Batch | None:
    """Return the batch that the same request made before. Raises Refused `idempotency-key-reused` for another."""
    found = await BATCHES.find(conn, by.customer_id, new.batch_id, now=by.now)
    if found is not None and (found.asked != new.asked or found.member_id != by.member_id):
        raise Refused("idempotency-key-reused", "This key already belongs to another request. Send a new one.")
    return found


def row_id(bank: Bank, owner: str, batch_id: UUID, row: ReadRow) -> UUID:
    """Return the id of the transfer that a row makes: the same for the same key of the same owner."""
    if row.key is not None:
        return derive(bank.seed, command_id(f"batch-row:{owner}", row.key), 0)
    return derive(bank.seed, command_id("batch-row", f"{batch_id} {row.number}"), 0)


async def read_contents(
    bank: Bank, by: Actor, customer: CustomerRow, new: NewBatch
) -> tuple[dict[int, RequestContent], dict[int, RowProblem]]:
    """Return the contents of rows with their payees, and the problems of rows, by the rows' numbers."""
    orders = [(row, row.order) for row in new.rows if row.order is not None]
    data_key = None
    if any(order.wire_instructions for _, order in orders):
        data_key = await bank.ports[DataKeys].of(bank.pool, by.customer_id)
    known = await _load(bank, by, customer, [order for _, order in orders])
    contents: dict[int, RequestContent] = {}
    problems: dict[int, RowProblem] = {}
    for row, order in orders:
        key = row_id(bank, f"{by.customer_id}:{by.member_id}", new.batch_id, row)
        try:
            content = _checked(_content(order, key, data_key), known)
            note = await note_of(bank, by.customer_id, order)
            contents[row.number] = msgspec.structs.replace(content, attached=note) if note else content
        except BillfoldError as wrong:
            problems[row.number] = problem_from(wrong)
    return contents, problems


async def note_of(bank: Bank, owner: UUID, order: TransferRow) -> Note | None:
    """Return the note of a row, sealed with the key of the customer that pays."""
    given = NewNote(external_id=order.external_id or UNSET, metadata=order.metadata or UNSET)
    note: Note | None = (await note_fields(bank, owner, TRANSFER, given)).get("attached")
    return note


def problem_from(error: BillfoldError) -> RowProblem:
    """Return an error as the problem of a row."""
    return RowProblem(code=error.code, detail=error.detail, field=error.facts.get("field"))  # type: ignore[arg-type]


def _content(order: TransferRow, key: UUID, data_key: DataKey | None) -> RequestContent:
    """Return the content of the transfer request that a row becomes, without its payee."""
    amount = RequestedAmount(amount_usdc=order.amount_usdc)
    shared = {
        "id": key,
        "origin_pocket_id": order.from_pocket_id,
        "amount": amount,
        "description": order.description,
        "end_to_end_identification": order.end_to_end_identification,
        "hold_id": order.hold_id or UNSET,
    }
    if order.type == "WIRE":
        sealed = None
        if order.wire_instructions is not None:
            assert data_key is not None
            sealed = PartyField.TEXT.seal(data_key, order.wire_instructions)
        wire = transfer_orders.WireOrder(counterparty_id=order.counterparty_id, **shared)  # type: ignore[arg-type]
        return RequestContent(transfer=wire, wire_instructions=sealed or UNSET)
    details: transfer_orders.PeerToPeer | transfer_orders.InternalReallocation
    if order.type == "PEER_TO_PEER":
        assert order.counterparty_id is not None
        details = transfer_orders.PeerToPeer(destination_counterparty_id=order.counterparty_id)
    else:
        assert order.to_pocket_id is not None
        details = transfer_orders.InternalReallocation(destination_pocket_id=order.to_pocket_id)
    return RequestContent(transfer=transfer_orders.OnUsOrder(details=details, **shared))  # type: ignore[arg-type]


async def _load(bank: Bank, by: Actor, customer: CustomerRow, orders: Sequence[TransferRow]) -> _Known:
    pockets = {each for order in orders for each in (order.from_pocket_id, order.to_pocket_id) if each is not None}
    payees = {order.counterparty_id for order in orders if order.counterparty_id is not None}
    has_agreed: BillfoldError | None = None
    try:
        require_version(customer.agreement_version, bank.terms.agreements, et_date(by.now))
    except Refused as refusal:
        has_agreed = refusal
    async with bank.pool.acquire() as conn:
        found = await list_by_id(conn, [(by.customer_id, each) for each in pockets])
        return _Known(
            customer,
            {each.pocket_id: each for each in found},
            {key: payee for _, key, payee in await find_payees(conn, [by.customer_id], list(payees))},
            await transfer_orders.allows_unverified_wires(conn, by.customer_id),
            has_agreed,
        )


def _checked(content: RequestContent, known: _Known) -> RequestContent:
    """Return a content with its payee. Raises as requesting the transfer alone does."""
    _check_pocket(known, content.pocket_id, "from_pocket_id")
    order = content.transfer
    if content.counterparty_id is None:
        assert isinstance(order, transfer_orders.OnUsOrder)
        assert isinstance(order.details, transfer_orders.InternalReallocation)
        to_pocket_id = order.details.destination_pocket_id
        if to_pocket_id == content.pocket_id:
            raise Refused("same-pocket", "A transfer needs two different pockets.", field="to_pocket_id")
        _check_pocket(known, to_pocket_id, "to_pocket_id")
        return content
    if known.has_agreed is not None:
        raise known.has_agreed
    try:
        payee = transfer_orders.payee_of(content, known.payees, unverified_wires=known.unverified_wires)
    except BillfoldError as wrong:
        wrong.facts["field"] = "counterparty_id"
        raise
    return msgspec.structs.replace(content, payee=payee)


def _check_pocket(known: _Known, pocket_id: UUID, field: str) -> None:
    found = known.pockets.get(pocket_id)
    if found is None:
        raise NotFound("There is no such pocket.", field=field)
    if found.status == "FROZEN" and field == "from_pocket_id":
        raise Refused("pocket-frozen", "The pocket is frozen: nothing leaves it.", field=field)
    if found.status not in {"OPEN", "FROZEN"}:
        raise Refused("pocket-not-open", f"The pocket is {found.status}.", field=field)


async def find_taken(conn: Connection, by: Actor, contents: Mapping[int, RequestContent]) -> dict[int, RowProblem]:
    """Return the problems of rows whose key has made another transfer."""
    ids = [each.request_id for each in contents.values()]
    made = {each.request_id: each for each in await TRANSFER_REQUESTS.list_named(conn, by.customer_id, ids, now=by.now)}
    return {
        n: REUSED
        for n, content in contents.items()
        if (found := made.get(content.request_id)) is not None
        and (found.batch_id is None or found.asked != transfer_requests.fingerprint_of(content))
    }


async def requirements_of(
    bank: Bank, conn: Connection, by: Actor, contents: Mapping[int, RequestContent]
) -> dict[int, ApprovalRequirement | BillfoldError]:
    """Return the approvals that each row requires alone, after those before it have used their caps."""
    found = await requirements_for(bank, conn, by, list(contents.values()))
    return {
        n: Refused(each.code, each.detail, field="amount_usdc") if isinstance(each, Refused) else each
        for n, each in zip(contents, found, strict=True)
    }


async def requirement_of_all(
    conn: Connection, by: Actor, terms: Sequence[ApprovalRequirement], reviewers: Sequence[UUID]
) -> ApprovalRequirement:
    """Return the approvals that the list requires: the strictest of its rows."""
    whole = rules.strictest(terms)
    if whole is None:
        names = sorted({repr(each.rule_name) if each.rule_name else "the default rule" for each in terms})
        raise Refused(
            "approval-impossible",
            f"The rows need approvals under {', '.join(names)}, and none of these is enough for the others. "
            "Send a batch for each.",
        )
    if not whole.required:
        return whole
    with in_body():
        return await transfer_requests.with_candidates(conn, by, whole, reviewers=reviewers)


def _row(
    row: ReadRow, content: RequestContent | None, terms: ApprovalRequirement | None, problems: Mapping[int, RowProblem]
) -> BatchRow:
    problem = row.problems[0] if row.problems else problems.get(row.number)
    if content is None or problem is not None:
        return BatchRow(row_no=row.number, row_key=row.key, state="FAILED", problem=problem)
    text = approval_rules.text_of(msgspec.to_builtins(content))
    return BatchRow(
        row_no=row.number,
        row_key=row.key,
        content=text,
        content_hash=approval_rules.hash_of(text),
        object_id=content.request_id,
        amount=content.amount,
        terms=terms,
    )


def columns_of(
    new: NewBatch, rows: Sequence[BatchRow], terms: ApprovalRequirement, *, now: datetime, business_date: date
) -> dict[str, Any]:
    """Return the columns that store a batch, but for its owner, its requester and its status."""
    hashes = [row.content_hash.hex() for row in rows if row.content_hash is not None]
    text = approval_rules.text_of({"mode": new.mode, "reviewers": new.reviewers, "rows": hashes})
    return {
        "request_id": new.batch_id,
        "kind": new.kind,
        "mode": new.mode,
        "content": text,
        "content_hash": approval_rules.hash_of(text),
        "asked": new.asked,
        "row_count": len(rows),
        "amount": sum(row.amount or 0 for row in rows),
        "reviewers": new.reviewers,
        "terms": approval_rules.text_of(terms),
        "business_date": business_date,
        "created_at": now,
        "updated_at": now,
        "expires_at": now + approval_rules.REQUEST_LIFETIME,
    }


async def insert_batch(
    audited_action: AuditedAction, by: Actor, new: NewBatch, rows: Sequence[BatchRow], *, terms: ApprovalRequirement
) -> Batch:
    """Insert a batch, APPROVED if it requires no approval; the same request returns the existing one."""
    conn = audited_action.conn
    status: Status = "PENDING" if terms.required else "APPROVED"
    made = await insert(
        audited_action,
        BATCHES.table,
        customer_id=by.customer_id,
        member_id=by.member_id,
        user_id=by.user_id,
        client_id=by.client_id,
        status=status,
        **columns_of(new, rows, terms, now=by.now, business_date=by.business_date),
    )
    if not made:  # the same request, at the same time, was first
        audited_action.skip()
        found = await find_same(conn, by, new)
        assert found is not None
        return found
    await store.insert_rows(conn, by.customer_id, new.batch_id, rows)
    found = await BATCHES.get(conn, by.customer_id, new.batch_id, now=by.now)
    await BATCHES.schedule_next(conn, found, now=by.now)
    audited_action.details |= {"amount_usdc": found.amount, "content_hash": found.content_hash.hex()}
    if status == "PENDING":
        await _notify(audited_action, by, found, kind="TRANSFER_REQUEST_PENDING_REVIEW", verb="asks for")
    return found


async def decide(by: Actor, batch_id: UUID, verdict: Verdict) -> Batch:
    """Approve or deny a batch as a whole, as an eligible reviewer.

    Raises NotFound, Refused as `record_review`, `batch-not-pending`, and `approval-impossible` when its requester may
    no longer make transfers.
    """
    async with BATCHES.audited(by, verdict.decision.lower(), batch_id) as audited_action:
        conn = audited_action.conn
        found = await BATCHES.lock(conn, by.customer_id, batch_id, now=by.now)
        kind = dataclasses.replace(BATCHES, needs=needs_of(found.kind))
        status = await reviews.record_review(audited_action, by, found, kind=kind, verdict=verdict)
        if verdict.decision == "APPROVED":
            await transfer_requests.check_requester(conn, found)
        audited_action.details |= {"content_hash": found.content_hash.hex(), "status": status}
        if status != "PENDING":
            await BATCHES.move(audited_action, found, status, now=by.now)
        await _notify(
            audited_action, by, found, kind="TRANSFER_REQUEST_REVIEWED", verb=verdict.decision.lower(), status=status
        )
        return await BATCHES.get(conn, by.customer_id, batch_id, now=by.now)


def needs_of(kind: BatchKind) -> str:
    """Return the permission of those who decide a batch: that of a single transfer, or of a single counterparty."""
    return approval_rules.MAY_CONFIRM if kind == "COUNTERPARTIES" else approval_rules.MAY_APPROVE


async def cancel(by: Actor, batch_id: UUID) -> None:
    """Cancel a pending batch, as its requester or as an administrator. Raises as cancelling a transfer request does."""
    async with BATCHES.audited(by, "cancelled", batch_id) as audited_action:
        found = await BATCHES.lock(audited_action.conn, by.customer_id, batch_id, now=by.now)
        if by.member_id != found.member_id and by.role != "ADMIN":
            raise Refused("forbidden", "Only the requester or an ADMIN can cancel the batch.")
        BATCHES.check_pending(found)
        await BATCHES.move(audited_action, found, "CANCELLED", now=by.now)


async def _notify(
    audited_action: AuditedAction, by: Actor, batch: Batch, *, kind: str, verb: str, status: Status = "PENDING"
) -> None:
    is_asked = kind == "TRANSFER_REQUEST_PENDING_REVIEW"
    what = NOUNS[batch.kind]
    amount = f" of {format_usd(batch.amount)} together" if batch.kind == "TRANSFERS" else ""
    decided = {} if is_asked else {"decision": verb.upper(), "status": status}
    await notify.notify(
        audited_action.conn,
        by.vault,
        by.customer_id,
        kind=kind,
        title=f"A batch of {what} waits for approval" if is_asked else f"A batch of {what} was {verb}",
        description=f"{by.name} {verb} a batch of {batch.row_count} {what}{amount}.",
        metadata={"batch_id": batch.request_id, **decided},
        now=by.wall,
        except_user_id=by.user_id,
    )
