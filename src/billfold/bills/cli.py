"""`billfold market` and `billfold calendar`: imports of market data, and overrides of the calendars."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from billfold.bills.files import parse_auctions, parse_daily_rates
from billfold.bills.imports import import_auctions, import_rates
from billfold.bills.market_refresh import ACTIVATION_DELAY_SECONDS, REFRESH_SECONDS
from billfold.bills.store import CalendarOverride, list_overrides, remove_override, save_override
from billfold.cli.command import CommandGroup, Row
from billfold.cli.context import CliError
from billfold.cli.output import print_line, print_success
from billfold.cli.resources import read_text_file

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_REFRESH_NOTE = (
    f"Running processes use what was imported {REFRESH_SECONDS + ACTIVATION_DELAY_SECONDS:.0f} seconds later."
)
market = CommandGroup(
    "market",
    f"Import newer rates and auctions of the Treasury. {_REFRESH_NOTE}",
    example="import --rates daily-treasury-rates.csv",
)
calendar = CommandGroup(
    "calendar",
    "Override the calendars: a day on which a market is closed or closes early. "
    "A running process knows of it once it is restarted.",
    example="override 2025-01-09 --bond closed --reason 'Mourning'",
)

CsvFile = Annotated[Path | None, typer.Option(exists=True, dir_okay=False)]
_RESTART_NOTE = (
    "Restart `billfold serve` and every `billfold worker` together, or the sandbox: "
    "a running process does not know of it."
)


@market.command("import --rates rates.csv --auctions auctions.csv")
async def import_files(conn: Connection, rates: CsvFile = None, auctions: CsvFile = None) -> None:
    """Import a Daily Treasury Bill Rates file and an auctions_query file, as the Treasury publishes them.

    Recorded data does not change: a contradicting row rejects the whole file.

    Running processes use it some seconds later; nothing has to be restarted.
    """
    if rates is None and auctions is None:
        raise CliError("There is nothing to import.", "Give --rates FILE or --auctions FILE.")
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
    if added:
        print_line(_REFRESH_NOTE)


@calendar.command("override 2025-11-28 --closes 13:00 --reason 'Early close'")
async def override(
    conn: Connection,
    day: Annotated[datetime, typer.Argument(formats=["%Y-%m-%d"])],
    *,
    bond: Annotated[Literal["open", "closed"], typer.Option(help="The bond market on that day.")] = "open",
    fed: Annotated[Literal["open", "closed"], typer.Option(help="The Federal Reserve on that day.")] = "open",
    closes: Annotated[datetime | None, typer.Option(formats=["%H:%M"], help="An early close, New York time.")] = None,
    reason: Annotated[str, typer.Option(help="The reason, for later readers.")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove the override.")] = False,
) -> None:
    """Override the calendars for one day.

    A running process knows of it once it is restarted.
    """
    on: date = day.date()
    if remove:
        if not await remove_override(conn, on):
            raise CliError(f"{on} is not overridden.", "See `billfold calendar list`.")
        print_success(f"{on} follows the calendars again.")
    elif not reason or (closes and bond == "closed"):
        raise CliError(
            "An override needs a reason, and a closed market does not close early.",
            "Give --reason, and either --closes or --bond closed.",
        )
    else:
        early: time | None = closes.time() if closes else None
        saved = CalendarOverride(on, "early" if early else bond, early, fed=fed, reason=reason)
        await save_override(conn, saved)
        print_success(f"{on}: bond market {saved.bond_market}, Federal Reserve {fed}.")
    print_line(_RESTART_NOTE)


@calendar.table("list", columns=("day", "bond market", "closes", "Reserve", "reason"))
async def list_all(conn: Connection) -> Iterable[Row]:
    """List the overridden days."""
    overrides = await list_overrides(conn)
    return [(each.day, each.bond_market, each.closes_at or "", each.fed, each.reason) for each in overrides]
