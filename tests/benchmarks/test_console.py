"""The pages of the console: their figures stand beside the read of the API, and each has its limits."""

import pytest

from benchmarks.company import CompanyPast
from benchmarks.console import figures_of, pages_of
from benchmarks.load_generator import LoadResult
from benchmarks.measurements import Timing
from billfold.platform import ids

PAST = CompanyPast(2, 40, 20, 20, newest_trade=ids.new(), first_day="2025-06-02", last_page="c", member=ids.new())


@pytest.mark.parametrize(
    ("p99", "bytes_of_one", "reached"),
    [(150.0, 99_999, {True}), (151.0, 99_999, {True, False}), (9.0, 100_001, {True, False})],
)
def test_one_slow_or_large_page_is_enough_to_miss_the_target(p99, bytes_of_one, reached):
    pages = pages_of(PAST)
    usual = [LoadResult(Timing(20, 0.0, 1.0), p50_ms=8.0, p99_ms=9.0, largest=10_000)]
    outcomes = {name: usual for page in pages for name in (page.name, f"API read: {page.name}")}
    outcomes["a trade"] = [LoadResult(Timing(10, 0.0, 1.0), p50_ms=8.0, p99_ms=p99, largest=bytes_of_one)]
    figures = figures_of(pages, outcomes, {page.name: [9.0] for page in pages})
    assert {each.reached for each in figures} - {None} == reached
    (trade,) = (each for each in figures if each.name == "a trade")
    assert (trade.baseline, trade.ratio) == ("API read: a trade", 0.5)
