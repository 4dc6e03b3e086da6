"""A chapter as a table: every figure beside its baseline and what it has to reach."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from billfold.bench.measure import Chapter, Figure

_PLAIN_BELOW = 100.0


def print_chapter(console: Console, chapter: Chapter) -> None:
    """Print what was run, the figures, and the memory of each process."""
    table = Table(title=f"billfold bench {chapter.name}", title_justify="left")
    table.add_column("figure")
    table.add_column("median", justify="right")
    table.add_column("unit")
    table.add_column("ratio", justify="right")
    table.add_column("must be", justify="right")
    table.add_column("reached")
    for each in chapter.figures:
        table.add_row(*row_of(each))
    console.print(table)
    console.print(_sentence({name: str(value) for name, value in chapter.setting.items()}))
    peaks = {name: f"{mib:,.0f} MiB" for name, mib in chapter.peak_memory_mib.items()}
    console.print(f"peak memory: {_sentence(peaks)}")


def row_of(each: Figure) -> tuple[str, ...]:
    """Return the cells of one figure."""
    ratio = "" if each.ratio is None else f"{each.ratio:.2f}x"
    reached = {None: "", True: "[green]yes[/]", False: "[red]no[/]"}[each.reached]
    return each.name, _number(each.median), each.unit, ratio, _bound(each), reached


def _bound(each: Figure) -> str:
    suffix = "" if each.ratio is None else "x"
    if each.at_least is not None:
        return f">= {each.at_least:g}{suffix}"
    return "" if each.at_most is None else f"<= {each.at_most:g}{suffix}"


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < _PLAIN_BELOW else f"{value:,.0f}"


def _sentence(facts: dict[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in facts.items())
