"""Wires: created by the Partner API, read by both APIs. Customers send them by transfer requests."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.customers.store import list_features, require_feature
from billfold.accounts.holds.schemas import named
from billfold.accounts.notes.schemas import ChangeNote
from billfold.accounts.notes.store import annotate, find_noted, note_fields, sealed_note, show_notes, terms_of
from billfold.data_keys.keys import DataKeys, PartyField, PaymentKeys
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, get, patch, post, with_scope
from billfold.http.parameters import OrderedQuery, searched_page_of
from billfold.http.schemas import SearchedList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.book.notes import TRANSFER
from billfold.oauth.caller import AnyCaller, CustomerCaller
from billfold.payments.on_us.schemas import requested_cents, with_amount
from billfold.payments.wires import store
from billfold.payments.wires.commands import CancelWire, SendWire, WireRow
from billfold.payments.wires.schemas import CreateWire, Wire, WireFilters, render_wire
from billfold.platform.database.paging import Page, list_as_of
from billfold.platform.errors import InvalidInput, NotFound, Refused

WIRES_FEATURE = "wires"
"""The feature a partner needs to send wires."""
UNVERIFIED_WIRES_FEATURE = "unverified_wires"
"""The feature a partner needs to send wires to unverified counterparties."""

READ = with_scope("transfers.read", "wires")
CANCEL = with_scope("transfers.write", "wires")


@post(
    "/api/v1/service-accounts/{account_id}/wires/",
    tag="wires",
    moves_money=True,
    previews=True,
    refuses=(
        "feature-not-enabled",
        "customer-not-open",
        "agreement-not-accepted",
        "pocket-not-open",
        "pocket-frozen",
        "counterparty-type-mismatch",
        "counterparty-not-verified",
        "sanction-screen-failed",
        "insufficient-funds",
        "duplicate-id",
        "external-id-taken",
        "hold-not-active",
        "amount-not-allowed",
    ),
)
async def create_wire(caller: Caller, bank: Bank, account_id: UUID, data: CreateWire) -> Wire:
    """Create wire

    The wire is booked at once and sent when Fedwire is next open.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    await require_feature(bank.pool, owner, WIRES_FEATURE)
    note = await note_fields(bank, owner, TRANSFER, data, noted=data.wire_id)
    data = msgspec.structs.replace(await _seal_instructions(bank, owner, with_amount(data)), **sealed_note(note))
    request = _request_text(pocket_id, data)
    if (existing := await _find_existing(caller, bank, data.wire_id, request=request)) is not None:
        return existing
    command = await wire_command(caller, bank, owner, pocket_id=pocket_id, data=data, **note)
    try:
        answer = await bank.engine.submit(command)
    except Refused:
        # The same wire, sent under another key at the same time, was made first.
        if (existing := await _find_existing(caller, bank, data.wire_id, request=request)) is None:
            raise
        return existing
    return await _read_wire(bank, owner, UUID(answer.outcome["wire_id"]))


async def wire_command(
    caller: Caller, bank: Bank, owner: UUID, *, pocket_id: UUID, data: CreateWire, **note: Any
) -> SendWire:
    """Return the command of a wire whose instructions are sealed. Raises InvalidInput for its amount."""
    data = with_amount(data)
    return SendWire(
        **caller.command_fields(owner),
        **note,
        references=(data.counterparty_id, *([data.hold_id] if data.hold_id else ())),
        hold_id=named(data.hold_id),
        wire_id=data.wire_id,
        pocket_id=pocket_id,
        amount=requested_cents(data.amount),
        counterparty_id=data.counterparty_id,
        description=data.description,
        wire_instructions=data.wire_instructions,
        end_to_end_identification=data.end_to_end_identification,
        created_by=data.created_by,
        unverified_wires=UNVERIFIED_WIRES_FEATURE in await list_features(bank.pool, owner),
        request=_request_text(pocket_id, data),
    )


def _request_text(pocket_id: UUID, data: CreateWire) -> str:
    return msgspec.json.encode({"account_id": pocket_id, **msgspec.to_builtins(data)}).decode()


@get("/api/v1/wires/", SIGNED, READ, tag="wires", refuses=("not-found",), as_of=True)
async def list_wires(
    caller: AnyCaller, bank: Bank, page_query: OrderedQuery, filters: WireFilters
) -> SearchedList[Wire]:
    """List wires

    Returns wires in both directions, newest first.
    """
    owner, owner_id = await _list_owner(caller, bank, filters)
    chosen = (filters.pocket_id, filters.direction, filters.status, *filters.values)
    terms = None
    if filters.external_id is not None or filters.metadata:
        if owner == "partner_id":
            raise InvalidInput.at("query", "customer_id", msg="is needed to filter by external_id or metadata")
        if (external_id := filters.require_alone(*chosen)) is not None:
            get = partial(store.get_wire, bank.pool, owner_id, as_of=caller.as_of)
            found = await find_noted(bank, owner_id, TRANSFER, external_id, get=get)
            return searched_page_of(Page(found), await _render_wires(bank, found))
        terms = await terms_of(bank, owner_id, TRANSFER, filters)
    listed, then = list_as_of(store.LISTS[owner], store.LISTS_THEN[owner], caller.as_of)
    page = await page_query.read(bank, listed, owner_id, *chosen, terms, *then, scope=f"wires:{owner}:{owner_id}")
    return searched_page_of(page, await _render_wires(bank, page.items))


async def _list_owner(caller: AnyCaller, bank: Bank, filters: WireFilters) -> tuple[str, UUID]:
    """Return the column and the id of the owner whose wires are listed. Raises NotFound."""
    owner, owner_id = "partner_id", caller.partner_id
    if isinstance(caller, CustomerCaller):
        owner, owner_id = "customer_id", caller.customer_id
        if filters.customer_id not in {None, owner_id}:
            raise NotFound("There is no such customer.")
    elif filters.customer_id is not None:
        owner, owner_id = "customer_id", await caller.owner(bank, filters.customer_id)
    if filters.pocket_id is not None:
        customer_id, _ = await caller.pocket(bank, filters.pocket_id)
        if owner == "partner_id":
            owner, owner_id = "customer_id", customer_id
    return owner, owner_id


@get("/api/v1/wires/{wire_id}/", SIGNED, READ, tag="wires", as_of=True)
async def get_wire(caller: AnyCaller, bank: Bank, wire_id: UUID, customer_id: UUID | None = None) -> Wire:
    """Get wire

    Returns a wire and its status.
    """
    owner = caller.customer_id if isinstance(caller, CustomerCaller) else (await caller.owned(bank, "wire", wire_id))[0]
    if customer_id not in {None, owner}:
        raise NotFound("There is no such wire.")
    return await _read_wire(bank, owner, wire_id, caller.as_of)


@patch("/api/v1/wires/{wire_id}/", SIGNED, CANCEL, tag="wires", refuses=("external-id-taken",))
async def annotate_wire(caller: Call, bank: Bank, wire_id: UUID, data: ChangeNote) -> Wire:
    """Annotate wire

    Changes `external_id` and `metadata`, also of an incoming wire.
    """
    owner, own_id = await caller.owned(bank, "wire", wire_id)
    await annotate(caller, bank, owner, kind=TRANSFER, object_id=own_id, given=data)
    return await _read_wire(bank, owner, own_id)


@post(
    "/api/v1/wires/{wire_id}/cancel/",
    SIGNED,
    CANCEL,
    tag="wires",
    status=200,
    moves_money=True,
    previews=True,
    refuses=("wire-not-pending", "pocket-not-open"),
)
async def cancel_wire(caller: AnyCaller, bank: Bank, wire_id: UUID) -> Wire:
    """Cancel wire

    Returns the amount and the fee of a PENDING wire to its Pocket; the wire is REJECTED with the reason CANCELED.
    It is refused from the moment the wire is in a file for Fedwire.
    """
    owner, own_id = await caller.owned(bank, "wire", wire_id)
    await bank.engine.submit(CancelWire(**caller.command_fields(owner), references=(own_id,), wire_id=own_id))
    return await _read_wire(bank, owner, own_id)


async def _find_existing(caller: Caller, bank: Bank, wire_id: UUID | None, request: str) -> Wire | None:
    """Return the wire with this id if a request of equal content created it. Raises Refused `duplicate-id`."""
    entry = None if wire_id is None else await bank.directory.find("wire", wire_id)
    if entry is None:
        return None
    row = await store.get_wire(bank.pool, entry.customer_id, entry.object_id)
    if entry.partner_id != caller.partner_id or row.request != request:
        raise Refused("duplicate-id", "Another wire already has this wire_id.")
    return (await _render_wires(bank, [row]))[0]


async def _seal_instructions(bank: Bank, owner: UUID, data: CreateWire) -> CreateWire:
    """Return a wire to send as stored: its instructions are sealed, because they may name an account or a person."""
    if not data.wire_instructions:
        return data
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    return msgspec.structs.replace(data, wire_instructions=PartyField.TEXT.seal(data_key, data.wire_instructions))


async def _read_wire(bank: Bank, owner: UUID, wire_id: UUID, as_of: datetime | None = None) -> Wire:
    return (await _render_wires(bank, [await store.get_wire(bank.pool, owner, wire_id, as_of=as_of)]))[0]


async def _render_wires(bank: Bank, rows: Sequence[WireRow]) -> list[Wire]:
    """Return wires for display, decrypted with the keys of their customers."""
    keys = await PaymentKeys.load(bank, {row.customer_id for row in rows})
    return await show_notes(bank, {(row.customer_id, row.wire_id): render_wire(row, keys) for row in rows})
