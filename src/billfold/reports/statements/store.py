"""Rows of statements, their month, the statements still to be made, and the data they read besides entries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.trades.store import TradeRow
from billfold.bills.rules.earnings import PocketState
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.database.rows import Table
from billfold.platform.dates import et_date, et_instant

MADE_AT: Final = time(6)
"""Time (ET) on the first day of the next month from which statements are made: all entries are committed by then."""

LINES_MAX: Final = 5_000
"""Maximum number of lines of activity printed one by one; if there are more, they are summed per day and kind."""


class StatementType(StrEnum):
    """Types of documents listed as statements."""

    BANK = "BANK"
    BROKERAGE = "BROKERAGE"
    FORM_1099_INT = "1099-INT"
    FORM_1099_B = "1099-B"


MONTHLY: Final = (StatementType.BANK, StatementType.BROKERAGE)


class StatementRow(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a statement; `statement_id` is also the id of its file.

    `opening` and `closing` are in cents, None for tax forms. `entry_no` is the last journal entry that it covers.
    The first version has no `reason`.
    """

    customer_id: UUID
    statement_id: UUID
    pocket_id: UUID
    type: StatementType
    key: str
    version: int
    reason: str | None
    opening: int | None
    closing: int | None
    entry_no: int
    created_at: datetime

    @property
    def file_id(self) -> UUID:
        """The id of its file."""
        return self.statement_id


class Month(NamedTuple):
    """A calendar month, by its first day."""

    first_day: date

    @classmethod
    def parse(cls, key: str) -> Month:
        """Return the month that a key like 2026-01 names. Raises ValueError."""
        return cls(datetime.strptime(key, "%Y-%m").date())  # noqa: DTZ007 - a month has no zone

    @classmethod
    def of(cls, at: datetime) -> Month:
        """Return the month of an instant."""
        return cls(et_date(at).replace(day=1))

    @classmethod
    def before(cls, at: datetime) -> Month:
        """Return the last month whose statements are due at an instant."""
        last = cls.of(at).previous
        return last if last.due_at <= at else last.previous

    @property
    def key(self) -> str:
        """The key of the month in statements, like 2026-01."""
        return f"{self.first_day:%Y-%m}"

    @property
    def name(self) -> str:
        """The name of the month: "January 2026"."""
        return f"{self.first_day:%B %Y}"

    @property
    def previous(self) -> Month:
        """The previous month."""
        return Month((self.first_day - timedelta(days=1)).replace(day=1))

    @property
    def next(self) -> Month:
        """The next month."""
        return Month((self.first_day + timedelta(days=31)).replace(day=1))

    @property
    def last_day(self) -> date:
        """The last day of the month."""
        return self.next.first_day - timedelta(days=1)

    @property
    def starts_at(self) -> datetime:
        """The first instant of the month, Eastern time."""
        return et_instant(self.first_day, 0)

    @property
    def due_at(self) -> datetime:
        """The instant from which its statements are made."""
        return et_instant(self.next.first_day, MADE_AT)


_statements, _trades = Table(StatementRow, "statement"), Table(TradeRow, "trade")
_LATEST = f"""
{_statements.select} WHERE customer_id = $1 AND pocket_id = $2 AND type = $3 AND key = $4
 ORDER BY version DESC LIMIT 1
"""
_IS_LATEST = """NOT EXISTS (
  SELECT 1 FROM statement n
   WHERE (n.customer_id, n.pocket_id, n.type, n.key) = (s.customer_id, s.pocket_id, s.type, s.key)
     AND n.version > s.version AND n.created_at <= coalesce($5::timestamptz, 'infinity'))"""
STATEMENTS = KeysetList(
    f"""
SELECT {_statements.columns("s")}, s.written_no FROM statement s
 WHERE s.customer_id = $1 AND ($2::uuid[] IS NULL OR s.pocket_id = ANY($2)) AND ($3::text[] IS NULL OR s.type = ANY($3))
   AND ($4::text IS NULL OR starts_with(s.key, $4)) AND s.created_at <= coalesce($5::timestamptz, 'infinity')
   AND {_IS_LATEST} AND {{page}}
""",
    _statements.read,
    **BY_CREATION,
)
"""The current statements of a customer, those at an instant if one is given; optionally of some Pockets, some types,
and a month or year; newest first."""


def is_of_month(starts_at: str, ends_at: str, key: str) -> str:
    """Return the SQL condition that a Pocket `p` gets statements of a month: it was open, or active since its last one.

    The arguments are SQL. A closed Pocket has little activity after its last statement, which an index finds.
    """
    return f"""
  p.opened_at < {ends_at} AND (p.closed_at IS NULL OR p.closed_at >= {starts_at} OR EXISTS (
    SELECT 1 FROM transaction late
     WHERE (late.customer_id, late.pocket_id) = (p.customer_id, p.pocket_id)
       AND late.booked_at >= {starts_at} AND late.booked_at < {ends_at}
       AND late.entry_no > coalesce((
         SELECT made.entry_no FROM statement made
          WHERE (made.customer_id, made.pocket_id, made.type) = (p.customer_id, p.pocket_id, 'BANK')
            AND made.key < {key}
          ORDER BY made.key DESC, made.version DESC LIMIT 1), 0)))"""


# Customers that had a Pocket in the month and lack a statement for it.
_DUE = f"""
  FROM pocket p CROSS JOIN unnest($4::text[]) AS t(type)
 WHERE {is_of_month("$1", "$2", "$3")}
   AND NOT EXISTS (SELECT 1 FROM statement s WHERE (s.customer_id, s.pocket_id, s.type, s.key, s.version)
                                                 = (p.customer_id, p.pocket_id, t.type, $3, 1))
"""
_DUE_CUSTOMERS = f"""
SELECT c.customer_id FROM customer c
 WHERE c.customer_id > $5 AND EXISTS (SELECT 1 {_DUE} AND p.customer_id = c.customer_id)
 ORDER BY c.customer_id LIMIT $6
"""
_DUE_OF_CUSTOMER = f"""
SELECT p.pocket_id, t.type {_DUE} AND p.customer_id = ANY(ARRAY[$5::uuid]) ORDER BY p.opened_at, p.pocket_id, t.type
"""
_FIRST_OPENED = "SELECT min(opened_at) FROM pocket"
_FINISHED = "SELECT key FROM statement_run"
_FINISH = "INSERT INTO statement_run (key, finished_at) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_COSTS = """
SELECT cusip, sum(CASE WHEN incoming THEN tax_basis ELSE -tax_basis END)::bigint AS cost FROM trade
 WHERE customer_id = $1 AND pocket_id = $2 AND entry_no <= $3 AND cusip = ANY($4) GROUP BY cusip
"""
_TRADES = f"""
SELECT {_trades.columns(counterparty_name="NULL")}
  FROM trade WHERE customer_id = $1 AND pocket_id = $2 AND (entry_no, trade_no) > ($3, $4) AND entry_no <= $5
 ORDER BY entry_no, trade_no LIMIT $6
"""
_TRADES_PER_PAGE = 500
_TRADE_NO_MAX = 2**15 - 1
_DAY_STATES = """
SELECT business_date, positions, cash, earnings_basis, inflow, outflow, fees, realised FROM snapshot
 WHERE customer_id = $1 AND pocket_id = $2 AND business_date BETWEEN $3 AND $4
"""


class DueStatement(NamedTuple):
    """A statement that a month still lacks."""

    pocket_id: UUID
    type: StatementType


class StatementFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of statements; None does not filter. A year as `key` selects all of that year."""

    pockets: list[UUID] | None = None
    types: list[str] | None = None
    key: str | None = None


async def add(conn: Connection, row: StatementRow) -> bool:
    """Insert a version of a statement whose file is already inserted; return whether it was new."""
    return await _statements.insert(
        conn, row, then="ON CONFLICT (customer_id, pocket_id, type, key, version) DO NOTHING"
    )


async def find_latest(
    conn: Db, customer_id: UUID, pocket_id: UUID, type_: StatementType, key: str
) -> StatementRow | None:
    """Return the latest version of a statement."""
    return await _statements.first(conn, _LATEST, customer_id, pocket_id, type_, key)


async def get_latest(conn: Db, customer_id: UUID, pocket_id: UUID, type_: StatementType, key: str) -> StatementRow:
    """Return the latest version of a statement. Raises NotFound."""
    return await _statements.one(conn, _LATEST, customer_id, pocket_id, type_, key)


async def list_due_customers(conn: Db, month: Month, after: UUID, limit: int) -> list[UUID]:
    """Return customers, in the order of their ids, that lack a statement of a month."""
    return [row["customer_id"] for row in await conn.fetch(_DUE_CUSTOMERS, *_span(month), after, limit)]


async def count_due(conn: Db, month: Month) -> int:
    """Return how many statements of a month are still to be made."""
    count: int = await conn.fetchval(f"SELECT count(*) {_DUE}", *_span(month))
    return count


async def list_due(conn: Db, customer_id: UUID, month: Month) -> list[DueStatement]:
    """Return the statements of a month that a customer lacks."""
    rows = await conn.fetch(_DUE_OF_CUSTOMER, *_span(month), customer_id)
    return [DueStatement(row["pocket_id"], StatementType(row["type"])) for row in rows]


def _span(month: Month) -> tuple[object, ...]:
    return month.starts_at, month.next.starts_at, month.key, list(MONTHLY)


async def list_unfinished(conn: Db, now: datetime) -> list[Month]:
    """Return the months whose statements are due by an instant and not complete, oldest first."""
    opened_at: datetime | None = await conn.fetchval(_FIRST_OPENED)
    if opened_at is None:
        return []
    finished = {row["key"] for row in await conn.fetch(_FINISHED)}
    month, last, unfinished = Month.of(opened_at), Month.before(now), list[Month]()
    while month <= last:
        if month.key not in finished:
            unfinished.append(month)
        month = month.next
    return unfinished


async def finish(conn: Db, month: Month, at: datetime) -> None:
    """Record that every statement of a month is made."""
    await conn.execute(_FINISH, month.key, at)


async def costs(conn: Db, customer_id: UUID, pocket_id: UUID, through: int, cusips: Sequence[str]) -> dict[str, int]:
    """Return the tax cost of the bills held after a journal entry, in cents by CUSIP."""
    rows = await conn.fetch(_COSTS, customer_id, pocket_id, through, cusips) if cusips else []
    return {row["cusip"]: row["cost"] for row in rows}


async def list_trades(conn: Db, key: tuple[UUID, UUID], after: int, through: int) -> AsyncIterator[list[TradeRow]]:
    """Yield the trades of a customer's Pocket after one journal entry up to another, in order, page by page."""
    place = (after, _TRADE_NO_MAX)
    while page := await _trades.all(conn, _TRADES, *key, *place, through, _TRADES_PER_PAGE):
        yield page
        place = (page[-1].entry_no, page[-1].trade_no)


async def day_states(conn: Db, customer_id: UUID, pocket_id: UUID, month: Month) -> dict[date, PocketState]:
    """Return the states at the end of a month's business days with activity."""
    rows = await conn.fetch(_DAY_STATES, customer_id, pocket_id, month.first_day, month.last_day)
    return {
        day: PocketState(tuple((cusip, units) for cusip, units in msgspec.json.decode(positions)), *totals)
        for day, positions, *totals in rows
    }
