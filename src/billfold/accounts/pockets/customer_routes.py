"""Pockets, v2."""

from __future__ import annotations

from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.commands import OpenPocket
from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.requests import (
    ChangePocket,
    OmitQuery,
    PocketName,
    Statuses,
    resolve_strategies,
    update_pocket_command,
)
from billfold.accounts.pockets.schemas import Pocket, render_pocket
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import POCKETS
from billfold.http.list_params import Limit, Offset
from billfold.http.operations import get, patch, post, with_scope
from billfold.http.schemas.pages import OffsetList
from billfold.ledger.bank import Bank
from billfold.platform.paging import LIMIT_DEFAULT, parse_limit

READS, WRITES = with_scope("pockets.read", POCKETS), with_scope("pockets.write", POCKETS)


class NewPocket(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A new Pocket. `trading_strategy_id` sets both strategies."""

    pocket_name: PocketName
    deposit_strategy_id: str | None = None
    reinvestment_strategy_id: str | UnsetType | None = UNSET
    trading_strategy_id: str | None = None


@get("/api/v2/pockets/", READS)
async def list_pockets(
    *,
    member: CustomerCaller,
    bank: Bank,
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
    asked: OmitQuery,
    status: Statuses = None,
) -> OffsetList[Pocket]:
    """List the Pockets, newest first; `count` is of all of them."""
    omitted_parts, rows_max = asked.parse_omit, parse_limit(limit)
    count, rows = await pocket_store.list_page_by_offset(
        bank.pool, member.customer_id, statuses=status, offset=offset, limit=rows_max
    )
    items = [render_pocket(row, bank, member.now, omit=omitted_parts) for row in rows]
    return OffsetList(offset=offset, count=count, items=items)


@post("/api/v2/pockets/", WRITES, refuses=("customer-not-open",))
async def create_pocket(member: CustomerCaller, bank: Bank, data: NewPocket) -> Pocket:
    """Open a Pocket with its first portal. What arrives there becomes T-bills at once."""
    deposit, reinvestment = resolve_strategies(
        data.deposit_strategy_id, data.reinvestment_strategy_id, trading_strategy_id=data.trading_strategy_id
    )
    answer = await bank.engine.submit(
        OpenPocket(
            **member.command_fields(member.customer_id),
            partner_id=member.partner_id,
            name=data.pocket_name,
            deposit_weeks=deposit,
            reinvestment_weeks=reinvestment,
        )
    )
    return await _read_pocket(member, bank, UUID(answer.outcome["pocket_id"]))


@get("/api/v2/pockets/{pocket_id}/", READS)
async def get_pocket(member: CustomerCaller, bank: Bank, pocket_id: UUID, asked: OmitQuery) -> Pocket:
    """Read one Pocket with its portfolio."""
    own_id = await member.own_pocket(bank, pocket_id)
    return await _read_pocket(member, bank, own_id, asked.parse_omit)


@patch(
    "/api/v2/pockets/{pocket_id}/",
    WRITES,
    refuses=("pocket-not-open", "pocket-not-empty", "last-open-pocket", "pocket-strategy-locked"),
)
async def update_pocket(member: CustomerCaller, bank: Bank, pocket_id: UUID, data: ChangePocket) -> Pocket:
    """Rename a Pocket, change its strategies, or close it when it is empty and not the last."""
    own_id = await member.own_pocket(bank, pocket_id)
    await bank.engine.submit(update_pocket_command(member, member.customer_id, own_id, data))
    row = await pocket_store.get_pocket(bank.pool, member.customer_id, own_id)
    return render_pocket(row, bank, member.now, with_customer_id=False)


async def _read_pocket(
    member: CustomerCaller, bank: Bank, pocket_id: UUID, omit: frozenset[str] = frozenset()
) -> Pocket:
    row = await pocket_store.get_pocket(bank.pool, member.customer_id, pocket_id)
    return render_pocket(row, bank, member.now, omit=omit)
