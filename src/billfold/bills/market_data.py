"""The Treasury's rates and auctions that ship with the package, read once per process."""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files as resources_of

from billfold.bills.files import parse_auctions, parse_daily_rates
from billfold.bills.types import Auction, Bill, DailyRates, isin_of

_FOLDER = "data"


@cache
def rates() -> tuple[DailyRates, ...]:
    """Return the daily bill rates from 2023-01-03 to 2026-08-11, oldest first."""
    return parse_daily_rates(_text("bill_rates_2023_2026.csv"))


@cache
def auctions() -> tuple[Auction, ...]:
    """Return the auctions issued from 2018 to 2026-08, oldest issue first.

    Results where they are on record; otherwise, in 2026, only who was issued and when.
    """
    results = parse_auctions(_text("bill_auctions.csv"))
    known = {(auction.cusip, auction.issue_date) for auction in results}
    announced = parse_auctions(_text("bill_on_the_run.csv"))
    announced_only = (row for row in announced if (row.cusip, row.issue_date) not in known)
    return tuple(sorted((*results, *announced_only), key=lambda row: (row.issue_date, row.cusip)))


@cache
def securities() -> tuple[Bill, ...]:
    """Return every bill among the auctions, once, as first issued in them."""
    return securities_of(auctions())


def securities_of(sold: Iterable[Auction]) -> tuple[Bill, ...]:
    """Return the bills that auctions sold, in order of their first issue."""
    first: dict[str, Auction] = {}
    for auction in sorted(sold, key=lambda row: row.issue_date):
        first.setdefault(auction.cusip, auction)
    return tuple(
        Bill(cusip, isin_of(cusip), row.maturity, first_issue=row.issue_date, original_term=row.term)
        for cusip, row in first.items()
    )


def _text(name: str) -> str:
    folder = resources_of("billfold.bills") / _FOLDER
    return (folder / name).read_text(encoding="utf-8")
