"""Queries of reconciliation: what the ledger expects of a day, reconciled days, and breaks."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

from billfold.ledger.types import JournalKind
from billfold.payments.clearing.store import list_settling_on
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import KeysetList
from billfold.platform.database.rows import Table
from billfold.reconciliation.types import Break, ExpectedLine, ReconciledDay, Source, Trade

_SECURITIES = "SECURITIES"
_days, _breaks = Table(ReconciledDay), Table(Break)
find_day = _days.find
load_days = _days.load_references
get_break = _breaks.get
load_breaks = _breaks.load_references

# The bank's entries of a business date: they follow each other, so that no index on dates is needed.
_RANGE = """
SELECT coalesce((SELECT entry_no FROM journal_entry WHERE customer_id = $1 AND business_date < $2
                  ORDER BY entry_no DESC LIMIT 1), 0),
       coalesce((SELECT entry_no FROM journal_entry WHERE customer_id = $1 AND business_date <= $2
                  ORDER BY entry_no DESC LIMIT 1), 0)
"""
_POSTED = f"""
SELECT p.entry_no, p.posting_no, o.kind, CASE WHEN p.debit = r.account_no THEN p.amount ELSE -p.amount END AS amount
  FROM journal_entry j JOIN posting p USING (customer_id, entry_no)
  JOIN account r ON r.customer_id = $1 AND r.kind = 'reserve' AND r.account_no IN (p.debit, p.credit)
  JOIN account o ON o.customer_id = $1
       AND o.account_no = CASE WHEN p.debit = r.account_no THEN p.credit ELSE p.debit END
 WHERE j.customer_id = $1 AND j.entry_no > $2 AND j.entry_no <= $3
   AND j.kind NOT IN ('{JournalKind.CLEARING}', '{JournalKind.RECONCILIATION}')
 ORDER BY p.entry_no, p.posting_no
"""
_CLEARED_DATES = f"""
SELECT DISTINCT settles_on FROM journal_entry
 WHERE customer_id = $1 AND entry_no > $2 AND entry_no <= $3 AND kind = '{JournalKind.CLEARING}' ORDER BY 1
"""
# $1 the bank, $2 its last entry of the day, $3 the close of the day. Of customers, those with transfers in kind.
_UNITS = """
SELECT asset, sum(units)::bigint AS units FROM (
  SELECT asset, debits - credits AS units FROM account
   WHERE kind = 'custodian' AND customer_id IN (SELECT $1::uuid UNION SELECT customer_id FROM security_transfer)
  UNION ALL
  SELECT p.asset, CASE WHEN p.debit = c.account_no THEN -p.amount ELSE p.amount END
    FROM journal_entry j JOIN posting p USING (customer_id, entry_no)
    JOIN account c ON c.customer_id = $1 AND c.kind = 'custodian' AND c.account_no IN (p.debit, p.credit)
   WHERE j.customer_id = $1 AND j.entry_no > $2
  UNION ALL
  SELECT cusip, CASE direction WHEN 'IN' THEN -units ELSE units END FROM security_transfer
   WHERE created_at >= $3 AND status <> 'REJECTED') u
 GROUP BY asset HAVING sum(units) <> 0
"""
# A correction is also found by the reference of the execution that it replaces.
_TRADES = """
WITH found AS (
  SELECT execution_id FROM execution WHERE customer_id = $1 AND business_date = $3 AND dealer = $2
  UNION
  SELECT execution_id FROM execution WHERE customer_id = $1 AND dealer = $2 AND reference = ANY($4::text[])
  UNION
  SELECT c.execution_id
    FROM execution o JOIN execution c ON c.customer_id = o.customer_id AND c.corrects = o.execution_id
   WHERE o.customer_id = $1 AND o.dealer = $2 AND o.reference = ANY($4::text[]))
SELECT e.reference, o.reference AS former, e.side, e.cusip, e.units, e.price_micros, e.money, e.settles_on,
       e.business_date
  FROM found JOIN execution e ON e.customer_id = $1 AND e.execution_id = found.execution_id
  LEFT JOIN execution o ON o.customer_id = e.customer_id AND o.execution_id = e.corrects
 WHERE e.kind <> 'BUST' AND e.business_date <= $3
   AND NOT EXISTS (SELECT 1 FROM execution c
                    WHERE c.customer_id = $1 AND c.corrects = e.execution_id AND c.business_date <= $3)
 ORDER BY e.recorded_at, e.execution_id
"""
_RESERVE_BEFORE = """
SELECT coalesce((SELECT debits - credits FROM account WHERE customer_id = $1 AND kind = 'reserve'), 0)
       - coalesce((SELECT sum(CASE WHEN p.debit = r.account_no THEN p.amount ELSE -p.amount END)
                     FROM journal_entry j JOIN posting p USING (customer_id, entry_no)
                     JOIN account r ON r.customer_id = $1 AND r.kind = 'reserve'
                          AND r.account_no IN (p.debit, p.credit)
                    WHERE j.customer_id = $1 AND j.entry_no > $2), 0)::bigint
"""
_DEALERS = "SELECT DISTINCT dealer, business_date FROM execution WHERE customer_id = $1 AND business_date >= $2"
_OPEN_OF = f"""{_breaks.select} WHERE customer_id = $1 AND status = 'OPEN' AND source = $2 AND account = $3
 ORDER BY day, break_id"""
_FIRST_DAY = """
SELECT day FROM reconciled_day WHERE customer_id = $1 AND source = $2 AND account = $3
   AND (file_id IS NOT NULL OR NOT $4) ORDER BY day LIMIT 1
"""
_DAYS_SINCE = f"{_days.select} WHERE customer_id = $1 AND day >= $2 ORDER BY day DESC, source, account"
_CANDIDATES = f"""{_breaks.select} WHERE customer_id = $1 AND status = 'OPEN' AND source = $2 AND account = $3
   AND break_id <> $4 AND num_nonnulls(stated, booked) > 0
 ORDER BY abs(coalesce(stated, 0) - coalesce(booked, 0) + $5::bigint), day LIMIT $6"""
BREAKS = KeysetList(
    f"""{_breaks.select} WHERE customer_id = $1 AND status = $2 AND ($3::text IS NULL OR cause = $3)
   AND ($4::text IS NULL OR source = $4) AND ($5::text IS NULL OR owner = $5) AND {{page}}""",
    _breaks.read,
    seen_at="timestamptz",
    break_id="uuid",
)
"""The breaks of the bank ($1) in a state ($2), of a cause, source and owner or of all."""


class EntryRange(NamedTuple):
    """The bank's journal entries of a business date: those after the first number, up to the second."""

    after: int
    last: int


async def find_entries(conn: Db, bank_id: UUID, day: date) -> EntryRange:
    """Return the range of the bank's entries of a day."""
    row = await conn.fetchrow(_RANGE, bank_id, day)
    assert row is not None
    return EntryRange(*row)


async def list_postings(conn: Db, bank_id: UUID, entries: EntryRange) -> list[ExpectedLine]:
    """Return what a day moved on the reserve account but for the rails, whose payments are known one by one."""
    return [
        ExpectedLine(f"entry {entry_no}/{posting_no}: {kind}", amount, rail=_SECURITIES, group=str(entry_no))
        for entry_no, posting_no, kind, amount in await conn.fetch(_POSTED, bank_id, *entries)
    ]


async def list_cleared_dates(conn: Db, bank_id: UUID, entries: EntryRange) -> list[date]:
    """Return the dates of the rails that a day settled: its own, and earlier ones of which there was a rest."""
    return [row["settles_on"] for row in await conn.fetch(_CLEARED_DATES, bank_id, *entries)]


async def list_payments(
    conn: Connection, bank_id: UUID, day: date, *, booked_after: datetime | None = None
) -> list[ExpectedLine]:
    """Return the payments of the rails that settle on a date; together they are its postings on the reserve account."""
    return [
        ExpectedLine(
            f"{each.customer_id} entry {each.entry_no}",
            each.amount,
            frozenset(each.names),
            each.rail,
            group=f"{each.rail} {day} {each.amount > 0}",
        )
        for each in await list_settling_on(conn, bank_id, day)
        if booked_after is None or each.booked_at > booked_after
    ]


async def list_units(conn: Db, bank_id: UUID, entries: EntryRange, closed_at: datetime) -> dict[str, int]:
    """Return what the custodian holds at the close of a day, by CUSIP: lots and inventory that are settled."""
    return {row["asset"]: row["units"] for row in await conn.fetch(_UNITS, bank_id, entries.last, closed_at)}


class BookedTrade(NamedTuple):
    """An execution that stands, its business date, and the reference of the one that it corrects."""

    trade: Trade
    business_date: date
    former: str | None


async def list_trades(conn: Db, bank_id: UUID, dealer: str, day: date, references: Sequence[str]) -> list[BookedTrade]:
    """Return the executions of a dealer on a day, and those with one of these references, as of its close."""
    rows = await conn.fetch(_TRADES, bank_id, dealer, day, list(references))
    return [
        BookedTrade(Trade(*(row[name] for name in Trade._fields)), row["business_date"], row["former"]) for row in rows
    ]


async def list_dealer_days(conn: Db, bank_id: UUID, since: date) -> list[tuple[str, date]]:
    """Return the dealers with executions since a day, and the days."""
    return [(row["dealer"], row["business_date"]) for row in await conn.fetch(_DEALERS, bank_id, since)]


async def list_open(conn: Db, bank_id: UUID, source: Source, account: str) -> list[Break]:
    """Return the open breaks of an account, oldest first."""
    return await _breaks.all(conn, _OPEN_OF, bank_id, source, account)


async def list_candidates(conn: Db, row: Break, limit: int) -> list[Break]:
    """Return the open breaks of the same account that would cancel this one out, the nearest first."""
    values = row.customer_id, row.source, row.account, row.break_id, row.difference, limit
    return await _breaks.all(conn, _CANDIDATES, *values)


async def find_balance_before(conn: Db, bank_id: UUID, entries: EntryRange) -> int:
    """Return the balance of the reserve account in the ledger before a day, positive for money that the bank has."""
    found: int = await conn.fetchval(_RESERVE_BEFORE, bank_id, entries.after)
    return found


async def find_first_day(
    conn: Db, bank_id: UUID, source: Source, account: str, *, is_stated: bool = False
) -> date | None:
    """Return the first day of an account that was reconciled, or that has a statement."""
    found: date | None = await conn.fetchval(_FIRST_DAY, bank_id, source, account, is_stated)
    return found


async def list_days(conn: Db, bank_id: UUID, since: date) -> list[ReconciledDay]:
    """Return the reconciled days since a date, newest first."""
    return await _days.all(conn, _DAYS_SINCE, bank_id, since)
