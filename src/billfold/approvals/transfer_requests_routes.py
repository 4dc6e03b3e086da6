"""Transfer requests: one member requests a transfer, others approve or deny it."""

from collections.abc import Sequence
from typing import Annotated, Any, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.agreements.rules import require_version
from billfold.accounts.customers.store import list_owners, require_feature
from billfold.accounts.notes.schemas import ChangedNote, NewNote, NoteQuery
from billfold.accounts.notes.store import annotate, list_noted, show_notes, terms_of
from billfold.accounts.pockets.requests import resolve_pockets
from billfold.accounts.pockets.schemas import valuation
from billfold.accounts.profiles import open_profiles
from billfold.approvals import schemas, transfer_orders, transfer_requests
from billfold.approvals.execute_transfers import commands_of, execute_request
from billfold.approvals.routes import REVIEW_ERRORS, check_recent_authentication, principal_of
from billfold.approvals.rules import MAY_APPROVE, find_candidates
from billfold.approvals.schemas import ShownTransferRequest
from billfold.approvals.store.requests import TRANSFER_REQUESTS, Filters, transactions_of
from billfold.approvals.store.reviews import list_other_members, load_reviews, open_addresses, users_behind
from billfold.approvals.transfer_orders import RequestContent
from billfold.approvals.transfer_preview import TransferPreview, preview, render_preview
from billfold.approvals.types import DEFAULT_REQUIREMENT, Status, TransferRequest, TransferType
from billfold.data_keys.keys import DataKeys
from billfold.http.caller import Call
from billfold.http.counts import count_second
from billfold.http.operations import MaybeInPath, delete, get, patch, post, with_scope
from billfold.http.parameters import OrderedQuery, Query, Since, Until, page_of, texts_among
from billfold.http.raw_request import in_body, parse_uuid
from billfold.http.schemas import CursorList
from billfold.identity.users import store as user_store
from billfold.ledger.bank import Bank
from billfold.ledger.book.notes import TRANSFER
from billfold.ledger.customers import require_active
from billfold.oauth.caller import CustomerCaller
from billfold.payments.crypto.withdrawals.rules import require_minimum
from billfold.payments.crypto.withdrawals.wallet import find_objection_to
from billfold.payments.on_us.store import find_by_ids
from billfold.payments.wires.routes import WIRES_FEATURE
from billfold.platform.dates import et_date
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound, Refused
from billfold.platform.ids import command_id


async def with_payee(
    caller: Call, bank: Bank, content: RequestContent, *, customer_id: UUID | None = None
) -> RequestContent:
    """Return the content with its payee, if every Pocket and counterparty exists and is usable.

    The customer is that of the token, or the one named by the partner. Raises NotFound, Refused `customer-not-open`,
    `pocket-not-open`, `pocket-frozen`, `same-pocket`, `agreement-not-accepted`, `counterparty-type-mismatch`,
    `counterparty-not-verified`, `sanction-screen-failed`, `insufficient-funds` for a full withdrawal of nothing, and
    InvalidInput as `check_order`.
    """
    transfer_orders.check_order(content, et_date(caller.now))
    customer = await caller.customer(bank, customer_id)
    owner = customer.customer_id
    require_active(customer.account_status)
    pays = await transfer_orders.check_pocket(caller, bank, content.pocket_id, owner=owner, receives=False)
    if content.amount_type == "FULL_WITHDRAWAL":
        if (value := valuation(pays, bank, caller.now).total_value) <= 0:
            raise Refused("insufficient-funds", "The Pocket is empty.")
        content = msgspec.structs.replace(content, value=value)
    if await transfer_orders.stays_within(caller, bank, content, owner=owner):
        return content
    require_version(customer.agreement_version, bank.terms.agreements, et_date(caller.now))
    if content.reverses_id is not None:
        return msgspec.structs.replace(content, payee=await _payer_of(bank, content.reverses_id))
    async with bank.pool.acquire() as conn:
        payee = await transfer_orders.get_payee(conn, owner, content)
    if isinstance(order := content.transfer, transfer_orders.UsdcOrder):
        objection = await find_objection_to(bank, bank.pool, owner, payee["details"])
        if objection is not None:
            raise Refused(objection.code, objection.detail)
        require_minimum(order.amount.amount_usdc, bank.terms)
    return msgspec.structs.replace(content, payee=payee)


async def _payer_of(bank: Bank, transfer_id: UUID) -> dict[str, Any]:
    """Return the customer that made a transfer, as the payee that the approved content of its reversal stores."""
    original = (await find_by_ids(bank.pool, [transfer_id]))[transfer_id]
    owners = await list_owners(bank.pool, [("pocket", str(original.from_pocket_id))])
    (owner,) = await open_profiles(bank, list(owners.values()))
    return {
        "counterparty_name": {"business_name": owner.name},
        "details": {},
        "target_pocket_id": None,
        "type": "on_us",
    }


READS = with_scope("transfers.read", "transfer-requests")
WRITES = with_scope("transfers.write", "transfer-requests")
DECIDES = with_scope("transfers.write", "transfer-requests", needs="transfers.approve")
CREATIONS_PER_SECOND = 1
"""Transfer requests that one client may create per second for one user."""
_PREVIEW = "/transfer-requests/preview/"
_ALL, ONE = "/api/v1/transfer-requests/", "/api/v1/transfer-requests/{transfer_id}/"
_EXECUTION_ERRORS = (
    "customer-not-open",
    "agreement-not-accepted",
    "pocket-not-open",
    "pocket-frozen",
    "counterparty-not-verified",
    "sanction-screen-failed",
    "insufficient-funds",
    "amount-not-allowed",
    "nothing-to-move",
    "amount-below-minimum",
    "rail-not-available",
    "wallet-not-payable",
    "hold-not-active",
    "transfer-not-reversible",
    "reversal-not-open",
)
_POLICY = "policy-refused"
_OVERTAKEN = ("transfer-request-not-pending", "approval-impossible", "duplicate-id", _POLICY)
"""Errors that mean the request, or its requester's rights, changed in the meantime."""
_CONTENT_ERRORS = (
    *_EXECUTION_ERRORS,
    "not-found",
    "duplicate-id",
    "same-pocket",
    "counterparty-type-mismatch",
    "approval-impossible",
)
_OF_PARTNER = (*_CONTENT_ERRORS, "feature-not-enabled")
STATUSES, TYPES = frozenset(get_args(Status)), frozenset(get_args(TransferType))


@post(
    _ALL,
    with_scope("transfers.write", "transfer-request-creations"),
    refuses=(*_CONTENT_ERRORS, _POLICY, "rate-limited", "external-id-taken"),
)
async def create_transfer_request(
    member: CustomerCaller, bank: Bank, data: schemas.CreateTransferRequest
) -> ShownTransferRequest:
    """Create transfer request.

    Other members approve it, unless a rule requires no approval.

    Sending the same request with the same `id` again returns the existing one. With a `schedule` it is made on each
    day of it, or once on `start_on`: the approval is for all of them, and limits, freezes, the payee and the rights of
    the requester are checked on each day.
    """
    access = member.access
    caller = command_id(f"client:{access.client_id}", str(access.user_id))
    await count_second(
        bank.pool, caller, "transfer-request-creations", per_second=CREATIONS_PER_SECOND, wall=member.wall
    )
    by = await principal_of(member, bank)
    content = await transfer_orders.ordered_content(
        bank,
        member.customer_id,
        data.transfer,
        reviewers=data.reviewers,
        must_be_approved=data.must_be_approved,
        schedule=data.schedule,
    )
    found = await transfer_requests.find_same(by, content)
    if found is None:
        content = await with_payee(member, bank, content)
        async with bank.pool.acquire() as conn:
            await transfer_requests.check_unused(conn, by, content)
        # Before the request, so that one id is never two requests; the payment under the same id has the note, too.
        await _annotate(member, bank, content.request_id, data)
        try:
            with in_body():
                found = await transfer_requests.create(bank, by, content)
        except BillfoldError:
            if await TRANSFER_REQUESTS.find(bank.pool, member.customer_id, content.request_id, now=member.now) is None:
                await _annotate(member, bank, content.request_id, schemas.without_note(data), step=2)
            raise
    return await _execute_if_approved(member, bank, found)


@post(f"/api/v1/customers/{{customer_id}}{_PREVIEW}", tag="transfers", status=200, refuses=_OF_PARTNER)
@post(f"/api/v1{_PREVIEW}", WRITES, status=200, refuses=(*_CONTENT_ERRORS, _POLICY))
async def preview_transfer(
    caller: Call, bank: Bank, customer_id: MaybeInPath, data: schemas.CreateTransferRequest
) -> TransferPreview:
    """Preview transfer.

    Returns the effect of the transfer if it were executed now: bills sold and their prices, gain or loss, fees,
    settlement, the remaining balance, and the required approvers. The body is that of the request. Nothing is
    written, and prices change until the transfer is executed. A partner's transfers need no approval by members:
    `reviewers` is empty, and `approval` null.
    """
    owner = await caller.owner(bank, customer_id)
    by = await principal_of(caller, bank) if isinstance(caller, CustomerCaller) else None
    if by is None and data.reviewers:
        raise InvalidInput.at("body", "reviewers", msg="must be empty: no member approves a partner's transfer")
    if by is None and isinstance(data.transfer, transfer_orders.WireOrder):
        await require_feature(bank.pool, owner, WIRES_FEATURE)  # as if the partner sent it
    content = await transfer_orders.ordered_content(
        bank,
        owner,
        data.transfer,
        reviewers=data.reviewers,
        schedule=data.schedule,
        must_be_approved=data.must_be_approved,
    )
    content = await with_payee(caller, bank, content, customer_id=owner)
    with in_body():
        found = await preview(bank, owner, content, by=by)
    others = open_addresses(bank.vault, await list_other_members(bank.pool, owner, than=()))
    return render_preview(found, bank, {each.member_id: each for each in others})


@get(_ALL, READS, refuses=("not-found",))
async def list_transfer_requests(
    *,
    member: CustomerCaller,
    bank: Bank,
    wanted: OrderedQuery,
    status: Annotated[list[str] | None, texts_among("status[]", STATUSES)] = None,
    types: Annotated[list[str] | None, texts_among("type", TYPES)] = None,
    pocket: Annotated[list[UUID] | None, Query(name="pocket[]")] = None,
    reviewer: str | None = None,
    requested_by: str | None = None,
    time_created_from: Since = None,
    time_created_to: Until = None,
    series_id: UUID | None = None,
    scheduled: bool | None = None,
    notes: NoteQuery,
) -> CursorList[ShownTransferRequest]:
    """List transfer requests.

    Newest first. `reviewer` is a member who is named as reviewer, or has reviewed. `series_id` lists the runs of a
    series, `scheduled=true` the series themselves.
    """
    filters = Filters(
        statuses=status,
        types=types,
        pockets=None if pocket is None else await resolve_pockets(member, bank, member.customer_id, requested=pocket),
        requested_by=await _find_member(member, bank, "requested_by", text=requested_by),
        reviewer=await _find_member(member, bank, "reviewer", text=reviewer),
        since=time_created_from,
        until=time_created_to,
        series_id=series_id,
        scheduled=scheduled,
        among=await list_noted(bank, member.customer_id, TRANSFER, NoteQuery(external_id=notes.external_id)),
        terms=await terms_of(bank, member.customer_id, TRANSFER, notes),
    )
    notes.require_alone(*(getattr(filters, name) for name in filters.__struct_fields__[:-2]))
    values = (member.customer_id, member.now, *msgspec.structs.astuple(filters))
    scope = f"transfer-requests:{member.customer_id}"
    page = await wanted.read(bank, TRANSFER_REQUESTS.listed, *values, scope=scope, filters=filters)
    return page_of(page, await _show_all(bank, member.customer_id, page.items))


@get(f"{_ALL}reviewers/", READS)
async def list_transfer_reviewers(member: CustomerCaller, bank: Bank) -> schemas.DualAuthUsers:
    """List transfer reviewers.

    Returns the members who may be named as reviewers of the caller's requests, without the caller.
    """
    access = member.access
    callers = await users_behind(bank.pool, access.user_id, access.client_id)
    others = open_addresses(bank.vault, await list_other_members(bank.pool, member.customer_id, than=callers))
    able = find_candidates(others, DEFAULT_REQUIREMENT, named=(), needs=MAY_APPROVE)
    return schemas.DualAuthUsers(items=[schemas.render_person(each) for each in others if each.member_id in able])


@get(ONE, READS)
async def get_transfer_request(member: CustomerCaller, bank: Bank, transfer_id: UUID) -> ShownTransferRequest:
    """Get transfer request.

    Returns the request, its reviews and its execution.
    """
    return await read_transfer_request(member, bank, transfer_id)


@patch(ONE, WRITES, refuses=(*_CONTENT_ERRORS, _POLICY, "transfer-request-not-pending", "external-id-taken"))
async def update_transfer_request(
    member: CustomerCaller, bank: Bank, transfer_id: UUID, data: schemas.ChangeTransferRequest
) -> ShownTransferRequest:
    """Update transfer request.

    Only the requester can change it. A change voids earlier reviews, one of `external_id` or `metadata` does not.
    """
    found = await TRANSFER_REQUESTS.get(bank.pool, member.customer_id, transfer_id, now=member.now)
    if member.access.member_id != found.member_id:
        raise Refused("forbidden", "Only the requester can change the transfer request.")
    if data.transfer is None and data.reviewers is None and data.schedule is None:
        await _annotate(member, bank, transfer_id, data)
        return await read_transfer_request(member, bank, transfer_id)
    before = transfer_orders.content_of(found)
    reviewers = before.reviewers if data.reviewers is None else data.reviewers
    schedule = data.schedule or before.schedule
    if data.transfer is None:
        content = msgspec.structs.replace(
            before, reviewers=transfer_orders.unique_reviewers(reviewers), payee=None, value=UNSET, schedule=schedule
        )
    else:
        content = await transfer_orders.ordered_content(
            bank,
            member.customer_id,
            data.transfer,
            reviewers=reviewers,
            schedule=schedule,
            must_be_approved=before.must_be_approved is True,
        )
    if (content.request_id, content.type) != (found.request_id, found.type):
        raise InvalidInput.at("body", "transfer", msg="keeps its id and its type")
    content = await with_payee(member, bank, content)
    by = await principal_of(member, bank)
    with in_body():
        changed = await transfer_requests.change(bank, by, content)
    await _annotate(member, bank, transfer_id, data)
    return await _execute_if_approved(member, bank, changed)


@delete(ONE, WRITES, refuses=("transfer-request-not-pending",))
async def cancel_transfer_request(member: CustomerCaller, bank: Bank, transfer_id: UUID) -> None:
    """Cancel transfer request.

    The requester or an administrator can cancel it before it is decided.
    """
    await transfer_requests.cancel(await principal_of(member, bank), transfer_id)


@patch(f"{ONE}status/", DECIDES, refuses=(*REVIEW_ERRORS, *_EXECUTION_ERRORS, *_OVERTAKEN))
async def decide_transfer_request(
    member: CustomerCaller, bank: Bank, transfer_id: UUID, data: schemas.DecideTransferRequest
) -> ShownTransferRequest:
    """Decide transfer request.

    Approve or deny another member's request. With the last approval it is executed.

    If it cannot be executed now, the approval is refused and does not count. A full withdrawal is refused with
    `amount-not-allowed` if the Pocket has received money since: the requester sends it again by PATCH, and it needs
    new approvals.
    """
    if data.status == "APPROVED":
        await check_recent_authentication(member, bank)
    by = await principal_of(member, bank)
    decided = await transfer_requests.decide(bank, by, transfer_id, verdict=data.verdict)
    return await _execute_if_approved(member, bank, decided)


async def _execute_if_approved(member: CustomerCaller, bank: Bank, request: TransferRequest) -> ShownTransferRequest:
    """Return a request for display, after executing it if it was just approved."""
    if request.status == "APPROVED" and request.execution == "NOT_STARTED":
        await execute_request(bank, member.customer_id, request.request_id)
    return await read_transfer_request(member, bank, request.request_id)


async def read_transfer_request(member: CustomerCaller, bank: Bank, request_id: UUID) -> ShownTransferRequest:
    """Return a request for display."""
    row = await TRANSFER_REQUESTS.get(bank.pool, member.customer_id, request_id, now=member.now)
    return (await _show_all(bank, member.customer_id, [row]))[0]


async def _show_all(bank: Bank, customer_id: UUID, rows: Sequence[TransferRequest]) -> list[ShownTransferRequest]:
    details = await _load_details(bank, customer_id, rows)
    return await show_notes(bank, {(customer_id, row.request_id): schemas.render_request(row, details) for row in rows})


async def _annotate(
    member: CustomerCaller, bank: Bank, request_id: UUID, given: NewNote | ChangedNote, *, step: int = 1
) -> None:
    await annotate(member, bank, member.customer_id, kind=TRANSFER, object_id=request_id, given=given, step=step)


async def _load_details(bank: Bank, customer_id: UUID, rows: Sequence[TransferRequest]) -> schemas.RequestDetails:
    """Read what is shown with requests, in as many statements for a page as for one."""
    state = await load_reviews(bank.pool, customer_id, rows, kind=TRANSFER_REQUESTS, vault=bank.vault)
    done = [(row, each) for row in rows if row.execution != "NOT_STARTED" for each in commands_of(row)]
    moved = await transactions_of(bank.pool, customer_id, done)
    ring = await bank.ports[DataKeys].load(bank.pool, (customer_id,))
    return schemas.RequestDetails(
        state,
        {row.request_id: moved.get(row.request_id, ()) for row in rows},
        owners=await transfer_orders.list_registered_owners(bank, rows),
        data_key=ring.get(customer_id),
    )


async def _find_member(member: CustomerCaller, bank: Bank, name: str, text: str | None) -> UUID | None:
    """Return the id of a member in the query. Raises NotFound for another team's member."""
    if text is None:
        return None
    member_id = parse_uuid("query", name, text)
    if not await user_store.is_member(bank.pool, member.customer_id, member_id):
        raise NotFound("There is no such member.")
    return member_id
