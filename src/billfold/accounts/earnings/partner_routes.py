"""Earnings of one Pocket, and of all."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from billfold.accounts.earnings.periods import POCKETS_MAX, EarningsQuery, pocket_earnings, too_many_pockets
from billfold.accounts.earnings.schemas import Earnings, EarningsList, render_all, render_earned
from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.types import PocketRow
from billfold.http.caller import Caller
from billfold.http.operations import get
from billfold.http.parameters import Query
from billfold.ledger.bank import Bank
from billfold.platform.dates import et_date


@get("/api/v2/pockets/{pocket_id}/earnings/")
async def get_pocket_earnings(caller: Caller, bank: Bank, pocket_id: UUID, asked: EarningsQuery) -> Earnings:
    """Read what one Pocket earned over a period."""
    owner, own_id = await caller.pocket(bank, pocket_id)
    row = await pocket_store.get_pocket(bank.pool, owner, own_id)
    (earned,) = await pocket_earnings(bank, [row], asked, caller.now)
    return render_earned(earned, with_pocket_id=False)


@get("/api/v2/earnings/", refuses=("not-found", "too-many-pockets"))
async def list_earnings(
    caller: Caller,
    bank: Bank,
    asked: EarningsQuery,
    customer_id: UUID | None = None,
    pocket_id: Annotated[list[UUID] | None, Query(name="pocket_id[]")] = None,
) -> EarningsList:
    """Read what up to 30 Pockets earned, and the exact sum. Default: all that are not closed."""
    rows = await _find_pockets(caller, bank, customer_id, pocket_id)
    earned = await pocket_earnings(bank, rows, asked, caller.now)
    return render_all(earned, et_date(caller.now))


async def _find_pockets(
    caller: Caller, bank: Bank, customer_id: UUID | None, pocket_id: list[UUID] | None
) -> list[PocketRow]:
    owner = None
    if customer_id is not None:
        owner = await caller.customer_id(bank, customer_id)
    if pocket_id is None:
        rows = await pocket_store.list_open(bank.pool, caller.partner_id, owner, limit=POCKETS_MAX + 1)
        if len(rows) > POCKETS_MAX:
            raise too_many_pockets()
        return rows
    ids = list(dict.fromkeys(pocket_id))
    if len(ids) > POCKETS_MAX:
        raise too_many_pockets()
    keys = [
        await caller.pocket(bank, each) if owner is None else (owner, await caller.pocket_of(bank, owner, each))
        for each in ids
    ]
    return await pocket_store.list_by_id(bank.pool, keys)
