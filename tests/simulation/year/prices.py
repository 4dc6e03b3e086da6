"""Prices of bills from the Treasury's files, in fractions: nothing here calls what is under test.

The bid of a day is its curve at the days left, on the grid of 0.005 %; the price runs from it on a straight line to
par. Days on which rates were published are those on which the market was open.
"""

import csv
from bisect import bisect_right
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

import billfold

ET = ZoneInfo("America/New_York")
UTC = ZoneInfo("UTC")
FOLDER = Path(billfold.__file__).parent / "bills" / "data"
PAR = 100_000_000
CLOSES, CLOSES_EARLY = time(17), time(14)
EARLY = {
    date.fromisoformat(day)
    for day in (
        *("2023-12-29", "2024-03-28", "2024-05-24", "2024-07-03", "2024-11-29", "2024-12-24", "2024-12-31"),
        *("2025-01-09", "2025-04-17", "2025-05-23", "2025-07-03", "2025-11-28", "2025-12-24", "2025-12-31"),
    )
}
"""SIFMA's recommended early closes."""


def half_up(number):
    return int((Fraction(number) + Fraction(1, 2)) // 1)


def value_of(units, price):
    """Cents of so many bills at a price in micros per $100."""
    return half_up(Fraction(units * price, 10_000))


def instant(day, at=time()):
    return datetime.combine(day, at, tzinfo=ET).astimezone(UTC)


class Prices:
    def __init__(self, closed=()):
        self.curves = {day: curve for day, curve in _curves() if day not in closed}
        self.days = sorted(self.curves)
        self.maturities = _maturities()

    def open_day(self, day):
        """The last day on or before this one on which the market was open."""
        return self.days[bisect_right(self.days, day) - 1]

    def open_day_at(self, at):
        """The last day that had opened by an instant."""
        today = at.astimezone(ET).date()
        return self.open_day(today if at >= instant(today, time(8)) else today - timedelta(days=1))

    def bid(self, cusip, day, settles_on, *, tick=0):
        """The price at the curve of a day for a settlement day; the ask is one `tick` of rate lower."""
        maturity = self.maturities[cusip]
        if settles_on >= maturity:
            return PAR
        rate = self._rate(day, (maturity - day).days) - tick
        return half_up(PAR * (1 - max(rate, 0) / 100 * (maturity - settles_on).days / 360))

    def ask(self, cusip, day, settles_on):
        return self.bid(cusip, day, settles_on, tick=Fraction(5, 1000))

    def on_line(self, cusip, day, at):
        """The price at an instant, on the line that begins at 00:00 of an open day."""
        due = instant(self.maturities[cusip])
        if at >= due:
            return PAR
        left = Fraction((due - at) / timedelta(microseconds=1)) / Fraction(
            (due - instant(day)) / timedelta(microseconds=1)
        )
        return half_up(PAR - (PAR - self.bid(cusip, day, day)) * left)

    def closing(self, cusip, day):
        """The prices on statements: the line at the close of the last open day; par once it is due."""
        if self.maturities[cusip] <= day:
            return PAR
        open_day = self.open_day(day)
        return self.on_line(cusip, open_day, self.closes_at(open_day))

    def closes_at(self, day):
        return instant(day, CLOSES_EARLY if day in EARLY else CLOSES)

    def mark(self, cusip, at):
        """The price shown at an instant: the line at the last whole minute of market time."""
        today, open_day = at.astimezone(ET).date(), self.open_day_at(at)
        closes_at = self.closes_at(open_day)
        tick = at.replace(second=0, microsecond=0) if open_day == today and at < closes_at else closes_at
        return PAR if at >= instant(self.maturities[cusip]) else self.on_line(cusip, open_day, tick)

    def _rate(self, day, days):
        curve = self.curves[day]
        before = after = curve[0]
        for after in curve:
            if days <= after[0]:
                break
            before = after
        span = after[0] - before[0]
        rate = after[1] if days >= after[0] else before[1]
        if before[0] < days < after[0]:
            rate = before[1] + (after[1] - before[1]) * Fraction(days - before[0], span)
        return Fraction(5 * half_up(rate * 200), 1000)


def _curves():
    for row in _rows("bill_rates_2023_2026.csv"):
        quoted = [(name, rate) for name, rate in row.items() if name.endswith("BANK DISCOUNT") and rate]
        yield date.fromisoformat(row["Date"]), [(7 * int(name.split()[0]), Fraction(rate)) for name, rate in quoted]


def _maturities():
    rows = [*_rows("bill_on_the_run.csv"), *_rows("bill_auctions.csv")]
    return {row["cusip"]: date.fromisoformat(row["maturity_date"]) for row in rows}


def _rows(name):
    with (FOLDER / name).open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)
