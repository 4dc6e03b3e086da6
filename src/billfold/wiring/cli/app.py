"""The command line: the commands of every part, and every failure with a next step."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

import asyncpg
import typer

from billfold.cli.command import CommandGroup, example, print_error
from billfold.cli.context import CliError
from billfold.cli.python_process import start_collecting_garbage
from billfold.migrations.runner import MigrationError
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.validation import SettingsError
from billfold.platform.telemetry.logs import configure_logging
from billfold.wiring.cli_context import Wiring
from billfold.wiring.command_list import HELP, modules_of_commands
from billfold.wiring.completion import options

_NO_ACCESS = "Give this user access, or free disk space; BILLFOLD_STATE_DIR names another folder."
_FIRST_SERVER_ERROR = 500
"""From this status on the caller cannot solve the problem."""


def build_app(context: Wiring, wanted: str = "") -> typer.Typer:
    """Return the command line: with the requested command, or with all if no command has that name."""
    app = typer.Typer(
        name="billfold",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help=HELP,
        epilog=example("billfold sandbox"),
        context_settings={"obj": context, "help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    known = modules_of_commands(is_production=context.is_production)
    modules = [known[wanted]] if wanted in known else dict.fromkeys(known.values())
    for group in _command_groups(modules):
        app.add_typer(group.app, name=group.name)
    return app


def _command_groups(modules: Iterable[str]) -> Iterator[CommandGroup]:
    for name in modules:
        yield from (
            each for each in vars(import_module(name)).values() if isinstance(each, CommandGroup) and not each.nested
        )


def run(context: Wiring, arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 1 for a failure, 2 for wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    configure_logging("ERROR")  # a command reports its own result; standard output is for that alone
    try:
        app = build_app(context, wanted=words[0] if words else "")
        start_collecting_garbage()
        app(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except SettingsError as wrong:
        print_error("The settings are invalid.", "Set these variables:")
        for mistake in wrong.mistakes:
            print_error(mistake.sentence)
    except InvalidInput as wrong:
        for error in wrong.errors:
            print_error(f"{'.'.join(map(str, error.loc))}: {error.msg}")
    except (CliError, BillfoldError, MigrationError, asyncpg.PostgresError, OSError) as failure:
        print_error(*_explain(failure, words[0] if words else ""))
    return 1


def _explain(
    failure: CliError | BillfoldError | MigrationError | asyncpg.PostgresError | OSError, command: str
) -> tuple[str, str]:
    """Return the error, and the next step."""
    match failure:
        case CliError(next_step=next_step):
            return str(failure), next_step
        case BillfoldError(detail=detail, code=code):
            return f"{detail} ({code})", _remedy(failure, command)
        case MigrationError(next_step=next_step):
            return f"{failure}.", next_step
        case asyncpg.PostgresError(hint=hint):
            return f"The database refuses: {failure.args[0]}.", hint or "See `billfold doctor`."
        case OSError(strerror=said, filename=name):
            return f"{said or failure}: {name}" if name else f"{said or failure}", _NO_ACCESS


def _remedy(error: BillfoldError, command: str) -> str:
    """The next step: the remedy of a known problem, and `billfold doctor` for server errors."""
    if isinstance(error, NotFound):  # the remedy in the API is meant for a customer
        return f"Check it; `billfold {command} --help` names the commands that list ids."
    known = PROBLEMS.get(error.code)
    return known.remedy if known and known.status < _FIRST_SERVER_ERROR else "See `billfold doctor`."
