"""What a customer has in all Pockets together."""

from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Literal

import msgspec

from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.routes import READS
from billfold.accounts.pockets.schemas import accrued_cents, valuation
from billfold.http.caller import Call
from billfold.http.operations import MaybeInPath, get
from billfold.http.schemas import Amount, format_appreciation, usd
from billfold.ledger.bank import Bank

_FACE_CENTS = 100_00


class MaturingBills(msgspec.Struct, kw_only=True):
    """The face value of what matures on a date."""

    maturity_date: date
    face_value: Amount


class TotalPortfolio(msgspec.Struct, kw_only=True):
    """The sums over all Pockets that are not closed, and what matures when, the next first.

    `appreciation_per_second` is that of Pockets with real-time yield.
    """

    pockets: int
    total_value: Amount
    cash: Amount
    liquidation_value_t0: Amount
    liquidation_value_t1: Amount
    fees: Amount
    owed: Amount
    appreciation_per_second: str
    maturities: list[MaturingBills]
    object_type: Literal["TotalPortfolio"] = "TotalPortfolio"


@get("/api/v2/customers/{customer_id}/portfolio/", tag="pockets")
@get("/api/v2/portfolio/", READS, tag="pockets")
async def get_portfolio(caller: Call, bank: Bank, customer_id: MaybeInPath) -> TotalPortfolio:
    """Get portfolio of all Pockets.

    What a customer has in all Pockets together. `GET /api/v2/pockets/explain/` explains each sum.
    """
    now = caller.now
    rows = await pocket_store.list_not_closed(bank.pool, await caller.owner(bank, customer_id))
    fees = [accrued_cents(row, bank, now) for row in rows]
    values = [valuation(row, bank, now, fees=accrued) for row, accrued in zip(rows, fees, strict=True)]
    slopes = [each.appreciation_per_second for row, each in zip(rows, values, strict=True) if row.real_time_yield]
    face: Counter[date] = Counter()
    for each in values:
        for held in each.positions:
            face[held.bill.maturity] += held.units * _FACE_CENTS
    return TotalPortfolio(
        pockets=len(rows),
        total_value=usd(sum(each.total_value for each in values)),
        cash=usd(sum(row.cash for row in rows)),
        liquidation_value_t0=usd(sum(each.liquidation_value_t0 for each in values)),
        liquidation_value_t1=usd(sum(each.liquidation_value_t1 for each in values)),
        fees=usd(sum(fees)),
        owed=usd(sum(row.owed for row in rows)),
        appreciation_per_second=format_appreciation(sum(slopes, Decimal(0))),
        maturities=[MaturingBills(maturity_date=day, face_value=usd(face[day])) for day in sorted(face)],
    )
