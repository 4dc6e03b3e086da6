"""Measurements: medians, ratios, targets, and the memory of a process."""

import pytest

from benchmarks.measurements import Timing, figure, percentile, rate


def test_the_ratio_compares_medians_when_there_is_a_baseline():
    base = figure("bare", "per second", [90.0, 100.0, 5000.0])
    subject = figure("whole", "per second", [50.0, 1.0, 60.0], against=base)
    assert (subject.median, subject.baseline, subject.ratio) == (50.0, "bare", 0.5)


@pytest.mark.parametrize(
    ("bounds", "reached"),
    [
        ({}, None),
        ({"at_least": 0.5}, True),
        ({"at_least": 0.6}, False),
        ({"at_most": 0.5}, True),
        ({"at_most": 0.4}, False),
    ],
)
def test_bounds_apply_to_the_ratio_when_there_is_a_baseline(bounds, reached):
    base = figure("bare", "per second", [100.0])
    assert figure("whole", "per second", [50.0], against=base, **bounds).reached is reached


def test_bounds_apply_to_the_median_when_there_is_no_baseline():
    assert figure("day end", "s", [70.0, 50.0, 40.0], at_most=60.0).reached is True


def test_parallel_laps_count_from_the_first_start_to_the_last_end():
    assert rate([Timing(10, 1.0, 3.0), Timing(10, 2.0, 6.0)]) == 4.0


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (99, 99), (100, 100), (1, 1)])
def test_a_percentile_is_a_measured_value(percent, expected):
    assert percentile([*range(100, 0, -1)], percent) == expected
