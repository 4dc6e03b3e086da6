"""Queries of the movements of each rail, and of the settled part of them.

A customer's payment settles at the instant of its transaction, a journal entry of the bank on its
settlement date."""

from datetime import date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from billfold.accounts.entry_numbers import BookedIn, entries_of
from billfold.payments.clearing.rules import ClearingTotals, OpenPayment
from billfold.platform.database.connection import Db
from billfold.platform.dates import et_instant

_EASTERN = "(settles_at AT TIME ZONE 'America/New_York')::date"
# $1 the bank's own customer; $2, $3 first date and its first instant; $4, $5 last date and instant; $6 an entry
# of long before.
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
 WHERE j.customer_id = $1 AND j.entry_no >= $6 AND j.kind NOT IN ('clearing', 'settlement')
   AND a.kind LIKE 'rail:%' AND j.settles_on BETWEEN $2 AND $4
"""
# The records of the processor's settlement that are booked to cards.
_OF_CARDS = """
SELECT 'CARD' AS rail, settles_on, settles_on::timestamp AT TIME ZONE 'America/New_York' AS settles_at,
       CASE WHEN kind IN ('REFUND', 'CHARGEBACK') THEN 'CREDIT' ELSE 'DEBIT' END AS direction,
       amount, customer_id, entry_no, transaction_id AS activity_id
  FROM card_payment WHERE settles_on BETWEEN $2 AND $4
"""
_MOVED = """
SELECT 'CRYPTO' AS rail, (t.settles_at AT TIME ZONE 'America/New_York')::date AS settles_on, t.settles_at, t.direction,
       t.amount, t.customer_id, t.entry_no, t.activity_id
  FROM transaction t JOIN
"""
_OF_WITHDRAWAL = f"""{_MOVED} crypto_withdrawal w ON t.customer_id = w.customer_id AND t.pocket_id = w.pocket_id
       AND t.details->>'crypto_transfer_id' = w.withdrawal_id::text AND t.entry_no =
"""
# Includes deposits released by operators. A withdrawal settles when it is booked, and when it is returned.
_OF_CRYPTO = f"""
{_MOVED} crypto_deposit d
    ON d.customer_id = t.customer_id AND d.deposit_id::text = t.details->>'crypto_transfer_id'
 WHERE t.type = 'GENERIC' AND t.direction = 'CREDIT' AND t.settles_at >= $3 AND t.settles_at <= $5
 UNION ALL
{_OF_WITHDRAWAL} w.entry_no WHERE w.created_at >= $3 AND w.created_at <= $5
 UNION ALL
{_OF_WITHDRAWAL} w.return_entry_no WHERE w.status = 'REJECTED' AND w.updated_at >= $3 AND w.updated_at <= $5
"""
_MOVEMENTS = " UNION ALL ".join((_OF_CUSTOMERS, _OF_THE_BANK, _OF_CARDS, _OF_CRYPTO))
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
  FROM ({_MOVEMENTS}) each ORDER BY settles_at, rail, customer_id, entry_no LIMIT $7
"""
_HOURLY = f"""
SELECT date_trunc('hour', settles_at) + interval '59 minutes' AS at,
       sum(CASE direction WHEN 'CREDIT' THEN amount ELSE -amount END)::bigint, rail
  FROM ({_MOVEMENTS}) each WHERE settles_at > $3 GROUP BY 1, direction, rail
"""
# Payments of one date with the references that the other bank has: numbers of a wire, the trace number of an ACH entry.
# Entries of our files settle with their file, days before the ledger counts them; those that were never sent do not.
_REFERENCED = f"""
WITH m AS MATERIALIZED ({_MOVEMENTS}
), own AS MATERIALIZED (
  SELECT entry_no FROM ach_entry
   WHERE customer_id = $1 AND entry_no = ANY(ARRAY(SELECT entry_no FROM m WHERE rail = 'ACH' AND customer_id = $1))
), counted AS MATERIALIZED (
  SELECT m.rail, CASE m.direction WHEN 'CREDIT' THEN m.amount ELSE -m.amount END AS amount, m.customer_id, m.entry_no,
         array_remove(ARRAY[w.imad, w.omad, w.uetr, t.details->>'trace_number'], NULL) AS names, j.booked_at
    FROM m JOIN journal_entry j USING (customer_id, entry_no)
    LEFT JOIN transaction t
      ON t.customer_id = j.customer_id AND t.activity_id = m.activity_id AND t.entry_no = j.entry_no
    LEFT JOIN wire w ON w.customer_id = t.customer_id AND w.wire_id = (t.details->>'wire_id')::uuid
    LEFT JOIN ach_entry e ON e.customer_id = t.customer_id AND e.ach_id = (t.details->>'ach_id')::uuid
         AND e.way = 'ORIGINATION'
   WHERE e.ach_id IS NULL OR e.entry_no <> m.entry_no AND e.file_id IS NOT NULL
), sent AS MATERIALIZED (
  SELECT e.direction, e.amount, e.customer_id, e.entry_no, e.trace_number, j.booked_at
    FROM ach_entry e JOIN journal_entry j ON j.customer_id = e.customer_id AND j.entry_no = e.entry_no
   WHERE e.way = 'ORIGINATION'
     AND e.file_id = ANY(ARRAY(SELECT file_id FROM ach_file WHERE settles_at >= $3 AND settles_at <= $5))
)
SELECT * FROM counted
 WHERE NOT (rail = 'ACH' AND customer_id = $1 AND entry_no IN (SELECT entry_no FROM own))
 UNION ALL
SELECT 'ACH', CASE direction WHEN 'CREDIT' THEN -amount ELSE amount END, customer_id, entry_no, ARRAY[trace_number],
       booked_at
  FROM sent
 ORDER BY rail, customer_id, entry_no, names
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


async def list_cleared(conn: Db, bank_id: UUID, span: SettlementPeriod) -> list[ClearingTotals]:
    """Return per rail the dates with unsettled amounts."""
    rows = await conn.fetch(_CLEARED, *await _parameters(conn, bank_id, span), timeout=_QUERY_TIMEOUT_SECONDS)
    return [ClearingTotals(*row) for row in rows]


async def list_open(conn: Db, bank_id: UUID, span: SettlementPeriod, *, limit: int = 200) -> list[OpenPayment]:
    """Return the payments that settle within the period, earliest first."""
    return [OpenPayment(*row) for row in await conn.fetch(_OPEN, *await _parameters(conn, bank_id, span), limit)]


async def list_hourly(conn: Db, bank_id: UUID, span: SettlementPeriod) -> list[tuple[datetime, int, str]]:
    """Return what moves in each hour after the period begins: the hour, signed cents, the rail."""
    return [(row[0], row[1], row[2]) for row in await conn.fetch(_HOURLY, *await _parameters(conn, bank_id, span))]


class ReferencedPayment(NamedTuple):
    """A payment of a rail: cents, negative if they leave the bank, and the references that the other bank has."""

    rail: str
    amount: int
    customer_id: UUID
    entry_no: int
    names: list[str]
    booked_at: datetime


async def list_settling_on(conn: Db, bank_id: UUID, day: date) -> list[ReferencedPayment]:
    """Return the payments that the rails themselves settle on a date."""
    ends = et_instant(day + timedelta(days=1), 0) - timedelta(microseconds=1)
    span = SettlementPeriod(day, et_instant(day, 0), day, ends)
    rows = await conn.fetch(_REFERENCED, *await _parameters(conn, bank_id, span))
    return [ReferencedPayment(*row) for row in rows]


async def _parameters(conn: Db, bank_id: UUID, span: SettlementPeriod) -> tuple[object, ...]:
    since = max(span.first, DATE_MIN + _AHEAD) - _AHEAD
    return bank_id, *span, (await entries_of(conn, bank_id, BookedIn(first_day=since))).first


async def balances(conn: Db) -> dict[str, int]:
    """Return the sum of the clearing accounts of all customers and the bank."""
    return {row["kind"]: row["balance"] for row in await conn.fetch(_BALANCES)}


_AHEAD = timedelta(days=366)
"""No entry of the bank settles longer after it was booked."""
_QUERY_TIMEOUT_SECONDS = 3_600.0
