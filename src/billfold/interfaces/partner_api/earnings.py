"""Earnings of one Pocket, and of all."""

from __future__ import annotations

from typing import Annotated

from litestar import get
from litestar.params import QueryParameter

from billfold.domain import pockets
from billfold.domain.pockets import PocketRow
from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.earned import (
    POCKETS_MAX,
    Bound,
    Period,
    bound,
    earned_by,
    too_many,
)
from billfold.interfaces.http.marks import refuses
from billfold.interfaces.http.shapes.earnings import (
    Earnings,
    EarningsList,
    render_all,
    render_earned,
)
from billfold.kit.dates import et_date


@get(
    "/api/v2/pockets/{pocket_id:str}/earnings/",
    operation_id="get_pocket_earnings",
    opt=refuses("not-found"),
    tags=["earnings"],
)
async def get_pocket_earnings(
    caller: Caller,
    bank: Bank,
    pocket_id: str,
    period: Period = "all-time",
    date_from: Bound = None,
    date_to: Bound = None,
) -> Earnings:
    """Read what one Pocket earned over a period."""
    owner, own_id = await caller.pocket(bank, ids_in.path_uuid("pocket_id", pocket_id))
    row = await pockets.get_pocket(bank.pool, owner, own_id)
    bounds = bound("date_from", date_from), bound("date_to", date_to)
    (earned,) = await earned_by(bank, [row], period, caller.now, bounds)
    return render_earned(earned, named=False)


@get(
    "/api/v2/earnings/",
    operation_id="list_earnings",
    opt=refuses("not-found", "too-many-pockets"),
    tags=["earnings"],
)
async def list_earnings(
    caller: Caller,
    bank: Bank,
    period: Period = "all-time",
    date_from: Bound = None,
    date_to: Bound = None,
    customer_id: Annotated[str | None, QueryParameter(name="customer_id")] = None,
    pocket_id: Annotated[list[str] | None, QueryParameter(name="pocket_id[]")] = None,
) -> EarningsList:
    """Read what up to 30 Pockets earned, and the exact sum. Default: all that are not closed."""
    rows = await _asked_for(caller, bank, customer_id, pocket_id)
    bounds = bound("date_from", date_from), bound("date_to", date_to)
    earned = await earned_by(bank, rows, period, caller.now, bounds)
    return render_all(earned, et_date(caller.now))


async def _asked_for(
    caller: Caller, bank: Bank, customer_id: str | None, pocket_id: list[str] | None
) -> list[PocketRow]:
    owner = None
    if customer_id is not None:
        asked = ids_in.query_uuid("customer_id", customer_id)
        owner = await caller.customer_id(bank, asked)
    if pocket_id is None:
        rows = await pockets.list_open(bank.pool, caller.partner_id, owner, limit=POCKETS_MAX + 1)
        if len(rows) > POCKETS_MAX:
            raise too_many()
        return rows
    ids = list(dict.fromkeys(ids_in.query_uuids("pocket_id[]", pocket_id)))
    if len(ids) > POCKETS_MAX:
        raise too_many()
    keys = [
        await caller.pocket(bank, each)
        if owner is None
        else (owner, await caller.pocket_of(bank, owner, each))
        for each in ids
    ]
    return await pockets.list_by_id(bank.pool, keys)


ROUTES = [get_pocket_earnings, list_earnings]
