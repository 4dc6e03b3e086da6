"""Between which journal entries of a customer something was booked, and lists that are read along their numbers.

Instants and dates of a book never go back, so that the first entry from an instant on is found by halving: some
twenty reads by key, however many entries there are.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from typing_extensions import override

from billfold.accounts.pockets.history import JOURNAL_NO_MAX
from billfold.platform.database.keyset import KeysetList, Place

if TYPE_CHECKING:
    from uuid import UUID

    from billfold.platform.database.pool import Connection, Pool
    from billfold.platform.paging import SortKey

RowType = TypeVar("RowType")
_ENTRIES_PER_ROW: Final = 4
_GROWTH: Final = 8
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
    """Journal entries of a customer, from one number on and before another."""

    first: int = 0
    end: int = JOURNAL_NO_MAX


class BookedIn(NamedTuple):
    """Times of booking, from included and to excluded, and dates, both included; None for no end."""

    from_at: datetime | None = None
    to_at: datetime | None = None
    first_day: date | None = None
    last_day: date | None = None


async def entries_of(conn: Connection | Pool, customer_id: UUID, booked: BookedIn) -> Entries:
    """Return between which entries of a customer everything of these times is."""
    row = await conn.fetchrow(_BETWEEN, customer_id, *booked)
    assert row is not None
    return Entries(*row)


class MergedList(KeysetList[RowType]):
    """A list of Pockets of a customer in the order of its journal entries, read by windows of them.

    The first values are the customer ($1), the Pockets ($2) and a BookedIn; the statement gets the entries of a window
    as $3 and $4, the end excluded. A page merges up to its length of every Pocket, in a window only the few rows that
    are there: so it does not cost the product. After a window without enough rows comes a wider one.
    """

    @override
    async def placed_rows(
        self, conn: Connection | Pool, *values: Any, after: Place | None = None, descending: bool = True, limit: int
    ) -> list[tuple[RowType, SortKey]]:
        customer_id, pocket_ids, booked, *filters = values
        # Of one Pocket the rows are next to each other: nothing is merged.
        is_one = len(pocket_ids) == 1
        first, end = Entries() if is_one and booked == BookedIn() else await entries_of(conn, customer_id, booked)
        if after is not None:
            first, end = (first, min(end, after[0] + 1)) if descending else (max(first, after[0]), end)
        width = JOURNAL_NO_MAX if is_one else limit * _ENTRIES_PER_ROW
        rows: list[tuple[RowType, SortKey]] = []
        while first < end and len(rows) < limit:
            start, stop = (max(first, end - width), end) if descending else (first, min(end, first + width))
            key = (customer_id, pocket_ids, start, stop, *filters)
            rows += await super().placed_rows(conn, *key, after=after, descending=descending, limit=limit - len(rows))
            first, end = (first, start) if descending else (stop, end)
            width *= _GROWTH
        return rows
