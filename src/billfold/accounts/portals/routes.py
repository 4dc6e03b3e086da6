"""Portals of v1 and v2."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from billfold.accounts.commands import UpdatePortal
from billfold.accounts.portals import store as portal_store
from billfold.accounts.portals.requests import (
    CreatePortal,
    NewName,
    OtherName,
    Types,
    beneficiary_of,
    check_portal_type,
    open_portal,
    portal_page,
)
from billfold.accounts.portals.schemas import (
    AccountPortal,
    AccountPortals,
    FundingInstructions,
    Portal,
    render_account_portal,
    render_instructions,
    render_portal,
)
from billfold.accounts.portals.types import PortalRow
from billfold.http.caller import Call, Caller
from billfold.http.limits.rate_groups import PORTALS
from billfold.http.list_params import ListQuery
from billfold.http.operations import SIGNED, MaybeInPath, get, patch, post, with_scope
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank
from billfold.ledger.directory.store import find_customer
from billfold.platform.errors import InvalidInput

READS, WRITES = with_scope("pockets.read", PORTALS), with_scope("pockets.write", PORTALS)


class NewPortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A portal of v1."""

    name: NewName


class RenamePortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another name."""

    name: OtherName


class ChangePortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another name, or `status` CLOSED, or both."""

    name: OtherName | None = None
    status: Literal["CLOSED"] | None = None


@get("/api/v1/service-accounts/{account_id}/portals/")
async def list_account_portals(caller: Caller, bank: Bank, account_id: UUID) -> AccountPortals:
    """List the portals of an account."""
    owner, pocket_id = await caller.pocket(bank, account_id)
    return _render_v1_list(await portal_store.list_portals(bank.pool, owner, pocket_id))


@post("/api/v1/service-accounts/{account_id}/portals/", refuses=("pocket-not-open",))
async def create_account_portal(caller: Caller, bank: Bank, account_id: UUID, data: NewPortal) -> AccountPortal:
    """Open a portal of an account."""
    pocket = await caller.pocket(bank, account_id)
    return render_account_portal(await open_portal(caller, bank, pocket, data.name, None))


@get("/api/v1/service-accounts/{account_id}/portals/{portal_id}/")
async def get_account_portal(caller: Caller, bank: Bank, account_id: UUID, portal_id: UUID) -> AccountPortal:
    """Read a portal of an account."""
    return render_account_portal(await _find_portal(caller, bank, account_id, portal_id))


@patch("/api/v1/service-accounts/{account_id}/portals/{portal_id}/", refuses=("already-closed",))
async def rename_account_portal(
    caller: Caller, bank: Bank, account_id: UUID, portal_id: UUID, data: RenamePortal
) -> AccountPortal:
    """Give a portal of an account another name."""
    found = await _find_portal(caller, bank, account_id, portal_id)
    return render_account_portal(await _rename(caller, bank, found, data.name))


@post("/api/v1/service-accounts/{account_id}/portals/{portal_id}/close/", status=204, refuses=("already-closed",))
async def close_account_portal(caller: Caller, bank: Bank, account_id: UUID, portal_id: UUID) -> None:
    """Close a portal for ever. A second close is 412."""
    found = await _find_portal(caller, bank, account_id, portal_id)
    await _update(caller, bank, found, close=True)


@get("/api/v1/customers/{customer_id}/portals/")
async def list_customer_account_portals(caller: Caller, bank: Bank, customer_id: UUID) -> AccountPortals:
    """List the portals of all accounts of a customer."""
    owner = await caller.customer_id(bank, customer_id)
    return _render_v1_list(await portal_store.list_portals(bank.pool, owner, None))


@get("/api/v2/pockets/{pocket_id}/portals/", SIGNED, READS)
async def list_portals(
    caller: Call, bank: Bank, pocket_id: UUID, wanted: ListQuery, types: Types = None
) -> CursorList[Portal]:
    """List the portals of a Pocket, newest first."""
    owner, own_id = await caller.pocket(bank, pocket_id)
    return await portal_page(bank, wanted, owner, own_id, types)


@get("/api/v2/customers/{customer_id}/portals/")
@get("/api/v2/portals/", READS)
async def list_customer_portals(
    caller: Call, bank: Bank, customer_id: MaybeInPath, wanted: ListQuery, types: Types = None
) -> CursorList[Portal]:
    """List the portals of a customer's Pockets, newest first."""
    owner = await caller.owner(bank, customer_id)
    return await portal_page(bank, wanted, owner, None, types)


@post("/api/v2/pockets/{pocket_id}/portals/", SIGNED, WRITES, refuses=("pocket-not-open", "rail-not-available"))
async def create_portal(caller: Call, bank: Bank, pocket_id: UUID, data: CreatePortal) -> Portal:
    """Open a portal: a bank virtual account with its own network address."""
    check_portal_type(data)
    pocket = await caller.pocket(bank, pocket_id)
    return render_portal(await open_portal(caller, bank, pocket, data.name, data.payment_rails))


@get("/api/v2/pockets/{pocket_id}/portals/{portal_id}/")
async def get_portal(caller: Caller, bank: Bank, pocket_id: UUID, portal_id: UUID) -> Portal:
    """Read a portal."""
    return render_portal(await _find_portal(caller, bank, pocket_id, portal_id))


@patch("/api/v2/pockets/{pocket_id}/portals/{portal_id}/", refuses=("already-closed",))
async def rename_portal(caller: Caller, bank: Bank, pocket_id: UUID, portal_id: UUID, data: RenamePortal) -> Portal:
    """Give a portal another name."""
    found = await _find_portal(caller, bank, pocket_id, portal_id)
    return render_portal(await _rename(caller, bank, found, data.name))


@patch("/api/v2/pockets/{pocket_id}/portals/{portal_id}/", WRITES, status=204, refuses=("already-closed",))
async def update_portal(caller: Call, bank: Bank, pocket_id: UUID, portal_id: UUID, data: ChangePortal) -> None:
    """Rename a portal, or close it permanently."""
    if data.name is None and data.status is None:
        raise InvalidInput.at("body", msg="names nothing to change")
    found = await _find_portal(caller, bank, pocket_id, portal_id)
    await _update(caller, bank, found, name=data.name, close=data.status is not None)


@get("/api/v2/pockets/{pocket_id}/portals/{portal_id}/funding-instructions/", SIGNED, READS)
async def get_funding_instructions(caller: Call, bank: Bank, pocket_id: UUID, portal_id: UUID) -> FundingInstructions:
    """Read how to pay into a portal by each of its rails."""
    found = await _find_portal(caller, bank, pocket_id, portal_id)
    customer = await find_customer(bank.pool, found.customer_id)
    return render_instructions(found, beneficiary_of(customer), bank.settings)


async def _find_portal(caller: Call, bank: Bank, pocket_id: UUID, portal_id: UUID) -> PortalRow:
    owner, own_id = await caller.pocket(bank, pocket_id)
    return await portal_store.get_portal(bank.pool, owner, portal_id, pocket_id=own_id)


async def _update(caller: Call, bank: Bank, found: PortalRow, *, name: str | None = None, close: bool = False) -> None:
    fields = caller.command_fields(found.customer_id)
    await bank.engine.submit(UpdatePortal(**fields, portal_id=found.portal_id, name=name, close=close))


async def _rename(caller: Caller, bank: Bank, found: PortalRow, name: str) -> PortalRow:
    await _update(caller, bank, found, name=name)
    return await portal_store.get_portal(bank.pool, found.customer_id, found.portal_id)


def _render_v1_list(rows: list[PortalRow]) -> AccountPortals:
    return AccountPortals(count=len(rows), portals=[render_account_portal(row) for row in rows])
