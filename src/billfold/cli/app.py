"""The command line: the commands of every part, and every failure with a next step."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from billfold import __path__ as billfold_path
from billfold import __version__
from billfold.cli import __path__ as cli_path
from billfold.cli.command import CommandGroup
from billfold.cli.context import CliContext, CliError
from billfold.cli.output import example, print_error
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.settings import SettingsError

_FIRST_SERVER_ERROR = 500
"""From this status on the caller cannot solve it."""


def build_app(context: CliContext, wanted: str = "") -> typer.Typer:
    """Return the command line with the commands of every part; of this folder alone if `wanted` is one of them.

    So a process of a production bank imports nothing of the sandbox, and no part it does not need.
    """
    app = typer.Typer(
        name="billfold",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="A core for bank accounts that live in US Treasury bills.",
        epilog=example("billfold sandbox"),
        context_settings={"obj": context, "help_option_names": ["-h", "--help"]},
    )
    app.callback()(_about)
    groups = _command_groups(f"{__package__}.{each.name}" for each in pkgutil.iter_modules(cli_path))
    if wanted not in {name for group in groups for name in group.names()}:
        names = [each.name for each in pkgutil.walk_packages(billfold_path, "billfold.")]
        groups += _command_groups(name for name in names if name.endswith(".cli"))
    for group in groups:
        app.add_typer(group.app, name=group.name)
    return app


def _command_groups(modules: Iterable[str]) -> list[CommandGroup]:
    return [
        found
        for name in modules
        for found in vars(importlib.import_module(name)).values()
        if isinstance(found, CommandGroup)
    ]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - called by the command line
    if wanted:
        typer.echo(f"billfold {__version__}")
        raise typer.Exit


def run(context: CliContext, arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 1 for a failure, 2 for wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        build_app(context, wanted=words[0] if words else "")(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except CliError as failure:
        print_error(str(failure), failure.next_step)
    except SettingsError as wrong:
        print_error("The settings are invalid.", "Set these variables:")
        for mistake in wrong.mistakes:
            print_error(mistake.sentence)
    except InvalidInput as wrong:
        for error in wrong.errors:
            print_error(f"{'.'.join(map(str, error.loc))}: {error.msg}")
    except BillfoldError as error:
        print_error(f"{error.detail} ({error.code})", _remedy(error))
    return 1


def _remedy(error: BillfoldError) -> str:
    """The next step: the remedy of a known problem, and `billfold doctor` for server errors."""
    known = PROBLEMS.get(error.code)
    return known.remedy if known and known.status < _FIRST_SERVER_ERROR else "See `billfold doctor`."


def _about(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
