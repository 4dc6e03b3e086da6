"""Results as Markdown: every figure with its ratio to the baseline and its target."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.measurements import Figure, Result

BUSY_PERCENT = 10.0
"""Above this the machine was not ours."""

_PLAIN_BELOW = 100.0
_HEAD = ("| figure | median | unit | ratio | must be | reached |", "|---|---:|---|---:|---:|---|")


def as_markdown(result: Result) -> str:
    """Return the figures as a table, then what was run, and the memory of each process."""
    lines = [f"### `billfold bench {result.name}`", "", *_HEAD, *map(_row, result.figures), ""]
    lines += [f"Setting: {_sentence(result.setting)}.", ""]
    lines += [f"Peak memory: {_sentence({name: f'{mib:,.0f} MiB' for name, mib in result.peak_memory_mib.items()})}."]
    if result.busy_before_percent > BUSY_PERCENT:
        busy = f"{result.busy_before_percent:.0f} % busy"
        lines += ["", f"Something else kept this machine {busy} when this began: the figures say little."]
    return "\n".join([*lines, ""])


def _row(each: Figure) -> str:
    suffix = "" if each.ratio is None else "x"
    ratio = "" if each.ratio is None else f"{each.ratio:.2f}x"
    bound = "" if each.at_most is None else f"<= {each.at_most:g}{suffix}"
    if each.at_least is not None:
        bound = f">= {each.at_least:g}{suffix}"
    median = f"{each.median:,.2f}" if abs(each.median) < _PLAIN_BELOW else f"{each.median:,.0f}"
    reached = {None: "", True: "yes", False: "no"}[each.reached]
    return f"| {each.name} | {median} | {each.unit} | {ratio} | {bound} | {reached} |"


def _sentence(values: Mapping[str, object]) -> str:
    return "; ".join(f"{name} {value}" for name, value in values.items())
