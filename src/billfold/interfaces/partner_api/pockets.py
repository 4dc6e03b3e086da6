"""Pockets, v2."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import get, patch, post
from litestar.params import QueryParameter
from litestar.status_codes import HTTP_201_CREATED
from msgspec import UNSET, UnsetType

from billfold.domain import pockets
from billfold.engine.bank import Bank
from billfold.flows.account_commands import OpenPocket
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.lists import ListQuery, list_query, page_of
from billfold.interfaces.http.marks import refuses
from billfold.interfaces.http.pocket_forms import (
    ChangePocket,
    OmitBare,
    OmitList,
    PocketName,
    change_of,
    check_statuses,
    omitted,
    strategies_of,
)
from billfold.interfaces.http.shapes.pages import CursorList
from billfold.interfaces.http.shapes.pocket import Pocket, render_pocket
from billfold.kit.errors import InvalidInput


class CreatePocket(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A new Pocket. One of the strategy fields is needed; the first two set both strategies."""

    pocket_name: PocketName
    pocket_configuration_id: str | None = None
    trading_strategy_id: str | None = None
    deposit_strategy_id: str | None = None
    reinvestment_strategy_id: str | UnsetType | None = UNSET


@post(
    "/api/v2/customers/{customer_id:str}/pockets/",
    status_code=HTTP_201_CREATED,
    opt=refuses("not-found", "customer-not-open"),
    operation_id="create_pocket",
    tags=["pockets"],
)
async def create_pocket(caller: Caller, bank: Bank, customer_id: str, data: CreatePocket) -> Pocket:
    """Open a Pocket with its first portal. What arrives there becomes T-bills at once."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    deposit, reinvestment = strategies_of(
        data.deposit_strategy_id,
        data.reinvestment_strategy_id,
        pocket_configuration_id=data.pocket_configuration_id,
        trading_strategy_id=data.trading_strategy_id,
    )
    answer = await bank.engine.submit(
        OpenPocket(
            **caller.command_fields(owner),
            partner_id=caller.partner_id,
            name=data.pocket_name,
            deposit_weeks=deposit,
            reinvestment_weeks=reinvestment,
        )
    )
    row = await pockets.get_pocket(bank.pool, owner, UUID(answer.outcome["pocket_id"]))
    return render_pocket(row, bank, caller.now)


@get(
    "/api/v2/customers/{customer_id:str}/pockets/",
    dependencies=list_query(),
    operation_id="list_customer_pockets",
    opt=refuses("not-found"),
    tags=["pockets"],
)
async def list_customer_pockets(
    caller: Caller,
    bank: Bank,
    customer_id: str,
    wanted: ListQuery,
    omit: OmitBare = None,
    omit_list: OmitList = None,
    status: Annotated[list[str] | None, QueryParameter(name="filter[status]")] = None,
) -> CursorList[Pocket]:
    """List the Pockets of one customer, newest first."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return await _list(caller, bank, wanted, [owner], status, omitted(omit, omit_list))


@get(
    "/api/v2/pockets/",
    dependencies=list_query(),
    operation_id="list_pockets",
    tags=["pockets"],
)
async def list_pockets(
    caller: Caller,
    bank: Bank,
    wanted: ListQuery,
    omit: OmitBare = None,
    omit_list: OmitList = None,
    status: Annotated[list[str] | None, QueryParameter(name="filter[status]")] = None,
    customer_id: Annotated[list[str] | None, QueryParameter(name="customer_id[]")] = None,
    valuation_type: Annotated[
        str | None, QueryParameter(name="valuation_type", description="MARK or REAL_TIME.")
    ] = None,
) -> CursorList[Pocket]:
    """List the Pockets of many customers, newest first."""
    if valuation_type not in {None, "MARK", "REAL_TIME"}:
        raise InvalidInput.at("query", "valuation_type", msg="must be MARK or REAL_TIME")
    owners = None
    if customer_id is not None:
        asked = dict.fromkeys(ids_in.query_uuids("customer_id[]", customer_id))
        owners = [await caller.customer_id(bank, each) for each in asked]
    return await _list(caller, bank, wanted, owners, status, omitted(omit, omit_list))


@get(
    "/api/v2/customers/{customer_id:str}/pockets/{pocket_id:str}/",
    operation_id="get_customer_pocket",
    opt=refuses("not-found"),
    tags=["pockets"],
)
async def get_customer_pocket(
    caller: Caller,
    bank: Bank,
    customer_id: str,
    pocket_id: str,
    omit: OmitBare = None,
    omit_list: OmitList = None,
) -> Pocket:
    """Read one Pocket of a customer with its portfolio."""
    owner, own_id = await _customers_pocket(caller, bank, customer_id, pocket_id)
    row = await pockets.get_pocket(bank.pool, owner, own_id)
    return render_pocket(row, bank, caller.now, omit=omitted(omit, omit_list))


@get(
    "/api/v2/pockets/{pocket_id:str}/",
    operation_id="get_pocket",
    opt=refuses("not-found"),
    tags=["pockets"],
)
async def get_pocket(
    caller: Caller,
    bank: Bank,
    pocket_id: str,
    omit: OmitBare = None,
    omit_list: OmitList = None,
) -> Pocket:
    """Read one Pocket with its portfolio."""
    owner, own_id = await caller.pocket(bank, ids_in.path_uuid("pocket_id", pocket_id))
    row = await pockets.get_pocket(bank.pool, owner, own_id)
    return render_pocket(row, bank, caller.now, omit=omitted(omit, omit_list))


@patch(
    "/api/v2/customers/{customer_id:str}/pockets/{pocket_id:str}/",
    operation_id="update_pocket",
    opt=refuses(
        "not-found",
        "pocket-not-open",
        "pocket-not-empty",
        "last-open-pocket",
        "pocket-strategy-locked",
    ),
    tags=["pockets"],
)
async def update_pocket(
    caller: Caller, bank: Bank, customer_id: str, pocket_id: str, data: ChangePocket
) -> Pocket:
    """Rename a Pocket, change its strategies, or close it when it is empty."""
    owner, own_id = await _customers_pocket(caller, bank, customer_id, pocket_id)
    await bank.engine.submit(change_of(caller, owner, own_id, data))
    row = await pockets.get_pocket(bank.pool, owner, own_id)
    return render_pocket(row, bank, caller.now, named=False)


async def _customers_pocket(
    caller: Caller, bank: Bank, customer_id: str, pocket_id: str
) -> tuple[UUID, UUID]:
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    own_id = ids_in.path_uuid("pocket_id", pocket_id)
    return owner, await caller.pocket_of(bank, owner, own_id)


async def _list(
    caller: Caller,
    bank: Bank,
    wanted: ListQuery,
    owners: list[UUID] | None,
    statuses: list[str] | None,
    omit: frozenset[str],
) -> CursorList[Pocket]:
    check_statuses(statuses)
    scope = f"pockets:{caller.partner_id}"
    filters = {"owners": owners, "status": statuses}
    position = wanted.position(bank.pager, scope, filters)
    part: dict[str, Any] = {
        "statuses": statuses,
        "after": _after(position.place) if position else None,
        "backwards": position is not None and position.direction == "prev",
        "limit": wanted.limit + 1,
    }
    rows = (
        await pockets.list_of_partner(bank.pool, caller.partner_id, **part)
        if owners is None
        else await pockets.list_of_customers(bank.pool, owners, **part)
    )
    page = bank.pager.page(
        scope,
        filters,
        rows,
        limit=wanted.limit,
        came_from=position,
        place_of=lambda row: (row.opened_at.isoformat(), str(row.pocket_id)),
    )
    return page_of(page, [render_pocket(row, bank, caller.now, omit=omit) for row in page.items])


def _after(place: tuple[str | int, ...]) -> tuple[datetime, UUID]:
    return datetime.fromisoformat(str(place[0])), UUID(str(place[1]))


ROUTES = [
    create_pocket,
    list_customer_pockets,
    list_pockets,
    get_customer_pocket,
    get_pocket,
    update_pocket,
]
