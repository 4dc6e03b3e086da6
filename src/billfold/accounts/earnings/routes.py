"""Earnings of one Pocket, and of all."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from billfold.accounts.earnings.periods import POCKETS_MAX, EarningsQuery, pocket_earnings, too_many_pockets
from billfold.accounts.earnings.schemas import Earnings, EarningsList, render_all, render_earned
from billfold.accounts.pockets import store as pocket_store
from billfold.http.caller import Call, Caller
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import EARNINGS
from billfold.http.operations import SIGNED, get, with_scope
from billfold.http.parameters import Query
from billfold.ledger.bank import Bank
from billfold.platform.dates import et_date

READS = with_scope("pockets.read", EARNINGS)
Pockets = Annotated[list[UUID] | None, Query(name="pocket_id[]")]
_REFUSES = ("not-found", "too-many-pockets")


@get("/api/v2/pockets/{pocket_id}/earnings/", SIGNED, READS)
async def get_pocket_earnings(caller: Call, bank: Bank, pocket_id: UUID, asked: EarningsQuery) -> Earnings:
    """Read what one Pocket earned over a period."""
    owner, own_id = await caller.pocket(bank, pocket_id)
    row = await pocket_store.get_pocket(bank.pool, owner, own_id)
    (earned,) = await pocket_earnings(bank, [row], asked, caller.now)
    return render_earned(earned, with_pocket_id=False)


@get("/api/v2/earnings/", refuses=_REFUSES)
async def list_earnings(
    caller: Caller, bank: Bank, asked: EarningsQuery, customer_id: UUID | None = None, pocket_id: Pockets = None
) -> EarningsList:
    """Read what up to 30 Pockets earned, and the exact sum. Default: all that are not closed."""
    owner = None if customer_id is None else await caller.customer_id(bank, customer_id)
    return await _list(caller, bank, asked, owner, pocket_id)


@get("/api/v2/earnings/", READS, name="list_earnings", refuses=_REFUSES)
async def list_own_earnings(
    *, member: CustomerCaller, bank: Bank, asked: EarningsQuery, pocket_id: Pockets = None
) -> EarningsList:
    """Read what up to 30 Pockets earned, and the exact sum. Default: all that are not closed."""
    return await _list(member, bank, asked, member.customer_id, pocket_id)


async def _list(
    caller: Call, bank: Bank, asked: EarningsQuery, owner: UUID | None, pocket_ids: list[UUID] | None
) -> EarningsList:
    if pocket_ids is None:
        rows = await pocket_store.list_open(bank.pool, caller.partner_id, owner, limit=POCKETS_MAX + 1)
        if len(rows) > POCKETS_MAX:
            raise too_many_pockets()
    else:
        ids = list(dict.fromkeys(pocket_ids))
        if len(ids) > POCKETS_MAX:
            raise too_many_pockets()
        rows = await pocket_store.list_by_id(bank.pool, [await caller.pocket(bank, each, owner) for each in ids])
    earned = await pocket_earnings(bank, rows, asked, caller.now)
    return render_all(earned, et_date(caller.now))
