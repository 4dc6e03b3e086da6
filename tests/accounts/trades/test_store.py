"""Reading trades: in booking order, by day and activity."""

from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest

from billfold.accounts.trades.store import TRADES, TradeFilters
from billfold.platform import ids

AT = datetime(2025, 6, 2, 13, tzinfo=UTC)
CUSTOMER, PARTNER = ids.new(), ids.new()
HERE, THERE = ids.new(), ids.new()
_INSERT = """
INSERT INTO trade VALUES ($1, $2, $3, $4, $5, $6, $7, true, '912797AA1', 1, 99000000, 9900, 9900,
  9900, $8, $9, $10, NULL, NULL)
"""


@pytest.fixture
async def booked(conn):
    """One trade a day, the last two in one journal. Their ids, in order."""
    made = [ids.new() for _ in range(4)]
    rows = ((1, 1, HERE, "BUY"), (2, 1, THERE, "BUY"), (3, 1, HERE, "SELL"), (3, 2, THERE, "BUY"))
    for trade_id, (entry_no, trade_no, pocket, kind) in zip(made, rows, strict=True):
        day = date(2025, 6, 1) + timedelta(days=entry_no)
        await conn.execute(
            _INSERT,
            CUSTOMER,
            pocket,
            entry_no,
            trade_no,
            trade_id,
            PARTNER,
            kind,
            AT + timedelta(days=entry_no - 1),
            day,
            day + timedelta(days=1),
        )
    return made


async def listed(conn, pockets, *, after=None, descending=False, limit=9, **filters):
    values = msgspec.structs.astuple(TradeFilters(**filters))
    rows = await TRADES.rows(conn, CUSTOMER, pockets, *values, after=after, descending=descending, limit=limit)
    return [row.trade_id for row in rows]


async def test_the_pockets_of_a_customer_are_merged_in_booking_order(conn, booked):
    assert await listed(conn, [HERE, THERE]) == booked
    assert await listed(conn, [THERE, HERE], descending=True) == booked[::-1]
    assert await listed(conn, [HERE, THERE], after=(3, 1)) == [booked[3]]
    assert await listed(conn, [HERE, THERE], after=(3, 2), descending=True, limit=2) == [booked[2], booked[1]]
    assert await listed(conn, [HERE]) == [booked[0], booked[2]]
    assert await listed(conn, []) == []
