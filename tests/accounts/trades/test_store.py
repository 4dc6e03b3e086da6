"""Reading trades: in booking order, by day and activity."""

from datetime import UTC, date, datetime, timedelta

import pytest

from billfold.accounts.trades.store import TRADES, TradeFilters, get_trade_row
from billfold.platform import ids
from billfold.platform.errors import NotFound

AT = datetime(2025, 6, 2, 13, tzinfo=UTC)
CUSTOMER, PARTNER = ids.new(), ids.new()
HERE, THERE = ids.new(), ids.new()
_INSERT = """
INSERT INTO trade VALUES ($1, $2, $3, $4, $5, $6, $7, true, '912797AA1', 1, 99000000, 9900, 9900,
  9900, $8, $9, $10, NULL, NULL)
"""
_HEAD = """
INSERT INTO ledger_head (customer_id, version, entry_no, event_no, account_no, booked_at, business_date)
VALUES ($1, 1, $2, 0, 0, $3, '2025-06-04')
"""


async def book(conn, trade_id, place, *, pocket, kind="BUY", day=date(2025, 6, 1)):
    at = datetime.combine(day, AT.timetz())
    values = (pocket, *place, trade_id, PARTNER, kind, at, day, day + timedelta(days=1))
    await conn.execute(_INSERT, CUSTOMER, *values)


async def listed(conn, pockets, *, after=None, descending=False, limit=9, **filters):
    values = TradeFilters(**filters).values()
    rows = await TRADES.rows(conn, CUSTOMER, pockets, *values, after=after, descending=descending, limit=limit)
    return [row.trade_id for row in rows]


@pytest.mark.parametrize(
    "trade_id", [ids.at_place(ids.new(), 7, 2), ids.new()], ids=["placed", "of an earlier release"]
)
async def test_a_trade_is_found_by_id_only_in_its_own_pocket(conn, trade_id):
    for no, each in ((1, ids.new()), (2, trade_id)):
        await book(conn, each, (7, no), pocket=HERE)
    assert (await get_trade_row(conn, CUSTOMER, HERE, trade_id)).trade_no == 2
    for key in ((CUSTOMER, THERE), (PARTNER, HERE)):
        with pytest.raises(NotFound):
            await get_trade_row(conn, *key, trade_id)


@pytest.mark.parametrize("descending", [True, False])
async def test_trade_pages_with_interleaved_pockets_have_no_gaps_or_repeats(conn, descending):
    await conn.execute(_HEAD, CUSTOMER, 50_000, AT)
    places = [(n, no) for n in (1, 2, 3, 40, 41, 300, 2_000, 2_001, 30_000, 49_999, 50_000) for no in (1, 2)]
    for place in places:
        await book(conn, ids.new(), place, pocket=HERE if sum(place) % 3 else THERE)
    seen, after = [], None
    while page := await TRADES.rows(
        conn, CUSTOMER, [HERE, THERE], *TradeFilters().values(), after=after, descending=descending, limit=3
    ):
        seen += [(row.entry_no, row.trade_no) for row in page]
        after = seen[-1]
    assert seen == sorted(places, reverse=descending)
