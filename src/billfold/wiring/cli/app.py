"""The command line: the commands of every part, and every failure with a next step."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Annotated

import asyncpg
import typer

from billfold import __version__
from billfold.cli.command import CommandGroup, example, print_error
from billfold.cli.context import CliError
from billfold.migrations.runner import MigrationError
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.validation import SettingsError
from billfold.wiring.cli_context import Wiring

_NO_ACCESS = "Give this user access, or free disk space; BILLFOLD_STATE_DIR names another folder."
_FIRST_SERVER_ERROR = 500
"""From this status on the caller cannot solve the problem."""


_COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "serve": "billfold.wiring.cli.serve",
        "worker": "billfold.wiring.cli.serve",
        "run-https": "billfold.wiring.cli.serve",
        "migrate": "billfold.wiring.cli.migrate",
        "doctor": "billfold.wiring.cli.doctor",
        "verify": "billfold.wiring.cli.verify",
        "backup": "billfold.wiring.cli.backup",
        "backups": "billfold.wiring.cli.backup",
        "restore": "billfold.wiring.cli.backup",
        "openapi": "billfold.wiring.cli.openapi",
        "deprecations": "billfold.wiring.cli.openapi",
        "partner": "billfold.wiring.cli.partner",
        "users": "billfold.team.cli",
        "oauth-client": "billfold.oauth.cli",
        "customers": "billfold.accounts.customers.cli",
        "pocket": "billfold.accounts.pockets.cli",
        "approvals": "billfold.approvals.cli",
        "review": "billfold.onboarding.cli",
        "applications": "billfold.onboarding.applications.cli",
        "agreements": "billfold.onboarding.agreements.cli",
        "screening": "billfold.screening.cli",
        "audit": "billfold.wiring.cli.audit",
        "keys": "billfold.wiring.cli.keys",
        "statements": "billfold.reports.statements.cli",
        "document-keys": "billfold.reports.proofs.cli",
        "proof": "billfold.reports.proofs.cli",
        "market": "billfold.wiring.cli.market",
        "calendar": "billfold.wiring.cli.market",
        "ach": "billfold.payments.ach.cli",
        "wires": "billfold.payments.wires.cli",
        "files": "billfold.payments.files.cli",
        "desk": "billfold.trading.cli",
        "liquidity": "billfold.payments.liquidity.cli",
        "settlement": "billfold.trading.settlement.cli",
        "card-settlement": "billfold.payments.cards.settlement.cli",
        "cash-back": "billfold.payments.cards.cash_back.cli",
        "suspense": "billfold.payments.suspense.cli",
        "clearing": "billfold.payments.clearing.cli",
        "reconcile": "billfold.reconciliation.cli",
        "due-work": "billfold.treasury.cli",
        "cards": "billfold.payments.cards.cli",
        "crypto": "billfold.payments.crypto.cli",
        "custody": "billfold.payments.custody.cli",
        "freezes": "billfold.dual_control.cli",
        "proposals": "billfold.dual_control.cli",
        "adjustment": "billfold.payments.adjustments.cli",
        "tax": "billfold.reports.tax.cli",
        "bench": "billfold.wiring.cli.bench",
        "simulate": "billfold.wiring.cli.simulate",
    }
)
"""The module of each command: a process imports only that of its own command."""
_SANDBOX_COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "sandbox": "billfold.wiring.cli.sandbox",
        "clock": "billfold.sandbox.cli.control",
        "listen": "billfold.sandbox.cli.listen",
        "trigger": "billfold.sandbox.cli.listen",
    }
)
"""Commands that production does not have."""


def build_app(context: Wiring, wanted: str = "") -> typer.Typer:
    """Return the command line: with the requested command, or with all if no command has that name."""
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
    known = _COMMANDS if context.is_production else {**_SANDBOX_COMMANDS, **_COMMANDS}
    modules = [known[wanted]] if wanted in known else dict.fromkeys(known.values())
    for group in _command_groups(modules):
        app.add_typer(group.app, name=group.name)
    return app


def _command_groups(modules: Iterable[str]) -> Iterator[CommandGroup]:
    for name in modules:
        yield from (
            each for each in vars(import_module(name)).values() if isinstance(each, CommandGroup) and not each.nested
        )


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - called by the command line
    if wanted:
        typer.echo(f"billfold {__version__}")
        raise typer.Exit


def run(context: Wiring, arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 1 for a failure, 2 for wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        build_app(context, wanted=words[0] if words else "")(words)
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


def _about(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
