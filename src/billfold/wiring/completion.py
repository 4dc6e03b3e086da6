"""The command line without its commands: completes their names in a shell, and answers wrong ones."""

from typing import Annotated

import typer

import billfold
from billfold.wiring.command_list import HELP, abouts_of_commands


def list_app(*, is_production: bool) -> typer.Typer:
    """Return the command line with every command's name and help, none of which can be run."""
    app = typer.Typer(name="billfold", pretty_exceptions_enable=False, rich_markup_mode="rich", help=HELP)
    app.callback()(options)
    for name, about in abouts_of_commands(is_production=is_production).items():
        app.command(name, help=about)(_run)
    return app


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - called by the command line
    if wanted:
        typer.echo(f"billfold {billfold.__version__}")
        raise typer.Exit


def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options before a command."""


def _run() -> None:
    raise typer.BadParameter("Name the command first, as in `billfold serve`; its options follow it.")
