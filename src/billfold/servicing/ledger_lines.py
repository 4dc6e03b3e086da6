"""The entries of a customer as lines of an account: what each changed, the balance after it, and what caused it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Final, NamedTuple
from uuid import UUID

from asyncpg import Record

from billfold.platform.database.connection import Db

REACH: Final = 25_000
"""Entries that a page of lines searches, and the most whose changes a balance is derived from."""
_ACCOUNTS = """
SELECT a.account_no, a.kind, a.asset, a.pocket_id, p.name AS pocket, a.credits - a.debits AS balance
  FROM account a LEFT JOIN pocket p ON p.customer_id = a.customer_id AND p.pocket_id = a.pocket_id
 WHERE a.customer_id = $1 AND a.kind NOT IN ('bank', 'on_us', 'street', 'treasury')
 ORDER BY p.opened_at NULLS LAST, a.pocket_id, a.kind, a.asset LIMIT 5000
"""
# What later entries changed is summed over all of them, so that a filter hides lines and leaves balances right.
_LINES = f"""
WITH changed AS MATERIALIZED (
  SELECT e.entry_no, e.kind, e.booked_at, e.business_date, s.change, s.moved, s.has_amount,
         sum(coalesce(s.change, 0)) OVER (ORDER BY e.entry_no DESC) - coalesce(s.change, 0) AS later
    FROM (SELECT entry_no, kind, booked_at, business_date, postings FROM journal_entry
           WHERE customer_id = $1 AND entry_no < $2 AND entry_no >= $2 - {REACH}) e
   CROSS JOIN LATERAL (
     SELECT sum(CASE WHEN p.credit = ANY($3::int[]) THEN p.amount ELSE 0 END
              - CASE WHEN p.debit = ANY($3::int[]) THEN p.amount ELSE 0 END)
              FILTER (WHERE p.phase = 0 AND (p.credit = ANY($3::int[]) OR p.debit = ANY($3::int[]))) AS change,
            max(p.amount) FILTER (WHERE p.asset = 'USD') AS moved,
            bool_or(p.amount = $7 AND p.asset = 'USD') AS has_amount
       FROM unnest(e.postings) p) s)
SELECT entry_no, kind, booked_at, change::bigint AS change, moved, later::bigint AS later FROM changed
 WHERE ($3::int[] IS NULL OR change IS NOT NULL) AND ($4::date IS NULL OR business_date >= $4)
   AND ($5::date IS NULL OR business_date <= $5) AND ($6::text IS NULL OR kind = $6)
   AND ($7::bigint IS NULL OR has_amount OR abs(change) = $7)
 ORDER BY entry_no DESC LIMIT $8
"""
_CHANGED_SINCE = """
SELECT coalesce(sum(CASE WHEN p.credit = ANY($3::int[]) THEN p.amount ELSE 0 END
                  - CASE WHEN p.debit = ANY($3::int[]) THEN p.amount ELSE 0 END), 0)::bigint
  FROM journal_entry e CROSS JOIN LATERAL unnest(e.postings) p
 WHERE e.customer_id = $1 AND e.entry_no >= $2 AND p.phase = 0
"""
_TITLES = """
SELECT t.entry_no, t.title, t.details->>'wire_id' AS wire_id, t.details->>'dispute_id' AS dispute_id,
       (SELECT a.ach_id FROM ach_entry a -- a received credit is none
         WHERE a.customer_id = $1 AND a.ach_id = (t.details->>'ach_id')::uuid) AS ach_id
  FROM transaction t
 WHERE t.customer_id = $1 AND t.pocket_id = ANY($2::uuid[]) AND t.entry_no = ANY($3::bigint[])
 ORDER BY t.entry_no, t.posting_no
"""
_LAST = "SELECT entry_no FROM ledger_head WHERE customer_id = $1"
_PLACES: Mapping[str, str] = {
    "wire_id": "/bank/customers/{owner}/wire/{id}",
    "ach_id": "/bank/customers/{owner}/ach-entry/{id}",
    "dispute_id": "/bank/disputes/{id}",
}
_OF_POCKET = {"cash": "Cash", "lot": "Bills, face value", "owed": "Owed to the bank"}


class Account(NamedTuple):
    """An account of a Pocket, all its bills as one, or of the bank's side: its numbers, and the balance now."""

    name: str
    asset: str
    numbers: tuple[int, ...]
    balance: int


class Line(NamedTuple):
    """An entry: the change of the chosen account and its balance after, or the largest amount that it moved."""

    entry_no: int
    kind: str
    booked_at: datetime
    amount: int | None
    balance: int | None
    titles: tuple[str, ...]
    cause: str


class Wanted(NamedTuple):
    """A search: entries before one, of an account, of days, of a kind, with an amount in cents."""

    before: int | None = None
    account: Account | None = None
    since: date | None = None
    until: date | None = None
    kind: str | None = None
    cents: int | None = None


class Lines(NamedTuple):
    """A page of lines, and the entry before which the next one begins; None at the end."""

    lines: Sequence[Line]
    older: int | None


async def list_accounts(conn: Db, customer_id: UUID) -> tuple[dict[str, Account], list[UUID]]:
    """Return the accounts of a customer by their keys, Pockets first, and the ids of its Pockets."""
    grouped, pockets = defaultdict[tuple[str, str, str], list[Record]](list), dict[UUID, None]()
    for row in await conn.fetch(_ACCOUNTS, customer_id):
        if row["pocket_id"] is None:
            key, name, asset = f"{row['kind']}.{row['asset']}", row["kind"].removeprefix("rail:"), row["asset"]
            name = f"Bank's side: {name.replace('_', ' ')}" + ("" if asset == "USD" else f" {asset}")
        else:
            pockets[row["pocket_id"]] = None
            key, name = f"{row['kind']}.{row['pocket_id']}", f"{row['pocket']}: {_OF_POCKET[row['kind']]}"
            asset = "USD" if row["asset"] == "USD" else "bills"
        grouped[key, name, asset].append(row)
    accounts = {
        key: Account(name, asset, tuple(row["account_no"] for row in rows), sum(row["balance"] for row in rows))
        for (key, name, asset), rows in grouped.items()
    }
    return accounts, list(pockets)


async def list_lines(conn: Db, customer_id: UUID, wanted: Wanted, *, pockets: Sequence[UUID], limit: int) -> Lines:
    """Return the lines of a search, the newest first, searching so many entries as REACH."""
    last = await conn.fetchval(_LAST, customer_id) or 0
    before = min(wanted.before or last + 1, last + 1)
    numbers = None if wanted.account is None else list(wanted.account.numbers)
    filters = (wanted.since, wanted.until, wanted.kind, wanted.cents)
    rows = await conn.fetch(_LINES, customer_id, before, numbers, *filters, limit + 1)
    balance = None
    if wanted.account is not None and last - before < REACH:
        since = await conn.fetchval(_CHANGED_SINCE, customer_id, before, numbers) if before <= last else 0
        balance = wanted.account.balance - since
    entries = [row["entry_no"] for row in rows[:limit]]
    titles, causes = defaultdict[int, list[str]](list), dict[int, str]()
    for row in await conn.fetch(_TITLES, customer_id, pockets, entries):
        titles[row["entry_no"]].append(row["title"])
        for name, place in _PLACES.items():
            if row[name]:
                causes.setdefault(row["entry_no"], place.format(owner=customer_id, id=row[name]))
    lines = [
        Line(
            entry_no=row["entry_no"],
            kind=row["kind"],
            booked_at=row["booked_at"],
            amount=row["moved"] if wanted.account is None else row["change"],
            balance=None if balance is None else balance - row["later"],
            titles=tuple(dict.fromkeys(titles[row["entry_no"]])),
            cause=causes.get(row["entry_no"], ""),
        )
        for row in rows[:limit]
    ]
    return Lines(lines, _older(rows, before, limit))


def _older(rows: Sequence[Record], before: int, limit: int) -> int | None:
    if len(rows) > limit:
        return int(rows[limit - 1]["entry_no"])
    return before - REACH if before > REACH + 1 else None
