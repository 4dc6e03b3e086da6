"""Trade confirmations: a redirect to the PDF for clients of a customer, its URL for partners."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from billfold.http.caller import Call, Caller, CustomerCaller
from billfold.http.operations import get, with_scope
from billfold.http.responses import HttpResponse, redirect
from billfold.ledger.bank import Bank
from billfold.platform.errors import NotFound
from billfold.reports.confirmations import store
from billfold.reports.confirmations.confirming import get_confirmation
from billfold.reports.downloads.urls import temporary_url

READS = with_scope("pockets.read", "trades")


class TradeConfirmation(msgspec.Struct, kw_only=True):
    """Where the PDF is for ten minutes."""

    url: str
    object_type: Literal["TradeConfirmation"] = "TradeConfirmation"


@get("/api/v1/accounts/{account_id}/trades/{trade_id}/confirmation/", READS, status=307, refuses=("not-found",))
async def redirect_to_confirmation(
    member: CustomerCaller, bank: Bank, account_id: UUID, trade_id: UUID
) -> HttpResponse:
    """Download a trade confirmation.

    Leads to a PDF by a URL that is valid for 10 minutes. Maturities have no confirmation.
    """
    return redirect(await _url(member, bank, account_id, trade_id=trade_id), status=307)


@get("/api/v1/service-accounts/{account_id}/trades/{trade_id}/confirmation/", refuses=("not-found",))
async def get_trade_confirmation(caller: Caller, bank: Bank, account_id: UUID, trade_id: UUID) -> TradeConfirmation:
    """Get a trade confirmation.

    The URL of a PDF, valid for 10 minutes. Maturities have no confirmation.
    """
    return TradeConfirmation(url=await _url(caller, bank, account_id, trade_id=trade_id))


async def _url(caller: Call, bank: Bank, account_id: UUID, *, trade_id: UUID) -> str:
    owner, pocket_id = await caller.pocket(bank, account_id)
    trade = await store.find_trade(bank.pool, owner, pocket_id, trade_id)
    if trade is None:
        raise NotFound("There is no confirmation of such a trade.")
    return temporary_url(bank.vault, caller.host, await get_confirmation(bank, trade), caller.wall).url
