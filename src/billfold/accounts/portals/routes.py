"""Portals of v1 and v2."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec

from billfold.accounts.addresses import address_of, format_address
from billfold.accounts.notes.schemas import ChangedNote, NewNote, NoteQuery
from billfold.accounts.notes.store import find_noted, note_fields, show_notes, terms_of
from billfold.accounts.portals import rules, schemas, store
from billfold.accounts.portals.commands import OpenPortal, PortalRow, UpdatePortal, Wallet, WalletSource
from billfold.accounts.portals.schemas import AccountPortals, Portal, render_account_portal, render_portal
from billfold.accounts.profiles import open_profile
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, MaybeInPath, get, patch, post, with_scope
from billfold.http.parameters import ListQuery, page_of, texts_among
from billfold.http.schemas import NOT_BLANK, CursorList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank, limit_usage
from billfold.ledger.directory import find_customer
from billfold.platform.database.paging import Page, list_as_of
from billfold.platform.errors import InvalidInput, Refused

BANK_TYPE: Final = "BANK_VIRTUAL_ACCOUNT_PORTAL"
CRYPTO_TYPE: Final = "CRYPTO_DEPOSIT_ADDRESS_PORTAL"
_V1_PORTALS_MAX = 1000
Rail = Literal["ACH", "WIRE", "INTERNATIONAL_WIRE", "ON_US", "CRYPTO"]
NewName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=NOT_BLANK)]
OtherName = Annotated[str, msgspec.Meta(min_length=1, max_length=50, pattern=NOT_BLANK)]
Types = Annotated[
    list[str] | None, texts_among("type[]", frozenset({BANK_TYPE, CRYPTO_TYPE}), description="Portal types.")
]


class CreatePortal(NewNote, forbid_unknown_fields=True, kw_only=True):
    """A portal of v2; `payment_rails` limits its rails. Only a crypto portal has the rail CRYPTO, and no other."""

    name: NewName
    type: Literal["BANK_VIRTUAL_ACCOUNT_PORTAL", "CRYPTO_DEPOSIT_ADDRESS_PORTAL"] = BANK_TYPE
    chain: str | None = None
    payment_rails: Annotated[list[Rail], msgspec.Meta(min_length=1)] | None = None


async def open_portal(
    call: Call,
    bank: Bank,
    pocket: tuple[UUID, UUID],
    *,
    name: str,
    rails: list[Rail] | None = None,
    wallet: Wallet | None = None,
    note: NewNote | None = None,
) -> PortalRow:
    """Open a portal of (customer_id, pocket_id); `rails` limits its rails, `wallet` makes it a crypto portal."""
    owner, pocket_id = pocket
    chosen = tuple(rail for rail in rules.BANK_RAILS if rail in rails) if rails else None
    fields: dict[str, Any] = {"pocket_id": pocket_id, "name": name, "payment_rails": chosen, "wallet": wallet}
    fields |= await note_fields(bank, owner, "portal", note or NewNote())
    answer = await bank.engine.submit(OpenPortal(**call.command_fields(owner), **fields))
    return await store.get_portal(bank.pool, owner, UUID(answer.outcome["portal_id"]))


async def portal_page(
    bank: Bank,
    wanted: ListQuery,
    owner: UUID,
    pocket_id: UUID | None,
    *,
    types: list[str] | None,
    notes: NoteQuery,
    as_of: datetime | None,
) -> CursorList[Portal]:
    """Return one page of portals of a pocket, or of all pockets of a customer, newest first."""
    if (external_id := notes.require_alone(types)) is not None:
        get = partial(store.get_portal, bank.pool, owner, pocket_id=pocket_id, as_of=as_of)
        found = await find_noted(bank, owner, "portal", external_id, get=get)
        return page_of(Page(found), await _show(bank, found))
    terms = await terms_of(bank, owner, "portal", notes)
    listed, then = list_as_of(store.PORTALS, store.PORTALS_THEN, as_of)
    page = await wanted.read(bank, listed, owner, pocket_id, types, terms, *then, scope="portals")
    return page_of(page, await _show(bank, page.items))


async def _show(bank: Bank, rows: Sequence[PortalRow]) -> list[Portal]:
    """Return portals for display with their notes."""
    return await show_notes(bank, {(row.customer_id, row.portal_id): render_portal(row) for row in rows})


_OPEN_REFUSES = ("pocket-not-open", "customer-not-open", "usage-limit-reached")
_UPDATE_REFUSES = ("already-closed", "external-id-taken")
READS, WRITES = with_scope("pockets.read", "portals"), with_scope("pockets.write", "portals")


class CreateAccountPortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A portal of v1."""

    name: NewName


class RenamePortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A new name, v1."""

    name: OtherName


class AnnotatePortal(ChangedNote, forbid_unknown_fields=True, kw_only=True):
    """A new name, and a note."""

    name: OtherName | None = None


class ChangePortal(ChangedNote, forbid_unknown_fields=True, kw_only=True):
    """A new name, a note, or `status` CLOSED."""

    name: OtherName | None = None
    status: Literal["CLOSED"] | None = None


@get("/api/v1/service-accounts/{account_id}/portals/", as_of=True)
async def list_account_portals(caller: Caller, bank: Bank, account_id: UUID) -> AccountPortals:
    """List portals of an account."""
    owner, pocket_id = await caller.pocket(bank, account_id)
    return await _list_v1(bank, owner, pocket_id, caller.as_of)


@post("/api/v1/service-accounts/{account_id}/portals/", refuses=_OPEN_REFUSES)
async def create_account_portal(
    caller: Caller, bank: Bank, account_id: UUID, data: CreateAccountPortal
) -> schemas.AccountPortal:
    """Create portal of an account."""
    pocket = await caller.pocket(bank, account_id)
    await limit_usage(bank, "portals", pocket[0])
    return render_account_portal(await open_portal(caller, bank, pocket, name=data.name))


@get("/api/v1/service-accounts/{account_id}/portals/{portal_id}/", as_of=True)
async def get_account_portal(caller: Caller, bank: Bank, account_id: UUID, portal_id: UUID) -> schemas.AccountPortal:
    """Get portal of an account."""
    return render_account_portal(await _find_portal(caller, bank, account_id, portal_id=portal_id))


@patch("/api/v1/service-accounts/{account_id}/portals/{portal_id}/", refuses=("already-closed",))
async def rename_account_portal(
    caller: Caller, bank: Bank, account_id: UUID, portal_id: UUID, data: RenamePortal
) -> schemas.AccountPortal:
    """Rename portal of an account."""
    found = await _find_portal(caller, bank, account_id, portal_id=portal_id)
    return render_account_portal(await _rename_portal(caller, bank, found, name=data.name))


@post("/api/v1/service-accounts/{account_id}/portals/{portal_id}/close/", status=204, refuses=("already-closed",))
async def close_account_portal(caller: Caller, bank: Bank, account_id: UUID, portal_id: UUID) -> None:
    """Close portal of an account.

    A closed portal stays closed; closing it again returns 412.
    """
    found = await _find_portal(caller, bank, account_id, portal_id=portal_id)
    await _update_portal(caller, bank, found, close=True)


@get("/api/v1/customers/{customer_id}/portals/", as_of=True)
async def list_customer_account_portals(caller: Caller, bank: Bank, customer_id: UUID) -> AccountPortals:
    """List portals (v1).

    Returns portals of all accounts of a customer.
    """
    owner = await caller.owner(bank, customer_id)
    return await _list_v1(bank, owner, None, caller.as_of)


@get("/api/v2/pockets/{pocket_id}/portals/", SIGNED, READS, as_of=True)
async def list_portals(
    caller: Call, bank: Bank, pocket_id: UUID, wanted: ListQuery, notes: NoteQuery, types: Types = None
) -> CursorList[Portal]:
    """List portals of a Pocket.

    Returns portals, newest first.
    """
    owner, own_id = await caller.pocket(bank, pocket_id)
    return await portal_page(bank, wanted, owner, pocket_id=own_id, types=types, notes=notes, as_of=caller.as_of)


@get("/api/v2/customers/{customer_id}/portals/", as_of=True)
@get("/api/v2/portals/", READS, as_of=True)
async def list_customer_portals(
    caller: Call, bank: Bank, customer_id: MaybeInPath, wanted: ListQuery, notes: NoteQuery, types: Types = None
) -> CursorList[Portal]:
    """List portals.

    Returns portals of all Pockets of a customer, newest first.
    """
    owner = await caller.owner(bank, customer_id)
    return await portal_page(bank, wanted, owner, pocket_id=None, types=types, notes=notes, as_of=caller.as_of)


@post(
    "/api/v2/pockets/{pocket_id}/portals/",
    SIGNED,
    WRITES,
    refuses=(*_OPEN_REFUSES, "rail-not-available", "external-id-taken"),
)
async def create_portal(caller: Call, bank: Bank, pocket_id: UUID, data: CreatePortal) -> Portal:
    """Create portal.

    Creates a virtual bank account with its own network address, or an address on a chain that accepts stablecoins.
    """
    pocket = await caller.pocket(bank, pocket_id)
    await limit_usage(bank, "portals", pocket[0])
    wallet = await _wallet_for(bank, data)
    row = await open_portal(caller, bank, pocket, name=data.name, rails=data.payment_rails, wallet=wallet, note=data)
    return (await _show(bank, [row]))[0]


async def _wallet_for(bank: Bank, data: CreatePortal) -> Wallet | None:
    """Return a new address for a crypto portal, None for a bank portal."""
    if data.type != CRYPTO_TYPE:
        if data.chain is not None:
            raise InvalidInput.at("body", "chain", msg="is only taken with a crypto portal")
        if "CRYPTO" in (data.payment_rails or ()):
            raise InvalidInput.at("body", "payment_rails", msg="has CRYPTO, which only a crypto portal may have")
        return None
    wallets = bank.ports.get(WalletSource)
    if wallets is None or not wallets.chains:
        raise Refused("rail-not-available", "Crypto deposit addresses are not available here.")
    if set(data.payment_rails or ()) - {"CRYPTO"}:
        raise InvalidInput.at("body", "payment_rails", msg="must be only CRYPTO for a crypto portal")
    if data.chain not in wallets.chains:
        raise InvalidInput.at("body", "chain", msg=f"must be one of {', '.join(wallets.chains)}")
    return await wallets.allot(data.chain)


@get("/api/v2/pockets/{pocket_id}/portals/{portal_id}/", as_of=True)
async def get_portal(caller: Caller, bank: Bank, pocket_id: UUID, portal_id: UUID) -> Portal:
    """Get portal."""
    return (await _show(bank, [await _find_portal(caller, bank, pocket_id, portal_id=portal_id)]))[0]


@patch("/api/v2/pockets/{pocket_id}/portals/{portal_id}/", refuses=_UPDATE_REFUSES)
async def rename_portal(caller: Caller, bank: Bank, pocket_id: UUID, portal_id: UUID, data: AnnotatePortal) -> Portal:
    """Rename portal."""
    found = await _find_portal(caller, bank, pocket_id, portal_id=portal_id)
    return (await _show(bank, [await _rename_portal(caller, bank, found, name=data.name, note=data)]))[0]


@patch("/api/v2/pockets/{pocket_id}/portals/{portal_id}/", WRITES, status=204, refuses=_UPDATE_REFUSES)
async def update_portal(caller: Call, bank: Bank, pocket_id: UUID, portal_id: UUID, data: ChangePortal) -> None:
    """Update portal.

    Renames it, or closes it permanently.
    """
    found = await _find_portal(caller, bank, pocket_id, portal_id=portal_id)
    await _update_portal(caller, bank, found, name=data.name, close=data.status is not None, note=data)


@get("/api/v2/pockets/{pocket_id}/portals/{portal_id}/funding-instructions/", SIGNED, READS)
async def get_funding_instructions(
    caller: Call, bank: Bank, pocket_id: UUID, portal_id: UUID
) -> schemas.FundingInstructions:
    """Get funding instructions.

    Returns how to pay into a portal by each of its rails.
    """
    found = await _find_portal(caller, bank, pocket_id, portal_id=portal_id)
    customer = await find_customer(bank.pool, found.customer_id)
    address = None if customer is None else address_of(await open_profile(bank, customer))
    wallets = bank.ports.get(WalletSource)
    return schemas.render_instructions(
        found,
        bank.settings,
        beneficiary_name="" if customer is None else customer.name,
        beneficiary_address=format_address(address) if address else bank.settings.bank_address,
        minimum_cents=wallets.minimum_cents(found.chain) if wallets and found.chain else None,
    )


async def _find_portal(caller: Call, bank: Bank, pocket_id: UUID, portal_id: UUID) -> PortalRow:
    owner, own_id = await caller.pocket(bank, pocket_id)
    return await store.get_portal(bank.pool, owner, portal_id, pocket_id=own_id, as_of=caller.as_of)


async def _update_portal(
    caller: Call,
    bank: Bank,
    found: PortalRow,
    *,
    name: str | None = None,
    close: bool = False,
    note: ChangedNote | None = None,
) -> None:
    owner, portal_id = found.customer_id, found.portal_id
    fields = caller.command_fields(owner)
    fields |= await note_fields(bank, owner, "portal", note or ChangedNote(), noted=portal_id)
    await bank.engine.submit(UpdatePortal(**fields, portal_id=portal_id, name=name, close=close))


async def _rename_portal(
    caller: Caller, bank: Bank, found: PortalRow, name: str | None, note: ChangedNote | None = None
) -> PortalRow:
    await _update_portal(caller, bank, found, name=name, note=note)
    return await store.get_portal(bank.pool, found.customer_id, found.portal_id)


async def _list_v1(bank: Bank, owner: UUID, pocket_id: UUID | None, as_of: datetime | None) -> AccountPortals:
    listed, then = list_as_of(store.PORTALS, store.PORTALS_THEN, as_of)
    rows = await listed.rows(bank.pool, owner, pocket_id, None, None, *then, limit=_V1_PORTALS_MAX)
    return AccountPortals(count=len(rows), portals=[render_account_portal(row) for row in rows])
