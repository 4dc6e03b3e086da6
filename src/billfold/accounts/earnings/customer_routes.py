"""Earnings of one Pocket, and of all."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from billfold.accounts.earnings.periods import POCKETS_MAX, EarningsQuery, pocket_earnings, too_many_pockets
from billfold.accounts.earnings.schemas import Earnings, EarningsList, render_all, render_earned
from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.types import PocketRow
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import EARNINGS
from billfold.http.operations import get, with_scope
from billfold.http.parameters import Query
from billfold.ledger.bank import Bank
from billfold.platform.dates import et_date

READS = with_scope("pockets.read", EARNINGS)


@get("/api/v2/pockets/{pocket_id}/earnings/", READS)
async def get_pocket_earnings(member: CustomerCaller, bank: Bank, pocket_id: UUID, asked: EarningsQuery) -> Earnings:
    """Read what one Pocket earned over a period."""
    own_id = await member.own_pocket(bank, pocket_id)
    row = await pocket_store.get_pocket(bank.pool, member.customer_id, own_id)
    (earned,) = await pocket_earnings(bank, [row], asked, member.now)
    return render_earned(earned, with_pocket_id=False)


@get("/api/v2/earnings/", READS, refuses=("not-found", "too-many-pockets"))
async def list_earnings(
    *,
    member: CustomerCaller,
    bank: Bank,
    asked: EarningsQuery,
    pocket_id: Annotated[list[UUID] | None, Query(name="pocket_id[]")] = None,
) -> EarningsList:
    """Read what up to 30 Pockets earned, and the exact sum. Default: all that are not closed."""
    rows = await _find_pockets(member, bank, pocket_id)
    earned = await pocket_earnings(bank, rows, asked, member.now)
    return render_all(earned, et_date(member.now))


async def _find_pockets(member: CustomerCaller, bank: Bank, pocket_id: list[UUID] | None) -> list[PocketRow]:
    owner = member.customer_id
    if pocket_id is None:
        rows = await pocket_store.list_open(bank.pool, member.partner_id, owner, limit=POCKETS_MAX + 1)
        if len(rows) > POCKETS_MAX:
            raise too_many_pockets()
        return rows
    ids = list(dict.fromkeys(pocket_id))
    if len(ids) > POCKETS_MAX:
        raise too_many_pockets()
    own = await member.pockets(bank, ids)
    return await pocket_store.list_by_id(bank.pool, [(owner, each) for each in own])
