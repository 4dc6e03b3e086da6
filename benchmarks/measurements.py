"""The results of a run: timings, figures with their baselines, and the peak memory of processes."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import psutil

Log = Callable[[str], None]
"""Told what is being done now."""

_KIB_PER_MIB = 1024
_DIGITS = 4


class Timing(msgspec.Struct, frozen=True):
    """Work done between two readings of the machine's monotonic clock, in seconds."""

    done: int
    started: float
    ended: float


class Figure(msgspec.Struct, kw_only=True):
    """One measured quantity: every run, their median, and the ratio to the baseline's median.

    `at_least` and `at_most` bound the ratio, or the median where there is no baseline.
    """

    name: str
    unit: str
    runs: list[float]
    median: float
    baseline: str | None = None
    ratio: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    reached: bool | None = None


class Result(msgspec.Struct, kw_only=True):
    """The figures of one benchmark, what was run, and MiB of memory per process.

    `busy_before_percent` is what the machine was doing otherwise when it began.
    """

    name: str
    setting: dict[str, Any]
    figures: list[Figure]
    peak_memory_mib: dict[str, float]
    busy_before_percent: float = 0.0


def rate(timings: Sequence[Timing]) -> float:
    """Return things per second of workloads that ran side by side."""
    return sum(timing.done for timing in timings) / seconds_of(timings)


def seconds_of(timings: Sequence[Timing]) -> float:
    """Return how long workloads took that ran side by side."""
    return max(timing.ended for timing in timings) - min(timing.started for timing in timings)


def figure(
    name: str,
    unit: str,
    runs: Sequence[float],
    *,
    against: Figure | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Figure:
    """Return the figure of some runs, `against` a baseline of the same rounds."""
    middle = median(runs)
    ratio = None if against is None else middle / against.median
    judged = middle if ratio is None else ratio
    reached = None
    if at_least is not None or at_most is not None:
        reached = (at_least is None or judged >= at_least) and (at_most is None or judged <= at_most)
    return Figure(
        name=name,
        unit=unit,
        runs=[_short(run) for run in runs],
        median=_short(middle),
        baseline=None if against is None else against.name,
        ratio=None if ratio is None else _short(ratio),
        at_least=at_least,
        at_most=at_most,
        reached=reached,
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that `percent` of the values do not exceed."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]


def peak_memory_mib(pid: int) -> float:
    """Return the most memory a process ever held, in MiB; what it holds now where unknown.

    For a PostgreSQL process that counts the shared buffers it has touched.
    """
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / _KIB_PER_MIB, 1)
    return round(psutil.Process(pid).memory_info().rss / _KIB_PER_MIB**2, 1)


def peak_memory_of_server(pid: int) -> dict[str, float]:
    """Return the peak of a process under its name, and of the largest of its children."""
    family = psutil.Process(pid)
    peaks = {"postmaster": peak_memory_mib(pid)}
    children = []
    for child in family.children():
        with suppress(psutil.NoSuchProcess):  # one that has just ended
            children.append(peak_memory_mib(child.pid))
    if children:
        peaks["largest backend"] = max(children)
    return peaks


def cpu_seconds(pid: int) -> float:
    """Return what a process has spent, and its children, those that have ended too."""
    process = psutil.Process(pid)
    total = sum(process.cpu_times()[:4])  # own and of children that have ended, as user and in the system
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            total += sum(child.cpu_times()[:2])
    return total


def busy_percent() -> float:
    """Return how busy the machine is with something else, watching for a second."""
    return psutil.cpu_percent(interval=1.0)


def machine() -> dict[str, Any]:
    """Return what a reader needs to know of the machine."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 1024**3, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": sys.version.split()[0],
    }


def _short(value: float) -> float:
    """Round to four digits that mean something."""
    return float(f"{value:.{_DIGITS}g}") if abs(value) < 10**_DIGITS else float(round(value))
