"""Batches of both APIs: created, read with their progress and rows; approved by members of a customer."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, get_args
from uuid import UUID

import msgspec

from billfold.approvals.routes import REVIEW_ERRORS, check_recent_authentication, principal_of
from billfold.approvals.rules import MAY_CONFIRM
from billfold.approvals.schemas import DecideTransferRequest
from billfold.approvals.store.requests import RequestKind
from billfold.approvals.store.reviews import list_other_members, load_reviews, open_addresses
from billfold.approvals.transfer_orders import unique_reviewers
from billfold.approvals.transfer_preview import render_approval
from billfold.approvals.transfer_requests_routes import CREATIONS_PER_SECOND
from billfold.batches import members, new_objects, partners, rows
from billfold.batches.forms import format_for
from billfold.batches.members import NewBatch
from billfold.batches.preview import preview, preview_of_partner
from billfold.batches.schemas import (
    BatchPreview,
    CreateBatch,
    RowProblems,
    ShownBatch,
    ShownBatchRow,
    payee_in,
    render_batch,
    render_row,
)
from billfold.batches.store import BATCHES, PARTNER_BATCHES, ROWS, list_first
from billfold.batches.types import Batch, BatchKind, BatchStatus, RowState
from billfold.data_keys.keys import DataKeys
from billfold.http.caller import Call
from billfold.http.counts import count_second
from billfold.http.operations import SIGNED, delete, get, patch, post, with_scope
from billfold.http.parameters import Order, OrderedQuery, Query, Since, Until, page_of, texts_among
from billfold.http.schemas import CursorList, usd
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.oauth.caller import AnyCaller, CustomerCaller
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.ids import command_id

READS = with_scope("transfers.read", "transfer-requests")
WRITES = with_scope("transfers.write", "transfer-requests")
_CREATES = with_scope("transfers.write", "transfer-request-creations")
_DECIDES = with_scope("transfers.write", "transfer-requests", needs="transfers.approve")
_ALL, _ONE = "/api/v1/batches/", "/api/v1/batches/{batch_id}/"


class RowsQuery(OrderedQuery, frozen=True):
    """The page of rows requested by a caller: from the first one on by default."""

    order: Annotated[Order, Query(description="asc is by number.")] = "asc"
    states: Annotated[list[str] | None, texts_among("state", frozenset(get_args(RowState)))] = None


class BatchFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of batches; None does not filter."""

    kind: Annotated[list[str] | None, texts_among("kind[]", frozenset(get_args(BatchKind)))] = None
    status: Annotated[list[str] | None, texts_among("status[]", frozenset(get_args(BatchStatus)))] = None
    time_created_from: Since = None
    time_created_to: Until = None


@post(_ALL, SIGNED, _CREATES, moves_money=True, refuses=("customer-not-open", "approval-impossible", "rate-limited"))
async def create_batch(caller: AnyCaller, bank: Bank, data: CreateBatch) -> ShownBatch:
    """Create batch.

    Up to 1,000 transfers, counterparties or Pockets in one request. In the mode ATOMIC one row that is wrong refuses
    the request, and one that the bank cannot carry out stops all; in the mode INDEPENDENT such a row fails alone. The
    rows are carried out afterwards. In the Customer API the batch is approved as one, by the strictest rule of its
    rows.

    The `idempotency_key` of a row is yours: a row with the same key in a later batch returns the first result.
    """
    if isinstance(caller, Caller) and data.reviewers:
        raise InvalidInput.at("body", "reviewers", msg="must be empty: no member approves a partner's transfers")
    new = _new_batch(caller, bank, data)
    if isinstance(caller, Caller):
        create = partners.create_batch if data.kind == "TRANSFERS" else new_objects.create_batch
        return render_batch(await create(caller, bank, new), None)
    access = caller.access
    counted = command_id(f"client:{access.client_id}", str(access.user_id))
    await count_second(
        bank.pool, counted, "transfer-request-creations", per_second=CREATIONS_PER_SECOND, wall=caller.wall
    )
    by, customer = await principal_of(caller, bank), await caller.customer(bank)
    if data.kind == "TRANSFERS":
        return await _shown(bank, await members.request_batch(bank, by, customer, new))
    return await _shown(bank, await new_objects.request_batch(caller, bank, by, customer, new))


@post(f"{_ALL}preview/", SIGNED, WRITES, status=200, refuses=("customer-not-open", "approval-impossible"))
async def preview_batch(caller: AnyCaller, bank: Bank, data: CreateBatch) -> BatchPreview:
    """Preview batch.

    Returns the effect of a batch if it were carried out now, what is wrong with its rows, and the approval that it
    needs; a partner's needs none. The body is that of the request. Nothing is written, and prices change until it is
    carried out.
    """
    new = _new_batch(caller, bank, data)
    by = None if isinstance(caller, Caller) else await principal_of(caller, bank)
    if data.kind != "TRANSFERS":
        found = await new_objects.preview(caller, bank, by, new)
    elif isinstance(caller, Caller):
        found = await preview_of_partner(caller, bank, new)
    else:
        assert by is not None
        found = await preview(bank, by, await caller.customer(bank), new)
    others = [] if by is None else await list_other_members(bank.pool, by.customer_id, than=())
    others = open_addresses(bank.vault, others)
    return BatchPreview(
        rows=len(new.rows),
        amount=usd(found.amount),
        problems=[RowProblems(number=number, problems=each) for number, each in sorted(found.problems.items())],
        approval=None
        if found.terms is None
        else render_approval(found.terms, {each.member_id: each for each in others}),
        pockets=found.pockets,
    )


def _new_batch(caller: Call, bank: Bank, data: CreateBatch) -> NewBatch:
    if (data.rows is None) == (data.csv is None):
        raise InvalidInput.at("body", "rows", msg="exactly one of rows and csv")
    if data.kind == "POCKETS" and isinstance(caller, CustomerCaller) and not caller.may("pockets.write"):
        raise Refused("forbidden", "A batch of Pockets needs pockets.write, as a single one.")
    types = partners.TYPES if isinstance(caller, Caller) else members.TYPES
    form = rows.transfer_format(types) if data.kind == "TRANSFERS" else format_for(caller, data.kind)
    sent = rows.read_csv(data.csv, form) if data.csv is not None else rows.read_rows(data.rows or (), form)
    key, reviewers = caller.new_resource_id(bank.seed), unique_reviewers(data.reviewers)
    return NewBatch(key, data.kind, data.mode, sent, reviewers, caller.fingerprint)


@get(_ALL, SIGNED, READS)
async def list_batches(
    caller: AnyCaller, bank: Bank, wanted: OrderedQuery, filters: BatchFilters
) -> CursorList[ShownBatch]:
    """List batches.

    Newest first.
    """
    kind, owner = _kind_of(caller)
    values = msgspec.structs.astuple(filters)
    scope = f"batches:{caller.key_owner}"
    page = await wanted.read(bank, kind.listed, owner, caller.now, *values, scope=scope, filters=(owner, *values))
    return page_of(page, await _shown_all(bank, page.items))


async def list_pending_batches(bank: Bank, customer_id: UUID, now: datetime) -> list[ShownBatch]:
    """Return the batches of a customer that wait for approval, oldest first."""
    return await _shown_all(bank, await BATCHES.list_pending(bank.pool, customer_id, now=now))


async def list_first_payees(bank: Bank, customer_id: UUID, batches: Sequence[ShownBatch]) -> dict[UUID, str | None]:
    """Return the name of the first payee of each batch of a customer."""
    found = await list_first(bank.pool, customer_id, [each.id for each in batches])
    key = (await bank.ports[DataKeys].load(bank.pool, {customer_id})).get(customer_id)
    return {each.id: payee_in(found[each.id], each.kind, key) for each in batches if each.id in found}


@get(_ONE, SIGNED, READS)
async def get_batch(caller: AnyCaller, bank: Bank, batch_id: UUID) -> ShownBatch:
    """Get batch.

    Returns a batch with its progress.
    """
    kind, owner = _kind_of(caller)
    return await _shown(bank, await kind.get(bank.pool, owner, batch_id, now=caller.now))


@get(f"{_ONE}rows/", SIGNED, READS)
async def list_batch_rows(
    caller: AnyCaller, bank: Bank, batch_id: UUID, wanted: RowsQuery
) -> CursorList[ShownBatchRow]:
    """List batch rows.

    Returns the rows in their order, each with its result.
    """
    kind, owner = _kind_of(caller)
    batch = await kind.get(bank.pool, owner, batch_id, now=caller.now)
    page = await wanted.read(bank, ROWS, owner, batch.request_id, wanted.states, scope=f"batch-rows:{batch_id}")
    owners = {owner, *(each.owner for each in page.items if each.owner is not None)}
    ring = await bank.ports[DataKeys].load(bank.pool, owners)
    return page_of(page, [render_row(each, batch, ring.get(each.owner or owner)) for each in page.items])


@patch(f"{_ONE}status/", _DECIDES, refuses=(*REVIEW_ERRORS, "batch-not-pending", "approval-impossible"))
async def decide_batch(member: CustomerCaller, bank: Bank, batch_id: UUID, data: DecideTransferRequest) -> ShownBatch:
    """Decide batch.

    Approve or deny another member's batch as a whole. With the last approval its rows are carried out.
    """
    found = await BATCHES.get(bank.pool, member.customer_id, batch_id, now=member.now)
    if found.kind == "COUNTERPARTIES" and not member.may(MAY_CONFIRM):
        raise Refused("forbidden", f"A batch of counterparties is decided with {MAY_CONFIRM}, as a single one.")
    if data.status == "APPROVED":
        await check_recent_authentication(member, bank)
    return await _shown(bank, await members.decide(await principal_of(member, bank), batch_id, data.verdict))


@delete(_ONE, WRITES, refuses=("batch-not-pending",))
async def cancel_batch(member: CustomerCaller, bank: Bank, batch_id: UUID) -> None:
    """Cancel batch.

    The requester or an administrator can cancel it before it is decided.
    """
    await members.cancel(await principal_of(member, bank), batch_id)


def _kind_of(caller: Call) -> tuple[RequestKind[Batch], UUID]:
    """Return the batches that a caller may read, and the customer with whom they lie."""
    if isinstance(caller, Caller):
        return PARTNER_BATCHES, caller.own_customer_id
    assert isinstance(caller, CustomerCaller)
    return BATCHES, caller.customer_id


async def _shown(bank: Bank, batch: Batch) -> ShownBatch:
    return (await _shown_all(bank, [batch]))[0]


async def _shown_all(bank: Bank, batches: Sequence[Batch]) -> list[ShownBatch]:
    of_members = [each for each in batches if each.partner_id is None]
    if not of_members:
        return [render_batch(each, None) for each in batches]
    state = await load_reviews(bank.pool, of_members[0].customer_id, of_members, kind=BATCHES, vault=bank.vault)
    return [render_batch(each, state) for each in batches]
