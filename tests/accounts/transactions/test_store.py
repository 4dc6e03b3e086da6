"""Reading activity: by either id, in booking order, at each level."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from billfold.accounts.transactions.store import Activity, TransactionFilters, get_transaction_row
from billfold.platform import ids
from billfold.platform.calendars import Calendars
from billfold.platform.errors import NotFound
from billfold.platform.ids import group_of, member_of

AT = datetime(2025, 6, 2, 13, tzinfo=UTC)
TOMORROW = AT + timedelta(days=1)
CUSTOMER, PARTNER = ids.new(), ids.new()
HERE, THERE = ids.new(), ids.new()
_INSERT = """
INSERT INTO transaction VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 't', 'd', $12,
  '2025-06-02', $12, $13, NULL)
"""
_HEAD = """
INSERT INTO ledger_head (customer_id, version, entry_no, event_no, account_no, booked_at, business_date)
VALUES ($1, 1, 4, 0, 0, $2, '2025-06-02')
"""
_ENTRY = """
INSERT INTO journal_entry
  (customer_id, entry_no, kind, command_id, booked_at, business_date, effective_date, settles_on, postings)
VALUES ($1, $2, 'PAYMENT', gen_random_uuid(), $3, '2025-06-02', '2025-06-02', '2025-06-02', '{}')
"""


async def book(conn, entry_no, posting_no, pocket, activity_id, **changes):
    """Insert one activity row: by default a swept wire of one dollar."""
    row = {"type": "WIRE", "direction": "CREDIT", "amount": 100, "swept": True, "details": "{}"}
    row |= changes
    await conn.execute(
        _INSERT,
        CUSTOMER,
        pocket,
        entry_no,
        posting_no,
        activity_id,
        group_of(activity_id),
        PARTNER,
        row["type"],
        row["direction"],
        row["amount"],
        row["swept"],
        AT + timedelta(minutes=entry_no),
        row["details"],
    )


@pytest.fixture
async def activity_ids(conn):
    """Insert four journal entries (two credits, a debit, a fee); return their activity ids in order."""
    await conn.execute(_HEAD, CUSTOMER, AT + timedelta(minutes=4))
    made = [member_of(ids.new(), 1) for _ in range(4)]
    await book(conn, 1, 1, pocket=HERE, activity_id=made[0])
    await book(conn, 2, 1, pocket=THERE, activity_id=made[1])
    await book(conn, 3, 1, pocket=HERE, activity_id=made[2], direction="DEBIT", amount=300)
    await book(conn, 4, 2, pocket=HERE, activity_id=made[3], type="FEE", swept=False, details='{"fee_type":"AUM_FEE"}')
    return made


async def numbered(conn, activity, *, now=TOMORROW, after=None, descending=False, limit=9, **filters):
    place = {"after": after, "descending": descending, "limit": limit}
    rows = await activity.rows(conn, TransactionFilters(**filters), now=now, calendars=Calendars(), **place)
    return [row.activity_id for row in rows]


def of_customer(*pockets):
    return Activity.of_customer(CUSTOMER, [*pockets])


async def test_a_customers_list_merges_the_pockets_in_booking_order(conn, activity_ids):
    both = of_customer(HERE, THERE)
    assert await numbered(conn, both) == activity_ids
    assert await numbered(conn, of_customer(THERE, HERE), descending=True) == activity_ids[::-1]
    assert await numbered(conn, both, after=(2, 1), limit=1) == [activity_ids[2]]
    assert await numbered(conn, both, after=(2, 1), descending=True) == [activity_ids[0]]
    assert await numbered(conn, of_customer()) == []
    assert await numbered(conn, of_customer(HERE), descending=True, limit=2) == [activity_ids[3], activity_ids[2]]


async def test_a_time_is_located_identically_by_entries_and_by_rows(conn, activity_ids):
    await conn.executemany(_ENTRY, [(CUSTOMER, n, AT + timedelta(minutes=n)) for n in range(1, 5)])
    instants = [None, *(AT + timedelta(minutes=n / 2) for n in range(11))]
    for since, until in itertools.product(instants, instants):
        within = [
            each
            for n, each in enumerate(activity_ids, 1)
            if (since is None or AT + timedelta(minutes=n) >= since)
            and (until is None or AT + timedelta(minutes=n) < until)
        ]
        filters = {"booked_from": since, "booked_to": until}
        assert await numbered(conn, of_customer(HERE, THERE), **filters) == within
        assert await numbered(conn, of_customer(HERE), **filters) == [
            each for each in within if each != activity_ids[1]
        ]


async def test_a_partner_transaction_list_is_ordered_by_time(conn, activity_ids):
    everyone = Activity.of_partner(PARTNER, None)
    assert await numbered(conn, everyone) == activity_ids
    place = (AT + timedelta(minutes=3), 3)
    assert await numbered(conn, everyone, descending=True, after=place) == [activity_ids[1], activity_ids[0]]
    assert await numbered(conn, Activity.of_partner(PARTNER, [THERE])) == [activity_ids[1]]


async def test_a_transaction_row_is_found_by_activity_transaction_or_sweep_id(conn, activity_ids):
    for asked in (activity_ids[2], group_of(activity_ids[2])):
        assert (await get_transaction_row(conn, CUSTOMER, HERE, requested_id=asked)).activity_id == activity_ids[2]
    sweep = member_of(activity_ids[2], 1001)
    found = await get_transaction_row(conn, CUSTOMER, HERE, requested_id=sweep)
    assert (found.activity_id, found.type, found.direction) == (sweep, "SWEEP", "CREDIT")


async def test_a_transaction_id_not_booked_in_the_pocket_is_not_found(conn, activity_ids):
    for asked in (
        activity_ids[1],  # of the other pocket
        member_of(activity_ids[0], 7),
        member_of(activity_ids[0], 1000),
        ids.new(),
    ):
        with pytest.raises(NotFound):
            await get_transaction_row(conn, CUSTOMER, HERE, requested_id=asked)
