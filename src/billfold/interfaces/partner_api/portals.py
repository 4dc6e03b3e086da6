"""Portals of v1 and v2: one room, two coats."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec
from litestar import get, patch, post
from litestar.params import QueryParameter
from litestar.status_codes import HTTP_201_CREATED, HTTP_204_NO_CONTENT

from billfold.domain import portals
from billfold.domain.directory import CustomerRow, find_customer
from billfold.domain.portals import PortalRow
from billfold.engine.bank import Bank
from billfold.flows.portals import BANK_RAILS, OpenPortal, UpdatePortal
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.lists import ListQuery, list_query, page_of
from billfold.interfaces.http.marks import refuses
from billfold.interfaces.http.shapes.customer import address_of, one_line
from billfold.interfaces.http.shapes.pages import CursorList
from billfold.interfaces.http.shapes.portal import (
    AccountPortal,
    AccountPortals,
    Beneficiary,
    FundingInstructions,
    Portal,
    render_account_portal,
    render_instructions,
    render_portal,
)
from billfold.interfaces.http.shapes.texts import NOT_BLANK
from billfold.kit.errors import InvalidInput, Refused

BANK_TYPE: Final = "BANK_VIRTUAL_ACCOUNT_PORTAL"
CRYPTO_TYPE: Final = "CRYPTO_DEPOSIT_ADDRESS_PORTAL"
Rail = Literal["ACH", "WIRE", "INTERNATIONAL_WIRE", "ON_US"]
NewName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=NOT_BLANK)]
OtherName = Annotated[str, msgspec.Meta(min_length=1, max_length=50, pattern=NOT_BLANK)]
Types = Annotated[list[str] | None, QueryParameter(name="type[]", description="Portal types.")]


class NewPortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A portal of v1."""

    name: NewName


class CreatePortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A portal of v2; `payment_rails` narrows what it takes."""

    name: NewName
    type: Literal["BANK_VIRTUAL_ACCOUNT_PORTAL", "CRYPTO_DEPOSIT_ADDRESS_PORTAL"] = BANK_TYPE
    chain: str | None = None
    payment_rails: Annotated[list[Rail], msgspec.Meta(min_length=1)] | None = None


class RenamePortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another name."""

    name: OtherName


@get(
    "/api/v1/service-accounts/{account_id:str}/portals/",
    operation_id="list_account_portals",
    opt=refuses("not-found"),
    tags=["portals"],
)
async def list_account_portals(caller: Caller, bank: Bank, account_id: str) -> AccountPortals:
    """List the portals of an account."""
    owner, pocket_id = await caller.pocket(bank, ids_in.path_uuid("account_id", account_id))
    return _v1_list(await portals.list_portals(bank.pool, owner, pocket_id))


@post(
    "/api/v1/service-accounts/{account_id:str}/portals/",
    status_code=HTTP_201_CREATED,
    operation_id="create_account_portal",
    opt=refuses("not-found", "pocket-not-open"),
    tags=["portals"],
)
async def create_account_portal(
    caller: Caller, bank: Bank, account_id: str, data: NewPortal
) -> AccountPortal:
    """Open a portal of an account."""
    pocket = await caller.pocket(bank, ids_in.path_uuid("account_id", account_id))
    return render_account_portal(await _open(caller, bank, pocket, data.name, None))


@get(
    "/api/v1/service-accounts/{account_id:str}/portals/{portal_id:str}/",
    operation_id="get_account_portal",
    opt=refuses("not-found"),
    tags=["portals"],
)
async def get_account_portal(
    caller: Caller, bank: Bank, account_id: str, portal_id: str
) -> AccountPortal:
    """Read a portal of an account."""
    return render_account_portal(await _find(caller, bank, "account_id", account_id, portal_id))


@patch(
    "/api/v1/service-accounts/{account_id:str}/portals/{portal_id:str}/",
    operation_id="rename_account_portal",
    opt=refuses("not-found", "already-closed"),
    tags=["portals"],
)
async def rename_account_portal(
    caller: Caller, bank: Bank, account_id: str, portal_id: str, data: RenamePortal
) -> AccountPortal:
    """Give a portal of an account another name."""
    found = await _find(caller, bank, "account_id", account_id, portal_id)
    return render_account_portal(await _rename(caller, bank, found, data.name))


@post(
    "/api/v1/service-accounts/{account_id:str}/portals/{portal_id:str}/close/",
    status_code=HTTP_204_NO_CONTENT,
    operation_id="close_account_portal",
    opt=refuses("not-found", "already-closed"),
    tags=["portals"],
)
async def close_account_portal(caller: Caller, bank: Bank, account_id: str, portal_id: str) -> None:
    """Close a portal for ever. A second close is 412."""
    found = await _find(caller, bank, "account_id", account_id, portal_id)
    await bank.engine.submit(
        UpdatePortal(
            **caller.command_fields(found.customer_id), portal_id=found.portal_id, close=True
        )
    )


@get(
    "/api/v1/customers/{customer_id:str}/portals/",
    operation_id="list_customer_account_portals",
    opt=refuses("not-found"),
    tags=["portals"],
)
async def list_customer_account_portals(
    caller: Caller, bank: Bank, customer_id: str
) -> AccountPortals:
    """List the portals of all accounts of a customer."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return _v1_list(await portals.list_portals(bank.pool, owner, None))


@get(
    "/api/v2/pockets/{pocket_id:str}/portals/",
    dependencies=list_query(),
    operation_id="list_portals",
    opt=refuses("not-found"),
    tags=["portals"],
)
async def list_portals(
    caller: Caller, bank: Bank, pocket_id: str, wanted: ListQuery, types: Types = None
) -> CursorList[Portal]:
    """List the portals of a Pocket, newest first."""
    owner, own_id = await caller.pocket(bank, ids_in.path_uuid("pocket_id", pocket_id))
    return await _v2_list(bank, wanted, owner, own_id, types)


@get(
    "/api/v2/customers/{customer_id:str}/portals/",
    dependencies=list_query(),
    operation_id="list_customer_portals",
    opt=refuses("not-found"),
    tags=["portals"],
)
async def list_customer_portals(
    caller: Caller, bank: Bank, customer_id: str, wanted: ListQuery, types: Types = None
) -> CursorList[Portal]:
    """List the portals of a customer's Pockets, newest first."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return await _v2_list(bank, wanted, owner, None, types)


@post(
    "/api/v2/pockets/{pocket_id:str}/portals/",
    status_code=HTTP_201_CREATED,
    operation_id="create_portal",
    opt=refuses("not-found", "pocket-not-open", "rail-not-available"),
    tags=["portals"],
)
async def create_portal(caller: Caller, bank: Bank, pocket_id: str, data: CreatePortal) -> Portal:
    """Open a portal: a bank virtual account with its own network address."""
    if data.type == CRYPTO_TYPE:
        raise Refused("rail-not-available", "Crypto deposit addresses are not available here.")
    if data.chain is not None:
        raise InvalidInput.at("body", "chain", msg="is only taken with a crypto portal")
    pocket = await caller.pocket(bank, ids_in.path_uuid("pocket_id", pocket_id))
    return render_portal(await _open(caller, bank, pocket, data.name, data.payment_rails))


@get(
    "/api/v2/pockets/{pocket_id:str}/portals/{portal_id:str}/",
    operation_id="get_portal",
    opt=refuses("not-found"),
    tags=["portals"],
)
async def get_portal(caller: Caller, bank: Bank, pocket_id: str, portal_id: str) -> Portal:
    """Read a portal."""
    return render_portal(await _find(caller, bank, "pocket_id", pocket_id, portal_id))


@patch(
    "/api/v2/pockets/{pocket_id:str}/portals/{portal_id:str}/",
    operation_id="rename_portal",
    opt=refuses("not-found", "already-closed"),
    tags=["portals"],
)
async def rename_portal(
    caller: Caller, bank: Bank, pocket_id: str, portal_id: str, data: RenamePortal
) -> Portal:
    """Give a portal another name."""
    found = await _find(caller, bank, "pocket_id", pocket_id, portal_id)
    return render_portal(await _rename(caller, bank, found, data.name))


@get(
    "/api/v2/pockets/{pocket_id:str}/portals/{portal_id:str}/funding-instructions/",
    operation_id="get_funding_instructions",
    opt=refuses("not-found"),
    tags=["portals"],
)
async def get_funding_instructions(
    caller: Caller, bank: Bank, pocket_id: str, portal_id: str
) -> FundingInstructions:
    """Read how to pay into a portal by each of its rails."""
    found = await _find(caller, bank, "pocket_id", pocket_id, portal_id)
    customer = await find_customer(bank.pool, found.customer_id)
    return render_instructions(found, _beneficiary(customer), bank.settings)


def _beneficiary(customer: CustomerRow | None) -> Beneficiary:
    if customer is None:
        return Beneficiary("", None)
    address = address_of(customer)
    return Beneficiary(customer.name, one_line(address) if address else None)


async def _find(caller: Caller, bank: Bank, name: str, pocket_id: str, portal_id: str) -> PortalRow:
    owner, own_id = await caller.pocket(bank, ids_in.path_uuid(name, pocket_id))
    asked = ids_in.path_uuid("portal_id", portal_id)
    return await portals.get_portal(bank.pool, owner, asked, pocket_id=own_id)


async def _open(
    caller: Caller,
    bank: Bank,
    pocket: tuple[UUID, UUID],
    name: str,
    rails: list[Rail] | None,
) -> PortalRow:
    owner, pocket_id = pocket
    chosen = tuple(rail for rail in BANK_RAILS if rail in rails) if rails else None
    answer = await bank.engine.submit(
        OpenPortal(
            **caller.command_fields(owner), pocket_id=pocket_id, name=name, payment_rails=chosen
        )
    )
    return await portals.get_portal(bank.pool, owner, UUID(answer.outcome["portal_id"]))


async def _rename(caller: Caller, bank: Bank, found: PortalRow, name: str) -> PortalRow:
    await bank.engine.submit(
        UpdatePortal(
            **caller.command_fields(found.customer_id), portal_id=found.portal_id, name=name
        )
    )
    return await portals.get_portal(bank.pool, found.customer_id, found.portal_id)


def _v1_list(rows: list[PortalRow]) -> AccountPortals:
    return AccountPortals(count=len(rows), portals=[render_account_portal(row) for row in rows])


async def _v2_list(
    bank: Bank, wanted: ListQuery, owner: UUID, pocket_id: UUID | None, types: list[str] | None
) -> CursorList[Portal]:
    if types and not {BANK_TYPE, CRYPTO_TYPE}.issuperset(types):
        raise InvalidInput.at("query", "type[]", msg=f"must be among {BANK_TYPE}, {CRYPTO_TYPE}")
    scope, filters = f"portals:{owner}:{pocket_id}", {"types": types}
    position = wanted.position(bank.pager, scope, filters)
    place = position.place if position else None
    rows = await portals.list_portals(
        bank.pool,
        owner,
        pocket_id,
        types=types,
        after=(datetime.fromisoformat(str(place[0])), UUID(str(place[1]))) if place else None,
        backwards=position is not None and position.direction == "prev",
        limit=wanted.limit + 1,
    )
    page = bank.pager.page(
        scope,
        filters,
        rows,
        limit=wanted.limit,
        came_from=position,
        place_of=lambda row: (row.created_at.isoformat(), str(row.portal_id)),
    )
    return page_of(page, [render_portal(row) for row in page.items])


ROUTES = [
    list_account_portals,
    create_account_portal,
    get_account_portal,
    rename_account_portal,
    close_account_portal,
    list_customer_account_portals,
    list_portals,
    list_customer_portals,
    create_portal,
    get_portal,
    rename_portal,
    get_funding_instructions,
]
