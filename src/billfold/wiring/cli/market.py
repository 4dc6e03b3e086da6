"""`billfold market` and `billfold calendar`: imports of market data, and overrides of the calendars."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal

import asyncpg
import typer

from billfold.bills.imports import import_auctions, import_rates
from billfold.bills.market_data import parse_auctions, parse_daily_rates, parse_quotes
from billfold.bills.rules.market import market_data_states
from billfold.bills.store import CalendarOverride, list_overrides, remove_override, save_override
from billfold.cli.command import CommandGroup, Row, parse_day_option, print_line, print_success
from billfold.cli.context import CliError, read_text_file
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.calendars import Calendars, DayOverride
from billfold.platform.clock import business_now, wall_now
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date
from billfold.treasury.market_log import IN_USE_AFTER_SECONDS, market_change
from billfold.treasury.price_fetch import PriceFetch, latest_day, list_fetches, strike_prices
from billfold.treasury.price_sources import price_sources_of

_REFRESH_NOTE = f"Running processes use it {IN_USE_AFTER_SECONDS:.0f} seconds later."
market = CommandGroup(
    "market",
    f"Import newer rates and auctions of the Treasury. {_REFRESH_NOTE}",
    example="import --rates daily-treasury-rates.csv",
)
calendar = CommandGroup(
    "calendar",
    f"Override the calendars: a day on which a market is closed or closes early. {_REFRESH_NOTE}",
    example="override 2025-01-09 --bond closed --reason 'Mourning'",
)

CsvFile = Annotated[Path | None, typer.Option(exists=True, dir_okay=False)]
OpenOrClosed = Literal["open", "closed"] | None


@market.command("import --rates rates.csv --auctions auctions.csv")
async def import_files(
    bank: Bank, conn: Connection, rates: CsvFile = None, auctions: CsvFile = None, quotes: CsvFile = None
) -> None:
    """Import a Daily Treasury Bill Rates file, an auctions_query file, as the Treasury publishes them, or quotes.

    Recorded data does not change: a contradicting row rejects the whole file.

    Running processes use it some seconds later; nothing has to be restarted.
    """
    if rates is None and auctions is None and quotes is None:
        raise CliError("There is nothing to import.", "Give --rates FILE, --auctions FILE or --quotes FILE.")
    added = 0
    async with _change(bank, conn):
        if auctions is not None:
            rows = await import_auctions(conn, parse_auctions(read_text_file(auctions)))
            print_success(f"Auctions: {rows.added} new, {rows.known} known already.")
            added += rows.added
        if rates is not None:
            today = await latest_day(bank)
            days = await import_rates(conn, parse_daily_rates(read_text_file(rates)), today=today)
            print_success(f"Days of rates: {days.added} new, {days.known} known already.")
            added += days.added
    if quotes is not None:
        origin = Origin(kind="OPERATOR", name=bank.settings.operator)
        if not await strike_prices(bank, parse_quotes(read_text_file(quotes)), origin):
            raise CliError("The quotes make no new price.", "See `billfold market status` for the reason.")
        print_success("The quotes are a new composite.")
        added += 1
    if added:
        print_line(_REFRESH_NOTE)


@market.command("fetch")
async def fetch(bank: Bank) -> str:
    """Fetch now from the sources in the settings, as the worker does on its schedule."""
    added = await PriceFetch(price_sources_of(bank.settings)).fetch(bank, now=True)
    return f"{added} new rows. {_REFRESH_NOTE}" if added else "Nothing new."


@market.table("status", columns=("market data", "newest", "state"))
async def status(bank: Bank) -> Iterable[Row]:
    """Show how old the market data is, whether bills trade on it, and what each source brought or had refused."""
    states = market_data_states(bank.market, await bank.now())
    fetches = [
        (row["source"], row["added_at"] or "nothing yet", f"{row['refused_at']}: {row['refusal']}")
        for row in await list_fetches(bank)
    ]
    return [*((each.what, each.newest, each.problem or "in use") for each in states), *fetches]


@calendar.command("override 2025-11-28 --closes 13:00 --reason 'Early close'")
async def override(
    bank: Bank,
    conn: Connection,
    day: Annotated[date, typer.Argument(parser=parse_day_option)],
    *,
    bond: Annotated[OpenOrClosed, typer.Option(help="The bond market on that day.")] = None,
    fed: Annotated[OpenOrClosed, typer.Option(help="The Federal Reserve on that day.")] = None,
    closes: Annotated[datetime | None, typer.Option(formats=["%H:%M"], help="An early close, New York time.")] = None,
    reason: Annotated[str, typer.Option(help="The reason, for later readers.")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove the override.")] = False,
) -> None:
    """Override the calendars for one day. Fields that are not named stay as they are.

    Running processes use it some seconds later; nothing has to be restarted.
    """
    if day < et_date(business_now(await read_clock(conn), wall_now())):
        raise CliError(f"{day} is past: its trades have settled.", "Name today or a later day.")
    async with _change(bank, conn):
        if remove:
            if not await remove_override(conn, day):
                raise CliError(f"{day} is not overridden.", "See `billfold calendar list`.")
            print_success(f"{day} follows the calendars again.")
        else:
            saved = await _override(conn, CalendarOverride(day, bond, closes.time() if closes else None, fed, reason))
            print_success(f"{day}: {_in_words(saved)}.")
    print_line(_REFRESH_NOTE)


def _change(bank: Bank, conn: Connection) -> AbstractAsyncContextManager[None]:
    """Return the context in which a command changes the market, in its transaction."""
    return market_change(conn, bank.vault, Origin(kind="OPERATOR", name=bank.settings.operator))


async def _override(conn: Connection, named: CalendarOverride) -> CalendarOverride:
    if not named.reason or named.of_day == DayOverride():
        raise CliError(
            "An override needs a reason and what it changes.", "Give --reason, and --bond, --closes or --fed."
        )
    try:
        Calendars({named.day: named.of_day})
        return await save_override(conn, named)
    except ValueError as error:
        raise CliError(f"The close is not possible: {error}.", "Give --closes within 08:01 to 17:00.") from None
    except asyncpg.CheckViolationError:
        raise CliError(
            "A closed market does not close early.", "Give --closes with --bond open, or only --bond closed."
        ) from None


def _in_words(saved: CalendarOverride) -> str:
    closes = saved.closes_at and f"{saved.closes_at:%H:%M}"
    named = (("bond market", saved.bond_market), ("closes at", closes), ("Federal Reserve", saved.fed))
    return ", ".join(f"{what} {value}" for what, value in named if value)


@calendar.table("list", columns=("day", "bond market", "closes", "Reserve", "reason"))
async def list_all(conn: Connection) -> Iterable[Row]:
    """List the overridden days."""
    overrides = await list_overrides(conn)
    return [(each.day, each.bond_market, each.closes_at, each.fed, each.reason) for each in overrides]
