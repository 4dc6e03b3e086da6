"""Queries of what moved by each rail and what of it is settled.

A customer's payment settles at the instant of its transaction, a journal entry of the bank on its
settlement date. A rail of another kind has a module `movements` below `billfold.payments`: its `MOVEMENTS` is a
query of the same columns and parameters.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold import payments
from billfold.payments.clearing.types import ClearingTotals, OpenPayment
from billfold.platform.dates import et_instant

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

_EASTERN = "(settles_at AT TIME ZONE 'America/New_York')::date"
# $1 the bank's own customer; $2, $3 first date and its first instant; $4, $5 last date and instant.
_OF_CUSTOMERS = f"""
SELECT type AS rail, {_EASTERN} AS settles_on, settles_at, direction, amount, customer_id,
       entry_no, activity_id
  FROM transaction
 WHERE type IN ('ACH', 'WIRE') AND settles_at >= $3 AND settles_at <= $5
"""
_OF_THE_BANK = """
SELECT upper(substr(a.kind, 6)) AS rail, j.settles_on,
       j.settles_on::timestamp AT TIME ZONE 'America/New_York' AS settles_at,
       CASE WHEN l.debit = a.account_no THEN 'CREDIT' ELSE 'DEBIT' END AS direction,
       l.amount, l.customer_id, l.entry_no, NULL::uuid AS activity_id
  FROM journal_entry j JOIN posting l USING (customer_id, entry_no)
  JOIN account a ON a.customer_id = l.customer_id AND a.account_no IN (l.debit, l.credit)
 WHERE j.customer_id = $1 AND j.kind NOT IN ('clearing', 'settlement')
   AND a.kind LIKE 'rail:%' AND j.settles_on BETWEEN $2 AND $4
"""


def _of_other_rails() -> Iterator[str]:
    modules = sorted(each.name for each in pkgutil.walk_packages(payments.__path__, "billfold.payments."))
    yield from (importlib.import_module(name).MOVEMENTS for name in modules if name.endswith(".movements"))


_MOVEMENTS = " UNION ALL ".join((_OF_CUSTOMERS, _OF_THE_BANK, *_of_other_rails()))
_CLEARED = f"""
SELECT rail, settles_on, coalesce(payments, 0)::bigint AS payments,
       coalesce(m.inflow, 0)::bigint AS inflow, coalesce(m.outflow, 0)::bigint AS outflow,
       coalesce(c.inflow, 0)::bigint AS settled_in, coalesce(c.outflow, 0)::bigint AS settled_out
  FROM (SELECT rail, settles_on, count(*) AS payments,
               sum(amount) FILTER (WHERE direction = 'CREDIT') AS inflow,
               sum(amount) FILTER (WHERE direction = 'DEBIT') AS outflow
          FROM ({_MOVEMENTS}) each GROUP BY rail, settles_on) m
  FULL JOIN
       (SELECT rail, settles_on, sum(inflow) AS inflow, sum(outflow) AS outflow
          FROM clearing WHERE settles_on BETWEEN $2 AND $4 GROUP BY rail, settles_on) c
       USING (rail, settles_on)
 WHERE (coalesce(m.inflow, 0), coalesce(m.outflow, 0))
       IS DISTINCT FROM (coalesce(c.inflow, 0), coalesce(c.outflow, 0))
 ORDER BY rail, settles_on
"""
_OPEN = f"""
SELECT rail, settles_at, direction, amount, customer_id, entry_no, activity_id
  FROM ({_MOVEMENTS}) each ORDER BY settles_at, rail, customer_id, entry_no LIMIT $6
"""
_BALANCES = """
SELECT kind, sum(credits - debits)::bigint AS balance FROM account
 WHERE kind LIKE 'rail:%' OR kind = 'suspense' GROUP BY kind
"""
DATE_MIN, DATE_MAX = date(2000, 1, 1), date(2999, 12, 31)
"""Earlier than the first settlement date and later than the last."""


class SettlementPeriod(NamedTuple):
    """A period from the start of a date up to an instant on a later date, as query parameters."""

    first: date
    begins: datetime
    last: date
    ends: datetime


EVER = SettlementPeriod(DATE_MIN, et_instant(DATE_MIN, 0), DATE_MAX, ends=et_instant(DATE_MAX, 0))


async def list_cleared(conn: Connection | Pool, bank_id: UUID, span: SettlementPeriod) -> list[ClearingTotals]:
    """Return per rail the dates with unsettled amounts."""
    rows = await conn.fetch(_CLEARED, bank_id, *span, timeout=_QUERY_TIMEOUT_SECONDS)
    return [ClearingTotals(*row) for row in rows]


async def list_open(
    conn: Connection | Pool, bank_id: UUID, span: SettlementPeriod, *, limit: int = 200
) -> list[OpenPayment]:
    """Return the payments that settle within the period, earliest first."""
    return [OpenPayment(*row) for row in await conn.fetch(_OPEN, bank_id, *span, limit)]


async def balances(conn: Connection | Pool) -> dict[str, int]:
    """Return the sum of the clearing accounts of all customers and the bank."""
    return {row["kind"]: row["balance"] for row in await conn.fetch(_BALANCES)}


_QUERY_TIMEOUT_SECONDS = 3_600.0
