"""How the command line looks: one console, tables, and an example under each help text."""

import os
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

_WIDTH_WITHOUT_TERMINAL = 200
"""Columns when no terminal shows them: what is broken over lines cannot be searched."""
_WIDEST = 10_000
_has_terminal = sys.stdout.isatty() or "COLUMNS" in os.environ
console = Console(highlight=False, emoji=False, width=None if _has_terminal else _WIDTH_WITHOUT_TERMINAL)
errors = Console(stderr=True, highlight=False, emoji=False, soft_wrap=not sys.stderr.isatty())


def example(*lines: str) -> str:
    """Return the last paragraph of a command's help: how it is called."""
    return "Example:  " + "    ".join(lines)


def print_line(text: str) -> None:
    """Print a line; markup is rendered."""
    console.print(text)


def print_success(text: str) -> None:
    """Print that something succeeded."""
    console.print(f"[green]✓[/] {text}")


def print_warning(text: str) -> None:
    """Print a warning to standard error."""
    errors.print(f"[yellow]![/] {escape(text)}")


def print_error(wrong: str, next_step: str = "") -> None:
    """Print to standard error what is wrong and what to do next."""
    errors.print(f"[red]✗[/] {escape(wrong)}" + (f"\n  [bold]Next:[/] {escape(next_step)}" if next_step else ""))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> RenderableType:
    """Return a table; columns whose name ends with `>` are aligned to the right.

    What is wider than the terminal is shown row by row instead, a line for each column: nothing is cut off.
    """
    grid = Table(title=title or None, title_justify="left", header_style="bold")
    for nth, column in enumerate(columns):
        right = column.endswith(">")
        # The first names the row: what is broken over two lines cannot be copied.
        grid.add_column(column.rstrip(">"), justify="right" if right else "left", no_wrap=nth == 0)
    shown = list(rows)
    for row in shown:
        grid.add_row(*(escape(str(cell)) for cell in row))
    unlimited = console.options.update(max_width=_WIDEST)
    if not shown or console.measure(grid, options=unlimited).maximum <= console.width:
        return grid
    names = [column.rstrip(">") for column in columns]
    blocks = [Padding(key_value_table(zip(names, row, strict=True)), (0, 0, 1, 0)) for row in shown]
    return Group(*filter(None, [title]), *blocks)


def key_value_table(rows: Iterable[tuple[str, object]]) -> Table:
    """Return names with their values beside them, without lines."""
    grid = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(escape(name), escape(str(value)))
    return grid
