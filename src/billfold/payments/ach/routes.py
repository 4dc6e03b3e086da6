"""ACH originations: payments to counterparties' accounts, and collections from them. Debits received, and returned."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.accounts.customers.store import list_features
from billfold.accounts.holds.schemas import named
from billfold.accounts.notes.schemas import ChangeNote, PaymentFilters, SpanFilters
from billfold.accounts.notes.store import annotate, find_noted, note_fields, sealed_note, show_notes, terms_of
from billfold.http.operations import SIGNED, get, patch, post, with_scope
from billfold.http.parameters import ListQuery, Query, page_of, searched_page_of, texts_among
from billfold.http.schemas import CursorList, SearchedList
from billfold.identity.partners.caller import Caller
from billfold.ledger import types
from billfold.ledger.bank import Bank
from billfold.ledger.book.notes import TRANSFER
from billfold.ledger.directory import find_customer
from billfold.oauth.caller import AnyCaller
from billfold.payments.ach import store
from billfold.payments.ach.commands import AchEntry, AchStatus, AchWay, OriginateAch, ReturnAchEntry, ReviewAch
from billfold.payments.ach.rules.returns import return_deadline
from billfold.payments.ach.rules.windows import next_deadline
from billfold.payments.ach.schemas import (
    AchOrigination,
    CreateAch,
    ReceivedAchDebit,
    ReturnAchDebit,
    render_debit,
    render_origination,
)
from billfold.payments.return_codes import STATEMENT_CODES, receiver_codes
from billfold.platform.database.paging import Page, list_as_of
from billfold.platform.errors import InvalidInput, NotFound, Refused

CCD_FEATURE = "ccd"
"""The feature a partner needs to originate CCD entries."""
DEBIT_STATUSES = frozenset({"PROCESSED", "REJECTED", "FAILED"})
STATUSES = frozenset({"PENDING", "APPROVED", "IN_TRANSIT", "PROCESSED", "REJECTED", "FAILED", "CANCELLED"})
Returned = Annotated[bool | None, Query(description="true are those that were returned, false all others.")]
Statuses = Annotated[list[str] | None, texts_among("filter[status]", STATUSES)]
Direction = Literal["CREDIT", "DEBIT"] | None


@post(
    "/api/v1/service-accounts/{account_id}/ach-originating/",
    status=200,
    tag="ach",
    moves_money=True,
    previews=True,
    refuses=(
        "sec-code-not-enabled",
        "customer-not-open",
        "agreement-not-accepted",
        "pocket-not-open",
        "pocket-frozen",
        "counterparty-type-mismatch",
        "counterparty-not-verified",
        "sanction-screen-failed",
        "insufficient-funds",
        "external-id-taken",
        "hold-not-active",
        "amount-not-allowed",
    ),
)
async def create_ach_origination(caller: Caller, bank: Bank, account_id: UUID, data: CreateAch) -> AchOrigination:
    """Create ACH origination

    A CREDIT debits the Pocket at once; the entry is sent in its window.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    description = data.description
    if data.hold_id and data.direction == "DEBIT":
        raise InvalidInput.at("body", "hold_id", msg="is not allowed with DEBIT: a collection pays nothing")
    if data.sec_code == "CCD" and CCD_FEATURE not in await list_features(bank.pool, owner):
        raise Refused(
            "sec-code-not-enabled",
            "CCD entries are not enabled for this customer. Use WEB or PPD, or ask the bank to enable `ccd`.",
        )
    ach_id = caller.new_resource_id(bank.seed)
    note = await note_fields(bank, owner, TRANSFER, data)
    await bank.engine.submit(
        OriginateAch(
            **caller.command_fields(owner),
            **note,
            references=(data.counterparty_id, *([data.hold_id] if data.hold_id else ())),
            hold_id=named(data.hold_id),
            ach_id=ach_id,
            pocket_id=pocket_id,
            counterparty_id=data.counterparty_id,
            direction=types.Direction(data.direction),
            sec_code=data.sec_code,
            description=description,
            lines=tuple(data.payment_related_information),
            amount=data.amount_usdc,
            history=await store.read_history(bank.pool, owner, caller.now),
            request=msgspec.json.encode(msgspec.structs.replace(data, **sealed_note(note))).decode(),
        )
    )
    return await _show_one(bank, await store.get_origination(bank.pool, owner, ach_id))


@get("/api/v1/service-accounts/{account_id}/ach-originating/", tag="ach", as_of=True)
async def list_account_ach_originations(
    caller: Caller,
    bank: Bank,
    account_id: UUID,
    page_query: ListQuery,
    filters: PaymentFilters,
    statuses: Statuses = None,
    direction: Direction = None,
) -> CursorList[AchOrigination]:
    """List account ACH originations

    Returns the originations of one account, newest first.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    chosen = (sorted(statuses) if statuses else None, direction, *filters.values)
    return await _page(bank, (owner, pocket_id), page_query, filters, chosen=chosen, as_of=caller.as_of)


@get("/api/v1/service-accounts/{account_id}/ach-originating/{transfer_id}/", tag="ach", as_of=True)
async def get_ach_origination(caller: Caller, bank: Bank, account_id: UUID, transfer_id: UUID) -> AchOrigination:
    """Get ACH origination

    Returns an origination with its status.
    """
    _, entry = await _find(caller, bank, account_id, transfer_id)
    return await _show_one(bank, entry)


@patch(
    "/api/v1/service-accounts/{account_id}/ach-originating/{transfer_id}/", tag="ach", refuses=("external-id-taken",)
)
async def annotate_ach_origination(
    caller: Caller, bank: Bank, account_id: UUID, transfer_id: UUID, data: ChangeNote
) -> AchOrigination:
    """Annotate ACH origination

    Changes `external_id` and `metadata`.
    """
    owner, entry = await _find(caller, bank, account_id, transfer_id)
    await annotate(caller, bank, owner, kind=TRANSFER, object_id=entry.ach_id, given=data)
    return await _show_one(bank, entry)


@post(
    "/api/v1/service-accounts/{account_id}/ach-originating/{transfer_id}/cancel/",
    status=200,
    tag="ach",
    moves_money=True,
    previews=True,
    refuses=("ach-origination-not-pending",),
)
async def cancel_ach_origination(caller: Caller, bank: Bank, account_id: UUID, transfer_id: UUID) -> AchOrigination:
    """Cancel ACH origination

    Possible until the entry is in a file. The money of a CREDIT returns to its Pocket. A reversal by the bank cannot
    be cancelled.
    """
    owner, entry = await _find(caller, bank, account_id, transfer_id)
    if entry.reverses_id is not None:
        raise Refused("ach-origination-not-pending", "The entry is a reversal by the bank.")
    await bank.engine.submit(
        ReviewAch(
            **caller.command_fields(owner),
            references=(transfer_id,),
            ach_id=transfer_id,
            decision=AchStatus.CANCELLED,
        )
    )
    return await _show_one(bank, await store.get_origination(bank.pool, owner, entry.ach_id))


@get("/api/v1/customers/{customer_id}/ach-originating/", tag="ach", as_of=True)
async def list_customer_ach_originations(
    caller: Caller,
    bank: Bank,
    customer_id: UUID,
    page_query: ListQuery,
    filters: PaymentFilters,
    statuses: Statuses = None,
    direction: Direction = None,
) -> CursorList[AchOrigination]:
    """List customer ACH originations

    Returns the originations of all accounts of a customer, newest first.
    """
    owner = await caller.owner(bank, customer_id)
    chosen = (sorted(statuses) if statuses else None, direction, *filters.values)
    return await _page(bank, (owner, None), page_query, filters, chosen=chosen, as_of=caller.as_of)


@get("/api/v1/ach-originating/", tag="ach", as_of=True)
async def list_ach_originations(
    *,
    caller: Caller,
    bank: Bank,
    page_query: ListQuery,
    payments: SpanFilters,
    counterparty_id: UUID | None = None,
    statuses: Statuses = None,
    direction: Direction = None,
    returned: Returned = None,
) -> SearchedList[AchOrigination]:
    """List ACH originations

    Returns the originations of all customers, newest first.
    """
    values = (sorted(statuses) if statuses else None, direction, returned, *payments.values, counterparty_id)
    listed, then = list_as_of(store.ORIGINATIONS_OF_PARTNER, store.ORIGINATIONS_OF_PARTNER_THEN, caller.as_of)
    page = await page_query.read(bank, listed, caller.partner_id, *values, *then, scope="ach-originations")
    return searched_page_of(page, await _show(bank, page.items))


async def _find(caller: Caller, bank: Bank, account_id: UUID, transfer_id: UUID) -> tuple[UUID, AchEntry]:
    """Return an origination of an account, and its customer. Raises NotFound."""
    owner, pocket_id = await caller.pocket(bank, account_id)
    entry = await store.get_origination(bank.pool, owner, transfer_id, caller.as_of)
    if entry.pocket_id != pocket_id:
        raise NotFound("There is no such ACH origination.")
    return owner, entry


async def _page(
    bank: Bank,
    of: tuple[UUID, UUID | None],
    page_query: ListQuery,
    filters: PaymentFilters,
    *,
    chosen: tuple[object, ...],
    as_of: datetime | None,
) -> CursorList[AchOrigination]:
    owner, pocket_id = of
    if (external_id := filters.require_alone(*chosen)) is not None:
        get = partial(store.get_origination, bank.pool, owner, as_of=as_of)
        found = await find_noted(bank, owner, TRANSFER, external_id, get=get)
        found = [each for each in found if pocket_id in {None, each.pocket_id}]
        return page_of(Page(found), await _show(bank, found))
    values = (owner, pocket_id, *chosen, await terms_of(bank, owner, TRANSFER, filters))
    listed, then = list_as_of(store.ORIGINATIONS, store.ORIGINATIONS_THEN, as_of)
    page = await page_query.read(bank, listed, *values, *then, scope=f"ach:{owner}:{pocket_id}")
    return page_of(page, await _show(bank, page.items))


async def _show(bank: Bank, entries: Sequence[AchEntry]) -> list[AchOrigination]:
    """Return originations for display with their notes."""
    shown = {(each.customer_id, each.ach_id): render_origination(each, bank.calendars) for each in entries}
    return await show_notes(bank, shown)


async def _show_one(bank: Bank, entry: AchEntry) -> AchOrigination:
    return (await _show(bank, [entry]))[0]


READ_DEBITS = with_scope("transfers.read", "transactions")
RETURN_DEBITS = with_scope("transfers.write", "transactions")
_DEBITS, _DEBIT = "/api/v1/ach-debits/", "/api/v1/ach-debits/{ach_id}/"


class DebitFilters(SpanFilters, frozen=True, kw_only=True):
    """Filter of received debits; None does not filter."""

    customer_id: Annotated[UUID | None, Query(description="Whose; the Partner API needs it, or pocket_id.")] = None
    pocket_id: Annotated[UUID | None, Query()] = None
    status: Annotated[list[str] | None, texts_among("status[]", DEBIT_STATUSES)] = None
    returned: Returned = None


@get(_DEBITS, SIGNED, READ_DEBITS, tag="ach", as_of=True)
async def list_ach_debits(
    caller: AnyCaller, bank: Bank, page_query: ListQuery, filters: DebitFilters
) -> CursorList[ReceivedAchDebit]:
    """List ACH debits

    Returns the debits that other banks have collected from a customer, newest first.
    """
    owner = await caller.filtered_owner(bank, filters.customer_id, filters.pocket_id, or_else=", or pocket_id")
    values = (owner, filters.pocket_id, filters.status, filters.returned, *filters.values)
    listed, then = list_as_of(store.DEBITS, store.DEBITS_THEN, caller.as_of)
    page = await page_query.read(bank, listed, *values, *then, scope=f"ach-debits:{owner}")
    is_consumer = await _is_consumer(bank, owner)
    return page_of(page, [_render_debit(bank, each, caller.now, is_consumer=is_consumer) for each in page.items])


@get(_DEBIT, SIGNED, READ_DEBITS, tag="ach", as_of=True)
async def get_ach_debit(caller: AnyCaller, bank: Bank, ach_id: UUID) -> ReceivedAchDebit:
    """Get ACH debit

    Returns a debit received for a Pocket, by the `ach_id` of its transaction, and how long it can be returned.
    """
    entry = await _find_debit(caller, bank, ach_id)
    return _render_debit(bank, entry, caller.now, is_consumer=await _is_consumer(bank, entry.customer_id))


@post(
    f"{_DEBIT}return/",
    SIGNED,
    RETURN_DEBITS,
    tag="ach",
    status=200,
    moves_money=True,
    previews=True,
    refuses=("not-found", "ach-entry-not-returnable"),
)
async def return_ach_debit(caller: AnyCaller, bank: Bank, ach_id: UUID, data: ReturnAchDebit) -> ReceivedAchDebit:
    """Return ACH debit

    Returns the amount to the Pocket, and the entry to the bank that collected it, with the next window. The deadline
    is that of the code: two banking days after settlement, or sixty days for a debit that a consumer did not authorize.
    """
    if data.code in STATEMENT_CODES and not data.has_signed_statement:
        raise InvalidInput.at("body", "has_signed_statement", msg=f"must be true for {data.code}")
    entry = await _find_debit(caller, bank, ach_id)
    allowed = receiver_codes(entry.sec_code, is_consumer=await _is_consumer(bank, entry.customer_id))
    if data.code not in allowed:
        raise Refused("ach-entry-not-returnable", f"This debit is returned with {', '.join(allowed)} only.")
    await bank.engine.submit(
        ReturnAchEntry(
            **caller.command_fields(entry.customer_id),
            references=(ach_id,),
            ach_id=ach_id,
            code=data.code,
            has_signed_statement=data.has_signed_statement or None,
        )
    )
    entry = await store.get_entry(bank.pool, ach_id)
    return _render_debit(bank, entry, caller.now, is_consumer=await _is_consumer(bank, entry.customer_id))


async def _find_debit(caller: AnyCaller, bank: Bank, ach_id: UUID) -> AchEntry:
    """Return a received debit of the caller. Raises NotFound."""
    try:
        entry = await store.get_entry(bank.pool, ach_id)
        is_debit = entry.way == AchWay.RECEIVING and entry.direction == types.Direction.DEBIT
        if is_debit and await caller.owner(bank, entry.customer_id) == entry.customer_id:
            if caller.as_of is not None:
                return await store.get_customers_entry(bank.pool, entry.customer_id, ach_id, as_of=caller.as_of)
            return entry
    except NotFound:
        pass  # a foreign entry is answered as one that does not exist
    raise NotFound("There is no such ACH debit.")


async def _is_consumer(bank: Bank, customer_id: UUID) -> bool:
    customer = await find_customer(bank.pool, customer_id)
    return customer is not None and customer.type == "INDIVIDUAL"


def _render_debit(bank: Bank, entry: AchEntry, now: datetime, *, is_consumer: bool) -> ReceivedAchDebit:
    """Return a debit with the codes for which the next window is early enough, and until when."""
    if entry.status != AchStatus.PROCESSED:
        return render_debit(entry, {})
    window = next_deadline(now, bank.calendars)
    codes = receiver_codes(entry.sec_code, is_consumer=is_consumer)
    ends = {code: return_deadline(entry, code, bank.calendars) for code in codes}
    return render_debit(entry, {code: end for code, end in ends.items() if end is not None and window <= end})
