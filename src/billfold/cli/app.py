"""The command line as a whole: every command in its place, every failure with a next step."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from billfold import __version__
from billfold.access.oauth import cli as clients
from billfold.access.partners import cli as partners
from billfold.access.users import cli as people
from billfold.accounts.pockets import cli as pockets
from billfold.approvals import cli as approvals
from billfold.audit import cli as audit
from billfold.bills import cli as market
from billfold.cli import bench, doctor
from billfold.cli import migrate as database
from billfold.cli import openapi as reference
from billfold.cli import serve as running
from billfold.cli.context import CliContext, CliError
from billfold.cli.output import example, print_error
from billfold.events import cli as listen
from billfold.events.webhooks import cli as trigger
from billfold.onboarding import cli as review
from billfold.payments.ach import cli as ach
from billfold.payments.adjustments import cli as adjusting
from billfold.payments.clearing import cli as clearing
from billfold.payments.custody import cli as custody
from billfold.payments.files import cli as files
from billfold.payments.suspense import cli as suspense
from billfold.payments.wires import cli as wires
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.validation import SettingsError
from billfold.sandbox import cli as sandbox
from billfold.sandbox.clock import cli as clock
from billfold.verify import cli as proof

_FIRST_SERVER_ERROR = 500
"""From this status on the caller cannot help it."""

_GROUPS = {
    "ach": ach.app,
    "approvals": approvals.app,
    "audit": audit.app,
    "client": clients.app,
    "credit": adjusting.app,
    "custody": custody.app,
    "suspense": suspense.app,
    "clock": clock.app,
    "migrate": database.app,
    "files": files.app,
    "partner": partners.app,
    "people": people.app,
    "pocket": pockets.app,
    "review": review.app,
    "market": market.market,
    "calendar": market.calendar,
    "wires": wires.app,
    "openapi": reference.openapi,
}


def build_app(ground: CliContext) -> typer.Typer:
    """Return the command line, standing on what the wiring lends."""
    app = typer.Typer(
        name="billfold",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="A core for bank accounts that live in US Treasury bills.",
        epilog=example("billfold sandbox"),
        context_settings={"obj": ground, "help_option_names": ["-h", "--help"]},
    )
    app.callback()(_about)
    app.command(running.HTTPS, hidden=True)(running.run_https)
    app.command(running.HTTP, hidden=True)(running.run_http)
    app.command(epilog=example("billfold sandbox --fresh --seed 7"))(sandbox.sandbox)
    app.command(epilog=example("BILLFOLD_PORT=9443 billfold serve"))(running.serve)
    app.command(epilog=example("billfold worker"))(running.worker)
    forward_example = "billfold listen --forward-to localhost:4242/webhooks"
    app.command(epilog=example("billfold listen", forward_example))(listen.listen)
    trigger_example = "billfold trigger transfers.wire.in.success"
    app.command(epilog=example(trigger_example, "billfold trigger"))(trigger.trigger)
    app.command(epilog=example("billfold verify"))(proof.verify)
    app.command(epilog=example("billfold clearing --payments"))(clearing.clearing)
    app.command(epilog=example("billfold doctor"))(doctor.doctor)
    app.command(epilog=example("billfold deprecations"))(reference.deprecations)
    app.command(context_settings=bench.ARGUMENTS_AS_THEY_ARE)(bench.bench)
    for name, group in _GROUPS.items():
        app.add_typer(group, name=name)
    return app


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - called by the command line
    if wanted:
        typer.echo(f"billfold {__version__}")
        raise typer.Exit


def run(ground: CliContext, arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the status to end with: 0, 1 when it failed, 2 when misused."""
    try:
        build_app(ground)(list(sys.argv[1:] if arguments is None else arguments))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except CliError as failure:
        print_error(str(failure), failure.next_step)
    except SettingsError as wrong:
        print_error("The settings are wrong.", "Set the variables named here:")
        for mistake in wrong.mistakes:
            print_error(mistake.sentence)
    except InvalidInput as wrong:
        for error in wrong.errors:
            print_error(f"{'.'.join(map(str, error.loc))}: {error.msg}")
    except BillfoldError as error:
        print_error(f"{error.detail} ({error.code})", _remedy(error))
    return 1


def _remedy(error: BillfoldError) -> str:
    """What to do next: what the register says of a refusal, and of what is broken its doctor."""
    known = PROBLEMS.get(error.code)
    return known.remedy if known and known.status < _FIRST_SERVER_ERROR else "See `billfold doctor`."


def _about(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass
