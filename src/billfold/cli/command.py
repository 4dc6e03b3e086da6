"""Declares operator commands: their requirements, usage and output.

    group = CommandGroup("wires", "Recall a wire, or return one.", example="cases")

    @group.command(f"recall {EXAMPLE_ID} --reason DUPL")
    async def recall(bank: Bank, wire_id: WireId) -> str: ...

The first word of the usage is the command's name. Parameters named `bank`, `conn`, `context` and `ctx`
are supplied by the runner; the others are the command's arguments and options.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar, cast, get_type_hints
from uuid import UUID

import typer
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from billfold.audit.record import record
from billfold.audit.rules import NewEntry, Outcome
from billfold.cli.context import CliContext, CliError, run_with_bank, run_with_connection
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.types import Origin
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection
from billfold.platform.dates import DAY_RANGE, format_eastern, parse_day, parse_instant
from billfold.platform.errors import BillfoldError

_WIDTH_WITHOUT_TERMINAL = 200
"""Columns if the output is not a terminal: wrapped lines cannot be searched."""
_WIDEST = 10_000
_has_terminal = sys.stdout.isatty() or "COLUMNS" in os.environ
console = Console(highlight=False, emoji=False, width=None if _has_terminal else _WIDTH_WITHOUT_TERMINAL)
errors = Console(stderr=True, highlight=False, emoji=False, soft_wrap=not sys.stderr.isatty())


def example(*lines: str) -> str:
    """Return the last paragraph of a command's help: its usage."""
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
    """Print an error and the next step to standard error."""
    errors.print(f"[red]✗[/] {escape(wrong)}" + (f"\n  [bold]Next:[/] {escape(next_step)}" if next_step else ""))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> RenderableType:
    """Return a table; columns whose name ends with `>` are aligned to the right.

    A table wider than the terminal is shown row by row instead, one line per column: nothing is cut off.
    """
    grid = Table(title=title or None, title_justify="left", header_style="bold")
    for nth, column in enumerate(columns):
        right = column.endswith(">")
        # The first column identifies the row: an id wrapped over two lines cannot be copied.
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
    """Return names with their values next to them, without lines."""
    grid = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(escape(name), escape(str(value)))
    return grid


_OWN_LOG = "SELECT bank_customer_id FROM bank"


class OperatorAction:
    """One command as entered: its action, like `partner.add_key`, and its arguments."""

    def __init__(self, group: str | None, command: str, arguments: Mapping[str, object]) -> None:
        self._resource = (group or "bank").replace("-", "_").replace(" ", "_")
        self._action = f"{self._resource}.{command.replace('-', '_')}"
        self._arguments = {name: _shown(value) for name, value in arguments.items() if value is not None}

    async def run_with_bank(self, bank: Bank, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 - the command's
        """Do the work, which has its own transactions, and record its result."""
        try:
            result = await work()
        except (BillfoldError, CliError) as failure:
            await self._record_alone(bank, "FAILURE", refused=str(failure))
            raise
        await self._record_alone(bank, "SUCCESS")
        return result

    async def run_with_connection(self, bank: Bank, work: Callable[[Connection], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Do the work and record it in one transaction; a failure is recorded in a separate one."""
        try:
            async with bank.pool.acquire() as conn, conn.transaction():
                result = await work(conn)
                await self._record(bank, conn, "SUCCESS")
        except (BillfoldError, CliError) as failure:
            await self._record_alone(bank, "FAILURE", refused=str(failure))
            raise
        return result

    async def _record_alone(self, bank: Bank, outcome: Outcome, **details: str) -> None:
        async with bank.pool.acquire() as conn, conn.transaction():
            await self._record(bank, conn, outcome, **details)

    async def _record(self, bank: Bank, conn: Connection, outcome: Outcome, **details: str) -> None:
        entry = NewEntry(
            customer_id=await conn.fetchval(_OWN_LOG),
            origin=Origin(kind="OPERATOR", name=bank.settings.operator),
            action=self._action,
            resource_type=self._resource,
            outcome=outcome,
            details={**self._arguments, **details},
        )
        await record(conn, bank.vault, entry, now=wall_now())


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


EXAMPLE_ID = "5d0c2a4e-8f00-8000-8000-0000000000e1"
OPERATOR = "operator"
Row = Sequence[object]
Work = TypeVar("Work", bound=Callable[..., Any])
_SUPPLIED = frozenset({"bank", "conn", "context", "ctx"})


class CommandGroup:
    """The commands of one part of the bank; without a name they stand at the top."""

    def __init__(
        self, name: str | None = None, about: str | None = None, *, example: str = "", nested: bool = False
    ) -> None:
        self.name = name
        self.nested = nested
        self.app = typer.Typer(no_args_is_help=True, help=about, epilog=self._usage(example))

    def without_command(self, work: Work) -> Work:
        """Declare the action of the group when none of its commands is named."""
        self.app.info.no_args_is_help = False
        run = _runnable(work, _print_result, None)

        @functools.wraps(run)
        def run_alone(ctx: typer.Context, **values: Any) -> None:
            if ctx.invoked_subcommand is None:
                run(ctx, **values)

        self.app.callback(invoke_without_command=True, no_args_is_help=False, help=self.app.info.help)(run_alone)
        return work

    def subgroup(self, name: str, about: str, *, example: str) -> CommandGroup:
        """Return a group below this one: `billfold partner keys list`."""
        below = CommandGroup(f"{self.name} {name}", about, example=example, nested=True)
        self.app.add_typer(below.app, name=name)
        return below

    def command(self, *usages: str, **options: Any) -> Callable[[Work], Work]:
        """Declare a command by its usage; a string that it returns is printed as a success message.

        With a bank or a connection it makes changes: the action and the operator are recorded in the bank's audit log.
        """
        return partial(self._declare, usages, options, _print_result, True)  # noqa: FBT003 - whether it is audited

    def view(self, *usages: str) -> Callable[[Work], Work]:
        """Declare a command that only shows something."""
        return partial(self._declare, usages, {}, _print_result, False)  # noqa: FBT003 - as above

    def table(self, *usages: str, columns: Sequence[str], empty: str = "", title: str = "") -> Callable[[Work], Work]:
        """Declare a command that returns the rows of a table; `empty` is printed when there are none."""

        def show(rows: Iterable[Row]) -> None:
            cells = [[_cell(each) for each in row] for row in rows]
            if empty and not cells:
                print_success(empty)
            else:
                console.print(table(title, columns, cells))

        return partial(self._declare, usages, {}, show, False)  # noqa: FBT003 - as above

    def _declare(
        self,
        usages: Sequence[str],
        options: dict[str, Any],
        show: Callable[[Any], None],
        audited: bool,  # noqa: FBT001 - bound by the declarations above
        work: Work,
    ) -> Work:
        name = usages[0].split()[0]
        action = partial(OperatorAction, self.name, name) if audited else None
        self.app.command(name, epilog=self._usage(*usages), **options)(_runnable(work, show, action))
        return work

    def _usage(self, *usages: str) -> str:
        prefix = f"billfold {self.name}" if self.name else "billfold"
        return example(*(f"{prefix} {usage}" for usage in usages))


def _runnable(
    work: Callable[..., Any], show: Callable[[Any], None], audited: Callable[[dict[str, Any]], OperatorAction] | None
) -> Callable[..., None]:
    """Return the function for Typer: it has the command's own parameters, resolved, and supplies the others."""

    def run(ctx: typer.Context, **values: Any) -> None:
        context = cast("CliContext", ctx.obj)
        action = audited and audited(values)
        call = partial(work, **values, **{name: each for name, each in _given_options(ctx).items() if name in supplied})
        if action and "conn" in supplied:
            show(
                run_with_bank(
                    context, lambda bank: action.run_with_connection(bank, _with_connection(call, bank, supplied))
                )
            )
        elif action and "bank" in supplied:
            show(run_with_bank(context, lambda bank: action.run_with_bank(bank, lambda: call(bank=bank))))
        elif "bank" in supplied:
            show(run_with_bank(context, lambda bank: call(bank=bank)))
        elif "conn" in supplied:
            show(run_with_connection(context, lambda conn: call(conn=conn)))
        else:
            show(call())

    parameters = inspect.signature(work).parameters
    supplied = _SUPPLIED & parameters.keys()
    own = {name: each for name, each in parameters.items() if name not in _SUPPLIED}
    # The types of supplied parameters are imported only for the type checker: only the others are resolved.
    annotations = SimpleNamespace(__annotations__={name: each.annotation for name, each in own.items()})
    hints = get_type_hints(annotations, work.__globals__, include_extras=True)
    run.__doc__, run.__name__, run.__annotations__ = work.__doc__, work.__name__, hints | {"ctx": typer.Context}
    first = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    resolved = [each.replace(annotation=hints[name]) for name, each in own.items()]
    run.__signature__ = inspect.Signature([first, *resolved])  # type: ignore[attr-defined]  # what `inspect.signature` reads first
    return run


def _with_connection(
    call: Callable[..., Any], bank: Bank, supplied: Container[str]
) -> Callable[[Connection], Awaitable[Any]]:
    """Return the work on a connection, with the bank too when it names both."""
    own = {"bank": bank} if "bank" in supplied else {}
    return lambda conn: call(conn=conn, **own)


def _given_options(ctx: typer.Context) -> dict[str, object]:
    return {"ctx": ctx, "context": ctx.obj}


def _print_result(result: object) -> None:
    if isinstance(result, str):
        print_success(result)


def _cell(value: object) -> object:
    if value is None:
        return "-"
    return format_eastern(value) if isinstance(value, datetime) else value


async def customer_of_pocket(bank: Bank, pocket_id: UUID) -> UUID:
    """Return the customer who has this Pocket. Raises CliError."""
    entry = await bank.directory.find("pocket", pocket_id)
    if entry is None:
        raise CliError(f"There is no Pocket {pocket_id}.", "Find its id in the API.")
    return entry.customer_id


def parse_day_option(text: str) -> date:
    """Return the day that an argument or option names. Raises BadParameter."""
    try:
        return parse_day(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a day {DAY_RANGE}, like 2025-06-02.") from None


def parse_instant_option(text: str) -> datetime:
    """Return the instant that an option names, in UTC. Raises BadParameter."""
    try:
        return parse_instant(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a date-time with an offset, {DAY_RANGE}.") from None


DayOption = partial(typer.Option, parser=parse_day_option, metavar="YYYY-MM-DD")
Alone = Annotated[bool, typer.Option("--alone", help="Without a second operator, in an emergency.")]


def require_alone(what: str, *, alone: bool) -> None:
    """Refuse a freeze by a single operator without `--alone`. Raises CliError."""
    if not alone:
        step = f"Run `billfold freezes propose {what} <id> --reason ...`; in an emergency add --alone."
        raise CliError("A freeze, or its end, needs a second operator.", step)


async def submit_as_operator(
    bank: Bank, command: Callable[..., Command], *customers: UUID, key: UUID | None = None, **fields: Any
) -> dict[str, Any]:
    """Submit a command on behalf of the operator; return its outcome. A new key is drawn without one."""
    answer = await bank.engine.submit(
        command(caller=OPERATOR, key=key or ids.new(), customers=customers, origin=Origin.operator(), **fields)
    )
    return answer.outcome
