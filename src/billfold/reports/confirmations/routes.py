"""Trade confirmations: a redirect to the PDF for clients of a customer, its URL for partners."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from billfold.http.caller import (Call)
from billfold.oauth.caller import (CustomerCaller)
from billfold.identity.partners.caller import (Caller)
from billfold.http.operations import get, with_scope
from billfold.http.responses import HttpResponse, redirect
from billfold.ledger.bank import Bank
from billfold.platform.errors import NotFound
from billfold.reports.confirmations import store
from billfold.reports.confirmations.confirming import get_confirmation
from billfold.reports.confirmations.rules import capacity_at
from billfold.reports.confirmations.types import Capacity
from billfold.reports.downloads.urls import temporary_url

READS = with_scope("pockets.read", "trades")


class TradeConfirmation(msgspec.Struct, kw_only=True):
    """Where the PDF is for ten minutes, and in which capacity the bank made the trade."""

    url: str
    capacity: Capacity
    object_type: Literal["TradeConfirmation"] = "TradeConfirmation"


@get("/api/v1/accounts/{account_id}/trades/{trade_id}/confirmation/", READS, status=307, refuses=("not-found",))
async def redirect_to_confirmation(
    member: CustomerCaller, bank: Bank, account_id: UUID, trade_id: UUID
) -> HttpResponse:
    """Download a trade confirmation.

    Leads to a PDF by a URL that is valid for 10 minutes. Maturities have no confirmation.
    """
    return redirect((await _confirm(member, bank, account_id, trade_id=trade_id)).url, status=307)


@get("/api/v1/service-accounts/{account_id}/trades/{trade_id}/confirmation/", refuses=("not-found",))
async def get_trade_confirmation(caller: Caller, bank: Bank, account_id: UUID, trade_id: UUID) -> TradeConfirmation:
    """Get a trade confirmation.

    The URL of a PDF, valid for 10 minutes, and `capacity`: `AGENT`, or `PRINCIPAL` outside market hours, when the bank
    trades for its own account. Maturities have no confirmation.
    """
    return await _confirm(caller, bank, account_id, trade_id=trade_id)


async def _confirm(caller: Call, bank: Bank, account_id: UUID, *, trade_id: UUID) -> TradeConfirmation:
    owner, pocket_id = await caller.pocket(bank, account_id)
    trade = await store.find_trade(bank.pool, owner, pocket_id, trade_id)
    if trade is None:
        raise NotFound("There is no confirmation of such a trade.")
    capacity = capacity_at(trade.traded_at, bank.calendars)
    file = await get_confirmation(bank, trade, capacity)
    return TradeConfirmation(url=temporary_url(bank.vault, caller.host, file, caller.wall).url, capacity=capacity)
