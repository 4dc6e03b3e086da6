"""Between which journal entries of a customer something was booked, as SQL.

Instants and dates of a book never go back, so that the first entry from an instant on is found by halving: some
twenty reads by key, however many entries there are. A list that is filtered by time then reads along its index
from there, and nothing of what was booked later or earlier.
"""

from __future__ import annotations

from typing import Literal

from billfold.accounts.pockets.history import JOURNAL_NO_MAX

_FIRST = """(
  WITH RECURSIVE search(low, high) AS (
    SELECT 0::bigint, h.entry_no + 1 FROM ledger_head h WHERE h.customer_id = $1 AND {value} IS NOT NULL
    UNION ALL
    SELECT CASE WHEN e.{column} < {value} THEN e.entry_no + 1 ELSE s.low END,
           CASE WHEN e.{column} < {value} THEN s.high ELSE s.middle END
      FROM (SELECT low, high, (low + high) / 2 AS middle FROM search WHERE low < high) s
      LEFT JOIN LATERAL (
        SELECT j.entry_no, j.{column} FROM journal_entry j
         WHERE j.customer_id = $1 AND j.entry_no >= s.middle ORDER BY j.entry_no LIMIT 1) e ON true)
  SELECT coalesce(max(low), {otherwise}) FROM search)"""


def since(column: Literal["booked_at", "business_date"], value: str) -> str:
    """Return the number of the first entry of customer $1 with at least this value; the least for NULL."""
    return _FIRST.format(column=column, value=value, otherwise=0)


def until(column: Literal["booked_at", "business_date"], value: str) -> str:
    """Return the same, for an end that is excluded; beyond all numbers for NULL."""
    return _FIRST.format(column=column, value=value, otherwise=JOURNAL_NO_MAX)
