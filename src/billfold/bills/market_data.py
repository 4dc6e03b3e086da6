"""Reads the files the Treasury publishes, dealers' quotes, and the market data of the package.

A file is either understood whole or refused with every mistake named by line and column; line 1
is the header. If the caller passes a list `refused`, lines with mistakes are left out and named there.
Empty, `null` and `N/A` mean not published. Columns not named here are ignored.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files as resources_of
from typing import TypeVar

from billfold.bills.types import Auction, Bill, DailyRates, Quote, TwoSidedQuote, is_valid_cusip, isin_of
from billfold.platform.dates import DAY_RANGE, parse_day, require_aware, require_in_range
from billfold.platform.errors import FieldError, InvalidInput

_NULL_CELLS = frozenset({"", "null", "n/a"})
_ERRORS_MAX = 50
_QUOTED_TERM = re.compile(r"(\d{1,3}) WEEKS (BANK DISCOUNT|COUPON EQUIVALENT)")
_TERM = re.compile(r"\d{1,3}-(Week|Day)")
_SLASHED_DATE = re.compile(r"\d{2}/\d{2}/\d{4}")
_TIME_OF_DAY = "T00:00:00"
_RATES_MILLI = -5_000, 25_000
"""Bills have never paid more than 17 %. Values outside this range are in another unit."""
_PRICES_MICROS = 50_000_000, 105_000_000
_SATURDAY = 5
_AUCTION_COLUMNS = ("cusip", "security_term", "auction_date", "issue_date", "maturity_date")
_QUOTE_COLUMNS = ("dealer", "cusip", "quoted_at", "bid", "ask")
_DEALER_CHARS_MAX = 32
_BASES = frozenset({"published", "derived"})

Row = TypeVar("Row")
Cell = TypeVar("Cell")


@dataclass(slots=True)
class _CsvLine:
    """One line of a file: reads its cells and collects their errors."""

    number: int
    cells: Mapping[str, str]
    mistakes: list[FieldError] = field(default_factory=list)

    def refuse(self, column: str, msg: str) -> None:
        self.mistakes.append(FieldError(("line", self.number, column), msg, "value_error"))

    def optional(self, column: str, read: Callable[[str], Cell]) -> Cell | None:
        text = self.cells.get(column, "").strip()
        if text.lower() in _NULL_CELLS:
            return None
        try:
            return read(text)
        except ValueError as error:
            self.refuse(column, str(error))
            return None

    def required(self, column: str, read: Callable[[str], Cell], default: Cell) -> Cell:
        """Return the cell, or `default` after recording that it is missing or invalid."""
        errors_before = len(self.mistakes)
        cell = self.optional(column, read)
        if cell is None and len(self.mistakes) == errors_before:
            self.refuse(column, "must not be empty")
        return default if cell is None else cell


Refused = list[FieldError]


def parse_daily_rates(text: str, refused: Refused | None = None) -> tuple[DailyRates, ...]:
    """Return the rows of a Daily Treasury Bill Rates file, oldest first.

    Columns: `Date` (ISO or MM/DD/YYYY) and pairs of `N WEEKS BANK DISCOUNT` and `N WEEKS COUPON
    EQUIVALENT` in percent; a term is published by both or by neither, a day has at least one.
    Raises InvalidInput.
    """
    header, lines = _csv_lines(text, ("Date",))
    terms = sorted({int(match[1]) for column in header if (match := _QUOTED_TERM.fullmatch(column))})
    if not terms:
        raise InvalidInput.at("line", 1, msg="no column named like `4 WEEKS BANK DISCOUNT`")
    rows = _read_all(lines, lambda line: _daily_rates(line, terms), lambda row: row.day, "Date", refused=refused)
    return tuple(sorted(rows, key=lambda row: row.day))


def parse_auctions(text: str, refused: Refused | None = None) -> tuple[Auction, ...]:
    """Return the bills among the rows of an auctions_query file, in the order of the file.

    Needs cusip, security_term, auction_date, issue_date and maturity_date; reads security_type
    (rows of notes and bonds are skipped), announcemt_date, reopening,
    cash_management_bill_cmb, high_discnt_rate, high_investment_rate, price_per100 and the
    package's own high_investment_rate_basis. Raises InvalidInput.
    """
    _, lines = _csv_lines(text, _AUCTION_COLUMNS)
    bills = (line for line in lines if line.cells.get("security_type", "Bill") == "Bill")
    return tuple(_read_all(bills, _auction, lambda row: (row.cusip, row.issue_date), "cusip", refused=refused))


def parse_quotes(text: str, refused: Refused | None = None) -> tuple[TwoSidedQuote, ...]:
    """Return dealers' quotes in the order of the file.

    Columns: `dealer`, `cusip`, `quoted_at` (ISO with an offset), `bid` and `ask` in dollars per $100.
    Raises InvalidInput.
    """
    _, lines = _csv_lines(text, _QUOTE_COLUMNS)
    return tuple(_read_all(lines, _quote, lambda row: (row.dealer, row.cusip, row.quoted_at), "cusip", refused=refused))


def _quote(line: _CsvLine) -> TwoSidedQuote:
    return TwoSidedQuote(
        line.required("dealer", _dealer, ""),
        line.required("cusip", _cusip, ""),
        line.required("quoted_at", _instant, datetime.min.replace(tzinfo=UTC)),
        line.required("bid", _price_micros, 0),
        line.required("ask", _price_micros, 0),
    )


def _dealer(text: str) -> str:
    if len(text) > _DEALER_CHARS_MAX or not text.isprintable():
        raise ValueError(f"`{text[:_DEALER_CHARS_MAX]}` is not a name of at most {_DEALER_CHARS_MAX} characters")
    return text


def _instant(text: str) -> datetime:
    with suppress(ValueError):
        return require_aware(datetime.fromisoformat(text)).astimezone(UTC)
    raise ValueError(f"`{text}` is not a time with its offset like 2025-06-02T10:31:00-04:00")


def _csv_lines(text: str, needed: Iterable[str]) -> tuple[list[str], Iterator[_CsvLine]]:
    rows = csv.reader(text.removeprefix("\ufeff").splitlines())
    header = [column.strip() for column in next(rows, [])]
    wrong = [FieldError(("line", 1, name), "column is missing", "missing") for name in needed if name not in header]
    wrong += [FieldError(("line", 1, name), "is there twice", "value_error") for name in _repeated(header)]
    if wrong:
        raise InvalidInput(wrong)
    return header, (_line(rows.line_num, header, cells) for cells in rows if cells)


def _repeated(header: list[str]) -> list[str]:
    return [name for name, times in Counter(filter(None, header)).items() if times > 1]


def _line(number: int, header: list[str], cells: list[str]) -> _CsvLine:
    line = _CsvLine(number, dict(zip(header, cells, strict=False)))
    if len(cells) != len(header):
        line.refuse(header[-1], f"the line has {len(cells)} cells, the header {len(header)}")
    return line


def _read_all(
    lines: Iterable[_CsvLine],
    read: Callable[[_CsvLine], Row],
    name_of: Callable[[Row], object],
    name_column: str,
    *,
    refused: Refused | None,
) -> list[Row]:
    """Return all rows; raise InvalidInput with the errors of every line together, unless they go into `refused`."""
    rows: list[Row] = []
    mistakes: list[FieldError] = []
    first_lines: dict[object, int] = {}
    for line in lines:
        row = read(line)
        if not line.mistakes:
            earlier = first_lines.setdefault(name_of(row), line.number)
            if earlier != line.number:
                line.refuse(name_column, f"repeats line {earlier}")
        if not line.mistakes:
            rows.append(row)
        mistakes += line.mistakes
        if refused is None and len(mistakes) >= _ERRORS_MAX:
            break
    if refused is None and mistakes:
        raise InvalidInput(mistakes)
    if refused is not None:
        refused += mistakes[:_ERRORS_MAX]
    return rows


def _daily_rates(line: _CsvLine, terms: Iterable[int]) -> DailyRates:
    day = line.required("Date", _date, date.min)
    quotes = []
    for weeks in terms:
        discount = line.optional(f"{weeks} WEEKS BANK DISCOUNT", _rate_milli)
        coupon = line.optional(f"{weeks} WEEKS COUPON EQUIVALENT", _rate_milli)
        if discount is not None and coupon is not None:
            quotes.append(Quote(weeks, discount, coupon))
            if 0 < discount > coupon:
                line.refuse(f"{weeks} WEEKS COUPON EQUIVALENT", "must not be below the bank discount")
        elif discount is not None or coupon is not None:
            absent = "COUPON EQUIVALENT" if coupon is None else "BANK DISCOUNT"
            line.refuse(f"{weeks} WEEKS {absent}", "must not be empty when its pair is given")
    if not quotes:
        line.refuse("Date", "no rate of any term on this day")
    if day.weekday() >= _SATURDAY:
        line.refuse("Date", "is not a day on which bills trade")
    return DailyRates(day, tuple(quotes))


def _auction(line: _CsvLine) -> Auction:
    price = line.optional("price_per100", _price_micros)
    given_basis = line.optional("high_investment_rate_basis", _basis)
    row = Auction(
        cusip=line.required("cusip", _cusip, ""),
        term=line.required("security_term", _term, ""),
        auction_date=line.required("auction_date", _date, date.min),
        issue_date=line.required("issue_date", _date, date.min),
        maturity=line.required("maturity_date", _date, date.max),
        announced_on=line.optional("announcemt_date", _date),
        high_rate_milli=line.optional("high_discnt_rate", _rate_milli),
        investment_milli=line.optional("high_investment_rate", _rate_milli),
        price_micros=price,
        reopening=line.optional("reopening", _yes_or_no),
        cash_management=bool(line.optional("cash_management_bill_cmb", _yes_or_no)),
        basis="none" if price is None else given_basis or "published",
    )
    if not row.auction_date <= row.issue_date < row.maturity:
        line.refuse("maturity_date", "a bill is auctioned, then issued, then matures")
    return row


def _date(text: str) -> date:
    with suppress(ValueError):
        if _SLASHED_DATE.fullmatch(text):
            return require_in_range(datetime.strptime(text, "%m/%d/%Y").date())  # noqa: DTZ007 (a date, not an instant)
        return parse_day(text.removesuffix(_TIME_OF_DAY))
    raise ValueError(f"`{text}` is not a date like 2025-06-02 or 06/02/2025, {DAY_RANGE}")


def _rate_milli(text: str) -> int:
    return _scaled(text, 3, "a percentage from -5 to 25 with at most three decimals", bounds=_RATES_MILLI)


def _price_micros(text: str) -> int:
    return _scaled(text, 6, "a price per 100 from 50 to 105 with at most six decimals", bounds=_PRICES_MICROS)


def _scaled(text: str, decimals: int, expected: str, *, bounds: tuple[int, int]) -> int:
    with suppress(InvalidOperation):
        scaled = Decimal(text).scaleb(decimals)
        if scaled.is_finite() and scaled == scaled.to_integral_value() and bounds[0] <= scaled <= bounds[1]:
            return int(scaled)
    raise ValueError(f"`{text}` is not {expected}")


def _cusip(text: str) -> str:
    if not is_valid_cusip(text):
        raise ValueError(f"`{text}` is not a CUSIP: its check digit is wrong")
    return text


def _term(text: str) -> str:
    if not _TERM.fullmatch(text):
        raise ValueError(f"`{text}` is not a term like 4-Week or 42-Day")
    return text


def _basis(text: str) -> str:
    if text not in _BASES:
        raise ValueError(f"`{text}` is not one of {', '.join(sorted(_BASES))}")
    return text


def _yes_or_no(text: str) -> bool:
    answers = {"yes": True, "no": False}
    if text.lower() not in answers:
        raise ValueError(f"`{text}` is neither Yes nor No")
    return answers[text.lower()]


_FOLDER = "data"


@cache
def rates() -> tuple[DailyRates, ...]:
    """Return the daily bill rates from 2023-01-03 to 2026-08-11, oldest first."""
    return parse_daily_rates(_text("bill_rates_2023_2026.csv"))


@cache
def auctions() -> tuple[Auction, ...]:
    """Return the auctions issued from 2018 to 2026-08, oldest issue first.

    Results are included where they are on record; the others of 2026 have only issue and dates.
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
