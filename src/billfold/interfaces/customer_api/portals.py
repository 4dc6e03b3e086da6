"""Portals, v2."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec
from litestar import get, patch, post
from litestar.status_codes import HTTP_201_CREATED, HTTP_204_NO_CONTENT

from billfold.domain import portals
from billfold.domain.portals import PortalRow
from billfold.engine.bank import Bank
from billfold.flows.account_commands import UpdatePortal
from billfold.interfaces.customer_api.groups import PORTALS
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.lists import ListQuery, list_query
from billfold.interfaces.http.marks import granted, refuses
from billfold.interfaces.http.portal_forms import (
    CreatePortal,
    OtherName,
    Types,
    beneficiary_of,
    check_kind,
    open_portal,
    portal_page,
)
from billfold.interfaces.http.shapes.pages import CursorList
from billfold.interfaces.http.shapes.portal import (
    FundingInstructions,
    Portal,
    render_instructions,
    render_portal,
)
from billfold.kit.errors import InvalidInput

READS, WRITES = granted("pockets.read", PORTALS), granted("pockets.write", PORTALS)


class ChangePortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another name, or `status` CLOSED, or both."""

    name: OtherName | None = None
    status: Literal["CLOSED"] | None = None


@get(
    "/api/v2/portals/",
    dependencies=list_query(),
    operation_id="list_customer_portals",
    opt=READS,
    tags=["portals"],
)
async def list_customer_portals(
    member: Member, bank: Bank, wanted: ListQuery, types: Types = None
) -> CursorList[Portal]:
    """List the portals of all Pockets, newest first."""
    return await portal_page(bank, wanted, member.customer_id, None, types)


@get(
    "/api/v2/pockets/{pocket_id:str}/portals/",
    dependencies=list_query(),
    operation_id="list_portals",
    opt=READS | refuses("not-found"),
    tags=["portals"],
)
async def list_portals(
    member: Member, bank: Bank, pocket_id: str, wanted: ListQuery, types: Types = None
) -> CursorList[Portal]:
    """List the portals of a Pocket, newest first."""
    own_id = await member.pocket(bank, pocket_id)
    return await portal_page(bank, wanted, member.customer_id, own_id, types)


@post(
    "/api/v2/pockets/{pocket_id:str}/portals/",
    status_code=HTTP_201_CREATED,
    operation_id="create_portal",
    opt=WRITES | refuses("not-found", "pocket-not-open", "rail-not-available"),
    tags=["portals"],
)
async def create_portal(member: Member, bank: Bank, pocket_id: str, data: CreatePortal) -> Portal:
    """Open a portal: a bank virtual account with its own network address."""
    check_kind(data)
    pocket = member.customer_id, await member.pocket(bank, pocket_id)
    return render_portal(await open_portal(member, bank, pocket, data.name, data.payment_rails))


@patch(
    "/api/v2/pockets/{pocket_id:str}/portals/{portal_id:str}/",
    status_code=HTTP_204_NO_CONTENT,
    operation_id="update_portal",
    opt=WRITES | refuses("not-found", "already-closed"),
    tags=["portals"],
)
async def update_portal(
    member: Member, bank: Bank, pocket_id: str, portal_id: str, data: ChangePortal
) -> None:
    """Give a portal another name, or close it for ever."""
    if data.name is None and data.status is None:
        raise InvalidInput.at("body", msg="names nothing to change")
    found = await _find(member, bank, pocket_id, portal_id)
    await bank.engine.submit(
        UpdatePortal(
            **member.command_fields(member.customer_id),
            portal_id=found.portal_id,
            name=data.name,
            close=data.status is not None,
        )
    )


@get(
    "/api/v2/pockets/{pocket_id:str}/portals/{portal_id:str}/funding-instructions/",
    operation_id="get_funding_instructions",
    opt=READS | refuses("not-found"),
    tags=["portals"],
)
async def get_funding_instructions(
    member: Member, bank: Bank, pocket_id: str, portal_id: str
) -> FundingInstructions:
    """Read how to pay into a portal by each of its rails."""
    found = await _find(member, bank, pocket_id, portal_id)
    customer = await member.customer(bank)
    return render_instructions(found, beneficiary_of(customer), bank.settings)


async def _find(member: Member, bank: Bank, pocket_id: str, portal_id: str) -> PortalRow:
    own_id: UUID = await member.pocket(bank, pocket_id)
    asked = ids_in.path_uuid("portal_id", portal_id)
    return await portals.get_portal(bank.pool, member.customer_id, asked, pocket_id=own_id)


ROUTES = [
    list_customer_portals,
    list_portals,
    create_portal,
    update_portal,
    get_funding_instructions,
]
