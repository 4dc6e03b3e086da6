"""`billfold market` and `billfold calendar`: what the Treasury and the operator know."""

from __future__ import annotations

from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from billfold.bills.business_days.overrides import remove_override, save_override
from billfold.bills.business_days.store import CalendarOverride, list_overrides
from billfold.bills.files import parse_auctions, parse_daily_rates
from billfold.bills.imports import import_auctions, import_rates
from billfold.bills.market_refresh import ACTIVATION_DELAY_SECONDS, REFRESH_SECONDS
from billfold.cli.context import CliError, cli_context
from billfold.cli.output import console, example, print_line, print_success, table
from billfold.cli.resources import read_text_file, run_with_connection

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_REFRESH_NOTE = (
    f"Running processes use what was imported {REFRESH_SECONDS + ACTIVATION_DELAY_SECONDS:.0f} seconds later."
)
market = typer.Typer(
    no_args_is_help=True,
    help=f"Bring the Treasury's newer rates and auctions into the bank. {_REFRESH_NOTE}",
    epilog=example("billfold market import --rates daily-treasury-rates.csv"),
)
calendar = typer.Typer(
    no_args_is_help=True,
    help="Say what the calendars do not know: a day that is closed, or closes early. "
    "A running process knows of it once it is restarted.",
    epilog=example("billfold calendar override 2025-01-09 --bond closed --reason 'Mourning'"),
)

CsvFile = Annotated[Path | None, typer.Option(exists=True, dir_okay=False)]
_RESTART_NOTE = (
    "Restart `billfold serve` and every `billfold worker` together, or the sandbox: "
    "a running process does not know of it."
)


@market.command("import", epilog=example("billfold market import --rates rates.csv --auctions auctions.csv"))
def import_files(ctx: typer.Context, rates: CsvFile = None, auctions: CsvFile = None) -> None:
    """Add a Daily Treasury Bill Rates file and an auctions_query file, as the Treasury wrote them.

    Nothing is changed that is on record: a row that contradicts refuses the whole file.

    Running processes use it some seconds later, all of them: nothing is to be restarted.
    """
    if rates is None and auctions is None:
        raise CliError("There is nothing to import.", "Give --rates FILE or --auctions FILE.")

    async def work(conn: Connection) -> int:
        added = 0
        async with conn.transaction():
            if auctions is not None:
                rows = await import_auctions(conn, parse_auctions(read_text_file(auctions)))
                print_success(f"Auctions: {rows.added} new, {rows.known} known already.")
                added += rows.added
            if rates is not None:
                days = await import_rates(conn, parse_daily_rates(read_text_file(rates)))
                print_success(f"Days of rates: {days.added} new, {days.known} known already.")
                added += days.added
        return added

    if run_with_connection(cli_context(ctx), work):
        print_line(_REFRESH_NOTE)


@calendar.command(epilog=example("billfold calendar override 2025-11-28 --closes 13:00 --reason 'Early close'"))
def override(
    ctx: typer.Context,
    day: Annotated[datetime, typer.Argument(formats=["%Y-%m-%d"])],
    *,
    bond: Annotated[Literal["open", "closed"], typer.Option(help="The bond market on that day.")] = "open",
    fed: Annotated[Literal["open", "closed"], typer.Option(help="The Federal Reserve on that day.")] = "open",
    closes: Annotated[datetime | None, typer.Option(formats=["%H:%M"], help="An early close, New York time.")] = None,
    reason: Annotated[str, typer.Option(help="Why, for whoever reads it later.")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Forget the override.")] = False,
) -> None:
    """Override what the calendars say of one day.

    A running process knows of it once it is restarted.
    """
    on: date = day.date()
    if remove:
        if not run_with_connection(cli_context(ctx), lambda conn: remove_override(conn, on)):
            raise CliError(f"{on} is not overridden.", "See `billfold calendar list`.")
        print_success(f"{on} is as the calendars say again.")
        print_line(_RESTART_NOTE)
        return
    if not reason or (closes and bond == "closed"):
        raise CliError(
            "An override needs a reason, and a closed market does not close early.",
            "Give --reason, and either --closes or --bond closed.",
        )
    early: time | None = closes.time() if closes else None
    calendar_override = CalendarOverride(on, "early" if early else bond, early, fed, reason)
    run_with_connection(cli_context(ctx), lambda conn: save_override(conn, calendar_override))
    print_success(f"{on}: bond market {calendar_override.bond_market}, Reserve {fed}.")
    print_line(_RESTART_NOTE)


@calendar.command("list", epilog=example("billfold calendar list"))
def list_all(ctx: typer.Context) -> None:
    """List the days on which the calendars are overridden."""
    rows = run_with_connection(cli_context(ctx), list_overrides)
    console.print(
        table(
            "",
            ("day", "bond market", "closes", "Reserve", "reason"),
            [(each.day, each.bond_market, each.closes_at or "", each.fed, each.reason) for each in rows],
        )
    )
