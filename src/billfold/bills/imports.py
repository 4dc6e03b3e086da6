"""Loads the market into its tables: the data shipped with the package, and newer Treasury files.

Recorded data never changes, because customers were paid by it: a row that contradicts it is
rejected and reported, unless it only fills in a result that was not out yet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import date
from operator import attrgetter
from typing import Any, NamedTuple

from billfold.bills import market_data, store
from billfold.bills.types import Auction, DailyRates
from billfold.platform.database.connection import Connection
from billfold.platform.errors import FieldError, InvalidInput

_ERRORS_MAX = 50
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


async def import_auctions(conn: Connection, auctions: Sequence[Auction]) -> ImportCounts:
    """Add auctions and the bills they sold. Raises InvalidInput for rows that contradict."""
    async with conn.transaction():
        bills = {bill.cusip: bill for bill in await store.list_securities(conn)}
        known = {(row.cusip, row.issue_date): row for row in await store.list_auctions(conn)}
        new, updated = _split_new_and_updated(auctions, known)
        new_bills = [bill for bill in market_data.securities_of(new) if bill.cusip not in bills]
        changed_maturities = [
            row for row in auctions if row.cusip in bills and bills[row.cusip].maturity != row.maturity
        ]
        if changed_maturities:
            raise InvalidInput(
                FieldError((row.cusip, "maturity_date"), f"is {bills[row.cusip].maturity} on record", "value_error")
                for row in changed_maturities[:_ERRORS_MAX]
            )
        await _copy(conn, "security", [asdict(bill) for bill in new_bills])
        await _copy(conn, "auction", [_without_maturity(row) for row in new])
        names = ("cusip", "issue_date", "announced_on", "high_rate_milli", "price_micros", "investment_milli")
        results = attrgetter(*names, "reopening", "basis")
        await conn.executemany(_UPDATE_RESULT, [results(row) for row in updated])
    return ImportCounts(len(new) + len(updated), len(auctions) - len(new) - len(updated))


async def import_rates(conn: Connection, rates: Sequence[DailyRates], *, today: date) -> ImportCounts:
    """Add the rates of days not on record. Raises InvalidInput for days that contradict or are yet to come.

    Rates of a later day would be the newest, and so current, until that day.
    """
    async with conn.transaction():
        known = {row.day: row for row in await store.list_daily_rates(conn)}
        new = [row for row in rates if row.day not in known]
        same = [row for row in rates if row.day in known]
        wrong = {row.day: "says otherwise than what is on record" for row in same if known[row.day] != row}
        wrong |= {row.day: f"is after today, {today}" for row in new if row.day > today}
        if wrong:
            raise InvalidInput(
                FieldError((day.isoformat(),), msg, "value_error") for day, msg in list(wrong.items())[:_ERRORS_MAX]
            )
        await _copy(conn, "bill_rate", [{"day": row.day, **asdict(quote)} for row in new for quote in row.quotes])
    return ImportCounts(len(new), len(same))


def _split_new_and_updated(
    auctions: Iterable[Auction], known: dict[tuple[str, date], Auction]
) -> tuple[list[Auction], list[Auction]]:
    """Return new auctions, and known ones whose result has come. Raises InvalidInput."""
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
    if mistakes:
        raise InvalidInput(mistakes[:_ERRORS_MAX])
    return new, updated


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
