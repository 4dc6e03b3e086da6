"""Chapters as tables: every figure beside its baseline and what it has to reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from rich.console import Console
from rich.table import Table

from benchmarks.measurements import Figure, Result

BUSY_PERCENT = 10.0
"""Above this the machine was not ours."""

_PLAIN_BELOW = 100.0
_HEADINGS = ("figure", "median", "unit", "ratio", "must be", "reached")
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right", "left", "right", "right", "left")
_STYLES = {None: "", True: "green", False: "red"}


def print_result(console: Console, result: Result) -> None:
    """Print what was run, the figures, and the memory of each process."""
    table = Table(title=f"billfold bench {result.name}", title_justify="left")
    for name, justify in zip(_HEADINGS, _SIDES, strict=True):
        table.add_column(name, justify=justify)
    for each in result.figures:
        table.add_row(*row_of(each), style=_STYLES[each.reached])
    console.print(table)
    console.print(_sentence({name: str(value) for name, value in result.setting.items()}))
    console.print(f"peak memory: {_peaks(result)}")
    if result.busy_before_percent > BUSY_PERCENT:
        console.print(
            f"[yellow]Something else kept this machine {result.busy_before_percent:.0f} % busy"
            " when this began: the figures say little.[/]"
        )


def as_markdown(results: Iterable[Result]) -> str:
    """Return the same tables as Markdown, for a document."""
    parts = []
    for result in results:
        lines = [
            f"### `billfold bench {result.name}`",
            "",
            "| " + " | ".join(_HEADINGS) + " |",
            "|" + "|".join("---:" if side == "right" else "---" for side in _SIDES) + "|",
        ]
        lines += ["| " + " | ".join(row_of(each)) + " |" for each in result.figures]
        setting = {name: str(value) for name, value in result.setting.items()}
        lines += ["", f"Setting: {_sentence(setting)}.", "", f"Peak memory: {_peaks(result)}."]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def row_of(each: Figure) -> tuple[str, ...]:
    """Return the cells of one figure."""
    ratio = "" if each.ratio is None else f"{each.ratio:.2f}x"
    reached = {None: "", True: "yes", False: "no"}[each.reached]
    return each.name, _number(each.median), each.unit, ratio, _bound(each), reached


def _bound(each: Figure) -> str:
    suffix = "" if each.ratio is None else "x"
    if each.at_least is not None:
        return f">= {each.at_least:g}{suffix}"
    return "" if each.at_most is None else f"<= {each.at_most:g}{suffix}"


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < _PLAIN_BELOW else f"{value:,.0f}"


def _peaks(result: Result) -> str:
    return _sentence({name: f"{mib:,.0f} MiB" for name, mib in result.peak_memory_mib.items()})


def _sentence(facts: dict[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in facts.items())
