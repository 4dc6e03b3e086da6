"""Wires of a partner's customers: sent, listed, read."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from billfold.http.caller import Caller
from billfold.http.list_params import OrderedQuery, page_of
from billfold.http.operations import get, post
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank
from billfold.payments.on_us.routes import Cents, FullWithdrawal, RequestedAmount
from billfold.payments.wires.commands import SendWire
from billfold.payments.wires.pages import WireQuery, wire_page
from billfold.payments.wires.schemas import Wire, render_wire
from billfold.payments.wires.store.wires import get_wire
from billfold.platform.errors import InvalidInput, NotFound, Refused

WIRES_FEATURE = "wires"
"""What a partner needs to send wires."""
UNVERIFIED_WIRES_FEATURE = "unverified_wires"
"""What a partner needs to wire to counterparties that nobody has verified."""

Note = Annotated[str, msgspec.Meta(max_length=140)]


class CreateWire(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A wire. Exactly one of `amount` and `amount_usdc`."""

    counterparty_id: UUID
    amount_usdc: Cents | None = None
    amount: RequestedAmount | FullWithdrawal | None = None
    description: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    wire_instructions: Note | None = None
    end_to_end_identification: Annotated[str, msgspec.Meta(max_length=35)] | None = None
    created_by: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    wire_id: UUID | None = None


@post(
    "/api/v1/service-accounts/{account_id}/wires/",
    moves_money=True,
    refuses=(
        "feature-not-enabled",
        "customer-not-open",
        "pocket-not-open",
        "pocket-frozen",
        "counterparty-type-mismatch",
        "counterparty-not-verified",
        "insufficient-funds",
        "duplicate-id",
    ),
)
async def create_wire(caller: Caller, bank: Bank, account_id: UUID, data: CreateWire) -> Wire:
    """Send a wire. It is booked at once and leaves at the next hour at which wires leave."""
    if (data.amount is None) == (data.amount_usdc is None):
        raise InvalidInput.at("body", "amount_usdc", msg="exactly one of amount and amount_usdc")
    owner, pocket_id = await caller.pocket(bank, account_id)
    caller.require_feature(WIRES_FEATURE)
    request = msgspec.json.encode({"account_id": pocket_id, **msgspec.to_builtins(data)}).decode()
    if data.wire_id is not None:
        existing = await _find_existing(caller, bank, data.wire_id, request)
        if existing is not None:
            return existing
    answer = await bank.engine.submit(
        SendWire(
            **caller.command_fields(owner),
            references=(data.counterparty_id,),
            wire_id=data.wire_id,
            pocket_id=pocket_id,
            amount=_amount(data),
            counterparty_id=data.counterparty_id,
            description=data.description,
            wire_instructions=data.wire_instructions,
            end_to_end_identification=data.end_to_end_identification,
            created_by=data.created_by,
            unverified_wires=UNVERIFIED_WIRES_FEATURE in caller.features,
            request=request,
        )
    )
    return render_wire(await get_wire(bank.pool, owner, UUID(answer.outcome["wire_id"])))


@get("/api/v1/wires/", refuses=("not-found",))
async def list_wires(caller: Caller, bank: Bank, wanted: OrderedQuery, asked: WireQuery) -> CursorList[Wire]:
    """List wires in both directions, newest first."""
    if asked.customer_id is not None:
        await caller.customer_id(bank, asked.customer_id)
    if asked.pocket_id is not None:
        await caller.pocket(bank, asked.pocket_id)
    page = await wire_page(bank, "partner_id", caller.partner_id, wanted, asked)
    return page_of(page, [render_wire(row) for row in page.items])


@get("/api/v1/wires/{wire_id}/", name="get_wire")
async def read_wire(caller: Caller, bank: Bank, wire_id: UUID, customer_id: UUID | None = None) -> Wire:
    """Read a wire and what has become of it."""
    owner, own_id = await caller.wire(bank, wire_id)
    if customer_id not in {None, owner}:
        raise NotFound("There is no such wire.")
    return render_wire(await get_wire(bank.pool, owner, own_id))


def _amount(data: CreateWire) -> int | None:
    if isinstance(data.amount, RequestedAmount):
        return data.amount.amount_usdc
    return data.amount_usdc


async def _find_existing(caller: Caller, bank: Bank, wire_id: UUID, request: str) -> Wire | None:
    """The wire that already has this id, when it was asked for with the same words."""
    entry = await bank.directory.find("wire", wire_id)
    if entry is None:
        return None
    row = await get_wire(bank.pool, entry.customer_id, wire_id)
    if entry.partner_id != caller.partner_id or row.request != request:
        raise Refused("duplicate-id", "Another wire already has this wire_id.")
    return render_wire(row)
