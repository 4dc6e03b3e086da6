"""Pockets, v2."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from litestar import get, patch, post
from litestar.params import QueryParameter
from litestar.status_codes import HTTP_201_CREATED
from msgspec import UNSET, UnsetType

from billfold.domain import pockets, tbills
from billfold.engine.bank import Bank
from billfold.flows.pockets import OpenPocket, UpdatePocket
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.lists import ListQuery, list_query, page_of
from billfold.interfaces.http.marks import refuses
from billfold.interfaces.http.shapes.pages import CursorList
from billfold.interfaces.http.shapes.pocket import Pocket, render_pocket
from billfold.interfaces.http.shapes.texts import NOT_BLANK
from billfold.kit.errors import FieldError, InvalidInput, NotFound

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=NOT_BLANK)]
ClosureReason = Literal[
    "USER_INSTIGATED", "PARTNER_INITIATED_CLOSURE", "SUSPICIOUS_ACTIVITY", "INACTIVITY"
]
OMITTABLE = frozenset({"ALL_TIME_EARNINGS", "PORTFOLIO"})
STATUSES = frozenset({"PENDING", "OPEN", "FROZEN", "CLOSED"})

OmitBare = Annotated[
    list[str] | None, QueryParameter(name="omit", description="Parts to leave out.")
]
OmitList = Annotated[
    list[str] | None, QueryParameter(name="omit[]", description="Parts to leave out.")
]


class CreatePocket(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A new Pocket. One of the strategy fields is needed; the first two set both strategies."""

    pocket_name: Name
    pocket_configuration_id: str | None = None
    trading_strategy_id: str | None = None
    deposit_strategy_id: str | None = None
    reinvestment_strategy_id: str | UnsetType | None = UNSET


class ChangePocket(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What to change. Closing needs `status` CLOSED and a `closure_reason`."""

    pocket_name: Name | None = None
    name: Name | None = None
    status: Literal["CLOSED"] | None = None
    closure_reason: ClosureReason | None = None
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
    deposit, reinvestment = _strategies(data)
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
    return await _list(caller, bank, wanted, [owner], status, _omit(omit, omit_list))


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
    return await _list(caller, bank, wanted, owners, status, _omit(omit, omit_list))


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
    return render_pocket(row, bank, caller.now, omit=_omit(omit, omit_list))


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
    return render_pocket(row, bank, caller.now, omit=_omit(omit, omit_list))


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
    await bank.engine.submit(_change(caller, owner, own_id, data))
    row = await pockets.get_pocket(bank.pool, owner, own_id)
    return render_pocket(row, bank, caller.now, named=False)


def _change(caller: Caller, owner: UUID, pocket_id: UUID, data: ChangePocket) -> UpdatePocket:
    if data.status and data.closure_reason is None:
        raise InvalidInput.at("body", "closure_reason", msg="is needed to close", kind="missing")
    if data.closure_reason and data.status is None:
        raise InvalidInput.at("body", "closure_reason", msg="is only taken with status CLOSED")
    if data == ChangePocket():
        raise InvalidInput.at("body", msg="names nothing to change")
    if data.pocket_name and data.name and data.pocket_name != data.name:
        raise InvalidInput.at("body", "name", msg="contradicts pocket_name")
    keeps = data.reinvestment_strategy_id is UNSET
    reinvestment = None if keeps else data.reinvestment_strategy_id
    deposit = data.deposit_strategy_id
    return UpdatePocket(
        **caller.command_fields(owner),
        pocket_id=pocket_id,
        name=data.pocket_name or data.name,
        deposit_weeks=_weeks("deposit_strategy_id", deposit) if deposit else None,
        reinvestment_weeks=_weeks("reinvestment_strategy_id", reinvestment)
        if isinstance(reinvestment, str)
        else None,
        keep_reinvestment=keeps,
        close_for=data.closure_reason if data.status else None,
    )


def _strategies(data: CreatePocket) -> tuple[int, int | None]:
    """Weeks of the deposit and of the reinvestment strategy, None for none."""
    both = {
        name: value
        for name in ("pocket_configuration_id", "trading_strategy_id")
        if (value := getattr(data, name)) is not None
    }
    deposit = data.deposit_strategy_id
    if not both and deposit is None:
        raise InvalidInput.at(
            "body", "deposit_strategy_id", msg="a strategy is needed", kind="missing"
        )
    chosen = {*both.values()} | ({deposit} if deposit is not None else set())
    reinvested = data.reinvestment_strategy_id
    if len(chosen) > 1 or (both and reinvested is not UNSET and reinvested not in chosen):
        name = next(iter(both))
        raise InvalidInput.at("body", name, msg="contradicts the other strategy fields")
    (strategy,) = chosen
    name = "deposit_strategy_id" if deposit is not None else next(iter(both))
    weeks = _weeks(name, strategy)
    if reinvested is UNSET:
        return weeks, weeks
    if reinvested is None:
        return weeks, None
    return weeks, _weeks("reinvestment_strategy_id", str(reinvested))


def _weeks(name: str, strategy_id: str) -> int:
    try:
        return tbills.get_strategy(strategy_id).maturity_weeks
    except NotFound:
        known = ", ".join(strategy.id for strategy in tbills.STRATEGIES)
        raise InvalidInput.at("body", name, msg=f"must be one of {known}") from None


def _omit(*given: list[str] | None) -> frozenset[str]:
    """The parts to leave out, from both spellings."""
    asked = frozenset(part for each in given if each for part in each)
    unknown = asked - OMITTABLE
    if unknown:
        names = ", ".join(sorted(OMITTABLE))
        raise InvalidInput(
            FieldError(("query", "omit[]"), f"{part} is not one of {names}", "enum")
            for part in sorted(unknown)
        )
    return asked


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
    if statuses and not STATUSES.issuperset(statuses):
        names = ", ".join(sorted(STATUSES))
        raise InvalidInput.at("query", "filter[status]", msg=f"must be among {names}")
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
