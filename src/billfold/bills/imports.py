"""Loads the market into its tables: the data shipped with the package, and newer Treasury files.

Recorded data never changes, because customers were paid by it: a row that contradicts it is
rejected and reported, unless it only fills in a result that was not out yet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import date
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from billfold.bills import market_data, store
from billfold.bills.market_data import Refused
from billfold.bills.types import Auction, DailyRates, PriceStrike
from billfold.platform.database.connection import Connection
from billfold.platform.errors import FieldError, InvalidInput

_ERRORS_MAX = 50
_MILLI_PER_BP = 10
_INSERT_STRIKE = """
INSERT INTO price_strike (struck_at, day, oldest_at, points) SELECT $1, $2, $3, $4
 WHERE NOT EXISTS (SELECT 1 FROM price_strike WHERE struck_at >= $1) RETURNING true
"""
_UPDATE_RESULT = """
UPDATE auction SET announced_on = coalesce(announced_on, $3), high_rate_milli = $4,
       price_micros = $5, investment_milli = $6, reopening = coalesce(reopening, $7), basis = $8
 WHERE cusip = $1 AND issue_date = $2
"""


class ImportCounts(NamedTuple):
    """Numbers of new rows in a file and of rows already on record."""

    added: int
    known: int


async def load_bundled_market(conn: Connection) -> None:
    """Load the rates and auctions that ship with the package, unless there is a market already."""
    async with conn.transaction():
        await conn.execute("LOCK TABLE auction IN SHARE ROW EXCLUSIVE MODE")
        if not await conn.fetchval("SELECT EXISTS (SELECT 1 FROM security)"):
            await import_auctions(conn, market_data.auctions())
        if not await conn.fetchval("SELECT EXISTS (SELECT 1 FROM bill_rate)"):
            await import_rates(conn, market_data.rates(), today=date.max)


async def import_auctions(
    conn: Connection, auctions: Sequence[Auction], *, refused: Refused | None = None
) -> ImportCounts:
    """Add auctions and the bills they sold. Raises InvalidInput for rows that contradict, or adds them to `refused`."""
    async with conn.transaction():
        bills = {bill.cusip: bill for bill in await store.list_securities(conn)}
        known = {(row.cusip, row.issue_date): row for row in await store.list_auctions(conn)}
        changed_maturities = [
            row for row in auctions if row.cusip in bills and bills[row.cusip].maturity != row.maturity
        ]
        _refuse(
            (
                FieldError((row.cusip, "maturity_date"), f"is {bills[row.cusip].maturity} on record", "value_error")
                for row in changed_maturities
            ),
            refused,
        )
        auctions = [row for row in auctions if row not in changed_maturities]
        new, updated, contradicting = _split_new_and_updated(auctions, known)
        _refuse(contradicting, refused)
        new_bills = [bill for bill in market_data.securities_of(new) if bill.cusip not in bills]
        await _copy(conn, "security", [asdict(bill) for bill in new_bills])
        await _copy(conn, "auction", [_without_maturity(row) for row in new])
        names = ("cusip", "issue_date", "announced_on", "high_rate_milli", "price_micros", "investment_milli")
        results = attrgetter(*names, "reopening", "basis")
        await conn.executemany(_UPDATE_RESULT, [results(row) for row in updated])
    return ImportCounts(len(new) + len(updated), len(auctions) - len(new) - len(updated))


async def import_rates(
    conn: Connection, rates: Sequence[DailyRates], *, today: date, refused: Refused | None = None, max_jump_bps: int = 0
) -> ImportCounts:
    """Add the rates of days not on record. Raises InvalidInput for days that contradict or are yet to come.

    Rates of a later day would be the newest, and so current, until that day. With `refused`, which takes what would
    be raised, nobody has seen the file: days before the newest one, or more than `max_jump_bps` from it, are refused.
    """
    async with conn.transaction():
        known = {row.day: row for row in await store.list_daily_rates(conn)}
        wrong = {row.day: "says otherwise than what is on record" for row in rates if known.get(row.day, row) != row}
        new = [row for row in rates if row.day not in known]
        wrong |= {row.day: f"is after today, {today}" for row in new if row.day > today}
        if refused is not None and known:
            latest = known[max(known)]
            for row in new:
                if row.day in wrong:
                    continue
                if problem := _problem_after(latest, row, max_jump_bps):
                    wrong[row.day] = f"{problem}: import it by hand if it is right"
                else:
                    latest = row
        _refuse((FieldError((day.isoformat(),), msg, "value_error") for day, msg in wrong.items()), refused)
        new = [row for row in new if row.day not in wrong]
        await _copy(conn, "bill_rate", [{"day": row.day, **asdict(quote)} for row in new for quote in row.quotes])
    return ImportCounts(len(new), sum(row.day in known and row.day not in wrong for row in rates))


async def import_strike(conn: Connection, strike: PriceStrike) -> bool:
    """Add a composite of dealers' quotes; return whether it is newer than those on record."""
    values = strike.struck_at, strike.day, strike.oldest_at, msgspec.json.encode(strike.points).decode()
    return await conn.fetchval(_INSERT_STRIKE, *values) is not None


def _problem_after(latest: DailyRates, row: DailyRates, max_jump_bps: int) -> str:
    """Return why rates cannot follow the newest ones unseen, or an empty text."""
    if row.day < latest.day:
        return f"is before {latest.day}, the newest day on record"
    before = {quote.weeks: quote.discount_milli for quote in latest.quotes}
    jumps = (abs(quote.discount_milli - before.get(quote.weeks, quote.discount_milli)) for quote in row.quotes)
    return f"is more than {max_jump_bps} bp from {latest.day}" if max(jumps) > max_jump_bps * _MILLI_PER_BP else ""


def _refuse(mistakes: Iterable[FieldError], refused: Refused | None) -> None:
    """Raise the first mistakes as InvalidInput, or add all of them to `refused`."""
    found = list(mistakes)
    if refused is not None:
        refused += found
    elif found:
        raise InvalidInput(found[:_ERRORS_MAX])


def _split_new_and_updated(
    auctions: Iterable[Auction], known: dict[tuple[str, date], Auction]
) -> tuple[list[Auction], list[Auction], list[FieldError]]:
    """Return new auctions, known ones whose result has come, and what contradicts."""
    new: list[Auction] = []
    updated: list[Auction] = []
    mistakes: list[FieldError] = []
    for row in auctions:
        earlier = known.get((row.cusip, row.issue_date))
        if earlier is None:
            new.append(row)
        elif earlier.basis == "none" and row.basis != "none":
            updated.append(row)
        elif row.basis != "none" and _result(row) != _result(earlier):
            mistakes.append(
                FieldError(
                    (row.cusip, row.issue_date.isoformat()), "says otherwise than what is on record", "value_error"
                )
            )
    return new, updated, mistakes


def _result(row: Auction) -> tuple[object, ...]:
    return row.term, row.price_micros


def _without_maturity(row: Auction) -> dict[str, Any]:
    """Return the columns of an auction; the maturity date is stored with the bill."""
    columns = asdict(row)
    del columns["maturity"]
    return columns


async def _copy(conn: Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        await conn.copy_records_to_table(table, columns=list(rows[0]), records=[tuple(row.values()) for row in rows])
