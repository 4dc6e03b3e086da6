"""Finds the range of journal entries of a period, and pages lists in the order of entry numbers.

Instants and dates of a book never decrease, so the first entry from an instant on is found by binary search: about
twenty lookups by key, independent of the number of entries.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, ClassVar, Final, NamedTuple, TypeVar
from uuid import UUID

from typing_extensions import override

from billfold.accounts.pockets.as_of_store import JOURNAL_NO_MAX
from billfold.platform.database import paging
from billfold.platform.database.connection import Db
from billfold.platform.database.paging import Found, KeysetList, Place, SortKey, Stop

RowType = TypeVar("RowType")
_ENTRIES_PER_ROW: Final = 4
_GROWTH: Final = 32
_FEW_POCKETS: Final = 20
"""Up to this many Pockets, rows are counted along the primary key; above, entries, which may include other Pockets."""
_MEMBER_MAX: Final = 2**15 - 1
_FAR: Final = {
    descending: f"""
SELECT {found}(f.entry_no) FROM unnest($2::uuid[]) AS p(pocket_id) CROSS JOIN LATERAL (
  SELECT t.entry_no FROM {{table}} t
   WHERE t.customer_id = $1 AND t.pocket_id = p.pocket_id AND t.entry_no >= $3 AND t.entry_no < $4
   ORDER BY t.entry_no {way} OFFSET $5 LIMIT 1) f
"""
    for descending, found, way in ((True, "max", "DESC"), (False, "min", "ASC"))
}
_BOOKED_AT: Final = "SELECT booked_at FROM journal_entry WHERE customer_id = $1 AND entry_no = $2"
_FIRST: Final = """(
  WITH RECURSIVE search(low, high) AS (
    SELECT 0::bigint, h.entry_no + 1 FROM ledger_head h WHERE h.customer_id = $1 AND {value} IS NOT NULL
    UNION ALL
    SELECT CASE WHEN e.{column} < {value} THEN e.entry_no + 1 ELSE s.low END,
           CASE WHEN e.{column} < {value} THEN s.high ELSE s.middle END
      FROM (SELECT low, high, (low + high) / 2 AS middle FROM search WHERE low < high) s
      LEFT JOIN LATERAL (
        SELECT j.entry_no, j.{column} FROM journal_entry j
         WHERE j.customer_id = $1 AND j.entry_no >= s.middle ORDER BY j.entry_no LIMIT 1) e ON true)
  SELECT max(low) FROM search)"""
_BETWEEN: Final = f"""
SELECT coalesce(greatest({_FIRST.format(column="booked_at", value="$2::timestamptz")},
                         {_FIRST.format(column="business_date", value="$4::date")}), 0),
       coalesce(least({_FIRST.format(column="booked_at", value="$3::timestamptz")},
                      {_FIRST.format(column="business_date", value="($5::date + 1)")},
                      (SELECT entry_no + 1 FROM ledger_head WHERE customer_id = $1)), 0)
"""


class Entries(NamedTuple):
    """A range of journal entries of a customer: `first` to `end`, excluded."""

    first: int = 0
    end: int = JOURNAL_NO_MAX

    def cut(self, entry_no: int | None, *, descending: bool) -> Entries:
        """Return the range from an entry on, included, or up to it; the whole range without one."""
        if entry_no is None:
            return self
        return Entries(entry_no, self.end) if descending else Entries(self.first, entry_no + 1)


class BookedIn(NamedTuple):
    """Booking times, from included and to excluded, and dates, both included; None for no bound.

    Entries from number `end` on are left out.
    """

    from_at: datetime | None = None
    to_at: datetime | None = None
    first_day: date | None = None
    last_day: date | None = None
    end: int = JOURNAL_NO_MAX


async def entries_of(conn: Db, customer_id: UUID, booked: BookedIn) -> Entries:
    """Return the range of a customer's entries that contains everything booked in these times."""
    row = await conn.fetchrow(_BETWEEN, customer_id, *booked[:-1])
    assert row is not None
    return Entries(row[0], min(row[1], booked.end))


class MergedList(KeysetList[RowType]):
    """A list over several Pockets of a customer in the order of its journal entries, read in windows of entries.

    The first parameters are the customer ($1), the Pockets ($2) and a BookedIn; the statement gets a window
    as $3 and $4, the end excluded. A page merges up to its length from every Pocket, but in a window only the few rows
    present, so the cost is not the product. After a window with too few rows comes a wider one.
    // `table` contains the rows, by its primary key: customer, Pocket, entry and a number within it.
    """

    table: ClassVar[str]

    @override
    async def placed_rows(
        self, conn: Db, *values: Any, after: Place | None = None, descending: bool = True, limit: int
    ) -> list[tuple[RowType, SortKey]]:
        span = await self._span(conn, values, after=after, descending=descending)
        return await self._by_windows(conn, values, span, after=after, descending=descending, limit=limit)

    @override
    async def search(
        self,
        conn: Db,
        *values: Any,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
        is_filtered: bool | None = None,
    ) -> Found[RowType]:
        """Return the same rows; with filters it reads at most SEARCHED_MAX rows of the table.

        `is_filtered` states whether values beyond the booking times filter rows; by default any given value does.
        """
        whole = span = await self._span(conn, values, after=after, descending=descending)
        if any(each is not None for each in values[3:]) if is_filtered is None else is_filtered:
            span = await self._within_reach(conn, values, whole, descending=descending)
            span = span if after is None else _extend_range(after[0], span, whole, descending=descending)
        rows = await self._by_windows(conn, values, span, after=after, descending=descending, limit=limit)
        if span == whole or len(rows) >= limit:
            return Found(rows)
        # Between entries: before the first one read, or after the last.
        entry_no, member = (span.first, -1) if descending else (span.end - 1, _MEMBER_MAX)
        seen = span.first if descending else span.end - 1
        return Found(rows, Stop((entry_no, member), await conn.fetchval(_BOOKED_AT, values[0], seen)))

    async def _span(self, conn: Db, values: tuple[Any, ...], *, after: Place | None, descending: bool) -> Entries:
        """Return the entries that remain after a position."""
        customer_id, pocket_ids, booked, *_ = values
        # The rows of a single Pocket are adjacent: nothing is merged.
        is_one = len(pocket_ids) == 1
        is_whole = is_one and booked == BookedIn(end=booked.end)
        first, end = Entries(end=booked.end) if is_whole else await entries_of(conn, customer_id, booked)
        if after is None:
            return Entries(first, end)
        return Entries(first, min(end, after[0] + 1)) if descending else Entries(max(first, after[0]), end)

    async def _within_reach(self, conn: Db, values: tuple[Any, ...], span: Entries, *, descending: bool) -> Entries:
        """Return as many of these entries as have SEARCHED_MAX rows of the Pockets, or more entries with fewer rows."""
        customer_id, pocket_ids, *_ = values
        if len(pocket_ids) > _FEW_POCKETS:
            return _part_of(span, paging.SEARCHED_MAX, descending=descending)
        far = _FAR[descending].format(table=self.table)
        each = paging.SEARCHED_MAX // max(1, len(pocket_ids))
        return span.cut(await conn.fetchval(far, customer_id, pocket_ids, *span, each), descending=descending)

    async def _by_windows(
        self, conn: Db, values: tuple[Any, ...], span: Entries, *, after: Place | None, descending: bool, limit: int
    ) -> list[tuple[RowType, SortKey]]:
        customer_id, pocket_ids, _, *filters = values
        first, end = span
        width = JOURNAL_NO_MAX if len(pocket_ids) == 1 else limit * _ENTRIES_PER_ROW
        rows: list[tuple[RowType, SortKey]] = []
        while first < end and len(rows) < limit:
            start, stop = _part_of(Entries(first, end), width, descending=descending)
            key = (customer_id, pocket_ids, start, stop, *filters)
            rows += await super().placed_rows(conn, *key, after=after, descending=descending, limit=limit - len(rows))
            first, end = (first, start) if descending else (stop, end)
            width *= _GROWTH
        return rows


def _extend_range(entry_no: int, span: Entries, whole: Entries, *, descending: bool) -> Entries:
    """Return a range extended by one entry if it ends in this one: an entry may have more rows than are searched."""
    if descending:
        return Entries(max(whole.first, min(span.first, entry_no - 1)), span.end)
    return Entries(span.first, min(whole.end, max(span.end, entry_no + 2)))


def _part_of(span: Entries, width: int, *, descending: bool) -> Entries:
    """Return the last entries, or the first."""
    first, end = span
    return Entries(max(first, end - width), end) if descending else Entries(first, min(end, first + width))
