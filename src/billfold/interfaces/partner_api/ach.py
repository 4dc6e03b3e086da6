"""ACH originations: payments to counterparties' bank accounts, and collections from them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from litestar import get, post
from litestar.params import QueryParameter
from litestar.status_codes import HTTP_200_OK

from billfold.domain import ach, ledger
from billfold.engine.bank import Bank
from billfold.flows.ach_commands import OriginateAch
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.lists import ListQuery, list_query, page_of
from billfold.interfaces.http.marks import MOVES_MONEY, refuses
from billfold.interfaces.http.shapes.ach import AchOrigination, CreateAch, render_origination
from billfold.interfaces.http.shapes.pages import CursorList
from billfold.kit.errors import InvalidInput, NotFound, Refused

CCD = "ccd"
"""The feature with which a partner may originate CCD entries."""
STATUSES = frozenset(
    {"PENDING", "APPROVED", "IN_TRANSIT", "PROCESSED", "REJECTED", "FAILED", "CANCELLED"}
)
Statuses = Annotated[list[str] | None, QueryParameter(name="filter[status]")]
Direction = Annotated[str | None, QueryParameter(name="direction", description="CREDIT or DEBIT.")]


@post(
    "/api/v1/service-accounts/{account_id:str}/ach-originating/",
    status_code=HTTP_200_OK,
    operation_id="create_ach_origination",
    opt=MOVES_MONEY
    | refuses(
        "not-found",
        "sec-code-not-enabled",
        "pocket-not-open",
        "pocket-frozen",
        "counterparty-type-mismatch",
        "counterparty-not-verified",
        "insufficient-funds",
    ),
    tags=["ach"],
)
async def create_ach_origination(
    caller: Caller, bank: Bank, account_id: str, data: CreateAch
) -> AchOrigination:
    """Originate an ACH entry. What pays for a CREDIT is sold at once; it leaves in its window."""
    owner, pocket_id = await caller.pocket(bank, ids_in.path_uuid("account_id", account_id))
    description = data.description
    if data.sec_code == "CCD" and CCD not in caller.features:
        raise Refused("sec-code-not-enabled", "CCD entries are not switched on for this account.")
    ach_id = caller.made_id(bank.seed)
    await bank.engine.submit(
        OriginateAch(
            **caller.command_fields(owner),
            references=(data.counterparty_id,),
            ach_id=ach_id,
            pocket_id=pocket_id,
            counterparty_id=data.counterparty_id,
            direction=ledger.Direction(data.direction),
            sec_code=data.sec_code,
            description=description,
            lines=tuple(data.payment_related_information),
            amount=data.amount_usdc,
            history=await ach.read_history(bank.pool, owner, caller.now),
            request=msgspec.json.encode(data).decode(),
        )
    )
    return render_origination(await ach.get_origination(bank.pool, owner, ach_id))


@get(
    "/api/v1/service-accounts/{account_id:str}/ach-originating/",
    dependencies=list_query(),
    operation_id="list_account_ach_originations",
    opt=refuses("not-found"),
    tags=["ach"],
)
async def list_account_ach_originations(
    caller: Caller,
    bank: Bank,
    account_id: str,
    wanted: ListQuery,
    statuses: Statuses = None,
    direction: Direction = None,
) -> CursorList[AchOrigination]:
    """List the ACH originations of an account, newest first."""
    owner, pocket_id = await caller.pocket(bank, ids_in.path_uuid("account_id", account_id))
    return await _page(bank, owner, pocket_id, wanted, statuses, direction)


@get(
    "/api/v1/service-accounts/{account_id:str}/ach-originating/{transfer_id:str}/",
    operation_id="get_ach_origination",
    opt=refuses("not-found"),
    tags=["ach"],
)
async def get_ach_origination(
    caller: Caller, bank: Bank, account_id: str, transfer_id: str
) -> AchOrigination:
    """Read an ACH origination and what became of it."""
    owner, pocket_id = await caller.pocket(bank, ids_in.path_uuid("account_id", account_id))
    asked = ids_in.path_uuid("transfer_id", transfer_id)
    entry = await ach.get_origination(bank.pool, owner, asked)
    if entry.pocket_id != pocket_id:
        raise NotFound("There is no such ACH origination.")
    return render_origination(entry)


@get(
    "/api/v1/customers/{customer_id:str}/ach-originating/",
    dependencies=list_query(),
    operation_id="list_customer_ach_originations",
    opt=refuses("not-found"),
    tags=["ach"],
)
async def list_customer_ach_originations(
    caller: Caller,
    bank: Bank,
    customer_id: str,
    wanted: ListQuery,
    statuses: Statuses = None,
    direction: Direction = None,
) -> CursorList[AchOrigination]:
    """List the ACH originations of all accounts of a customer, newest first."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return await _page(bank, owner, None, wanted, statuses, direction)


async def _page(
    bank: Bank,
    owner: UUID,
    pocket_id: UUID | None,
    wanted: ListQuery,
    statuses: list[str] | None,
    direction: str | None,
) -> CursorList[AchOrigination]:
    if not STATUSES.issuperset(statuses or ()):
        known = ", ".join(sorted(STATUSES))
        raise InvalidInput.at("query", "filter[status]", msg=f"must be among {known}")
    if direction not in {None, ledger.Direction.CREDIT, ledger.Direction.DEBIT}:
        raise InvalidInput.at("query", "direction", msg="must be CREDIT or DEBIT")
    scope = f"ach:{owner}:{pocket_id}"
    filters = {"statuses": sorted(statuses or ()), "direction": direction}
    position = wanted.position(bank.pager, scope, filters)
    place = position.place if position else None
    rows = await ach.list_originations(
        bank.pool,
        owner,
        pocket_id=pocket_id,
        statuses=statuses or None,
        direction=direction,
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
        place_of=lambda row: (row.created_at.isoformat(), str(row.ach_id)),
    )
    return page_of(page, [render_origination(row) for row in page.items])


ROUTES = [
    create_ach_origination,
    list_account_ach_originations,
    get_ach_origination,
    list_customer_ach_originations,
]
