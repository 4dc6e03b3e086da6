"""Portals, v2."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from billfold.accounts.commands import UpdatePortal
from billfold.accounts.portals import store as portal_store
from billfold.accounts.portals.requests import (
    CreatePortal,
    OtherName,
    Types,
    beneficiary_of,
    check_portal_type,
    open_portal,
    portal_page,
)
from billfold.accounts.portals.schemas import FundingInstructions, Portal, render_instructions, render_portal
from billfold.accounts.portals.types import PortalRow
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import PORTALS
from billfold.http.list_params import ListQuery
from billfold.http.operations import get, patch, post, with_scope
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank
from billfold.platform.errors import InvalidInput

READS, WRITES = with_scope("pockets.read", PORTALS), with_scope("pockets.write", PORTALS)


class ChangePortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another name, or `status` CLOSED, or both."""

    name: OtherName | None = None
    status: Literal["CLOSED"] | None = None


@get("/api/v2/portals/", READS)
async def list_customer_portals(
    member: CustomerCaller, bank: Bank, wanted: ListQuery, types: Types = None
) -> CursorList[Portal]:
    """List the portals of all Pockets, newest first."""
    return await portal_page(bank, wanted, member.customer_id, None, types)


@get("/api/v2/pockets/{pocket_id}/portals/", READS)
async def list_portals(
    member: CustomerCaller, bank: Bank, pocket_id: UUID, wanted: ListQuery, types: Types = None
) -> CursorList[Portal]:
    """List the portals of a Pocket, newest first."""
    own_id = await member.own_pocket(bank, pocket_id)
    return await portal_page(bank, wanted, member.customer_id, own_id, types)


@post("/api/v2/pockets/{pocket_id}/portals/", WRITES, refuses=("pocket-not-open", "rail-not-available"))
async def create_portal(member: CustomerCaller, bank: Bank, pocket_id: UUID, data: CreatePortal) -> Portal:
    """Open a portal: a bank virtual account with its own network address."""
    check_portal_type(data)
    pocket = member.customer_id, await member.own_pocket(bank, pocket_id)
    return render_portal(await open_portal(member, bank, pocket, data.name, data.payment_rails))


@patch("/api/v2/pockets/{pocket_id}/portals/{portal_id}/", WRITES, status=204, refuses=("already-closed",))
async def update_portal(
    member: CustomerCaller, bank: Bank, pocket_id: UUID, portal_id: UUID, data: ChangePortal
) -> None:
    """Give a portal another name, or close it for ever."""
    if data.name is None and data.status is None:
        raise InvalidInput.at("body", msg="names nothing to change")
    found = await _find_portal(member, bank, pocket_id, portal_id)
    await bank.engine.submit(
        UpdatePortal(
            **member.command_fields(member.customer_id),
            portal_id=found.portal_id,
            name=data.name,
            close=data.status is not None,
        )
    )


@get("/api/v2/pockets/{pocket_id}/portals/{portal_id}/funding-instructions/", READS)
async def get_funding_instructions(
    member: CustomerCaller, bank: Bank, pocket_id: UUID, portal_id: UUID
) -> FundingInstructions:
    """Read how to pay into a portal by each of its rails."""
    found = await _find_portal(member, bank, pocket_id, portal_id)
    customer = await member.customer(bank)
    return render_instructions(found, beneficiary_of(customer), bank.settings)


async def _find_portal(member: CustomerCaller, bank: Bank, pocket_id: UUID, portal_id: UUID) -> PortalRow:
    own_id = await member.own_pocket(bank, pocket_id)
    return await portal_store.get_portal(bank.pool, member.customer_id, portal_id, pocket_id=own_id)
