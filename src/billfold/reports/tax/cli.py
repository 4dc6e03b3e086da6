"""`billfold tax`: the figures of a customer's tax year, its status, and the file for the IRS."""

import os
from datetime import date
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, DayOption, Row, console, print_warning, table
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.ledger.directory import find_customer
from billfold.platform.database.background_work import locked
from billfold.platform.database.shortage import error_summary
from billfold.platform.dates import LAST_DAY, et_date, et_instant
from billfold.platform.errors import InvalidInput
from billfold.platform.money import format_usd
from billfold.reports.statements.worker import STATEMENTS_LOCK
from billfold.reports.tax.rules import TaxLine, TaxStatus, boxes_of, filing_of, year_bounds
from billfold.reports.tax.store import open_recipient, read_tax_years, set_tax_status
from billfold.reports.tax.worker import WrittenFile, correct_forms, make_year, write_irs_file

group = CommandGroup(
    "tax", "Show the tax figures of customers, and write the file for the IRS.", example="file --year 2025"
)

CustomerId = Annotated[UUID, typer.Argument(help="The customer's id.")]
Year = Annotated[int, typer.Option(help="The calendar year.", min=2000, max=LAST_DAY.year)]
_LINE_COLUMNS = ("Pocket", "Bill", "Bought", "Sold", "How", "Units>", "Proceeds>", "Cost>", "Interest>", "Gain>")
_BOX_COLUMNS = ("Pocket", "Form", "Box", "Amount>", "Filing")


@group.view(f"show {EXAMPLE_ID} --year 2025")
async def show(bank: Bank, customer_id: CustomerId, *, year: Year) -> str | None:
    """Show a customer's sales and redemptions of a year, and the boxes of its forms.

    There is never a Form 1099-DIV: bills pay interest, not dividends.
    """
    await _require_customer(bank, customer_id)
    reading = await read_tax_years(bank, customer_id, year)
    years = reading.years
    if not years:
        return f"Nothing was sold or redeemed in {year}: there are no forms."
    recipient = await open_recipient(bank, reading.status)
    console.print(table("Disposals", _LINE_COLUMNS, [_line_row(line) for each in years for line in each.lines]))
    boxes = [
        (each.pocket_id, form, name, format_usd(cents), filing_of(form, years, recipient.filing))
        for each in years
        for form in each.forms
        for name, cents in boxes_of(each, form)
    ]
    console.print(table("Forms", _BOX_COLUMNS, boxes))
    return None


@group.command("make --year 2025")
async def make(bank: Bank, *, year: Year) -> str:
    """Make the missing forms of a year. A worker does the same automatically on January 15."""
    if year_bounds(year)[1] > await bank.now():
        raise CliError(f"The year {year} is not over.", "Make its forms next year.")
    async with locked(bank.pool, STATEMENTS_LOCK) as conn:
        if conn is None:
            raise CliError("Another process is making statements.", "Wait until it is done.")
        made, failed = await make_year(bank, year)
    if failed:
        raise CliError(f"{made} forms were made. Those of {failed} customers failed.", "`billfold doctor` says why.")
    return f"{made} forms of {year} were made."


@group.command(f"correct {EXAMPLE_ID} --year 2025 --reason 'Your address was wrong.'")
async def correct(
    bank: Bank,
    customer_id: CustomerId,
    *,
    year: Year,
    reason: Annotated[str, typer.Option(help="A sentence printed on the corrected forms.")],
) -> str:
    """Make new versions of a customer's forms of a year, with the box CORRECTED."""
    await _require_customer(bank, customer_id)
    if not reason.strip():
        raise CliError("A correction needs a reason.", "Name it with --reason.")
    rows = await correct_forms(bank, customer_id, year, reason.strip())
    if not rows:
        raise CliError(f"The customer has no forms of {year}.", "Make them first: `billfold tax make`.")
    return f"{len(rows)} forms of {year} were corrected."


@group.command("file --year 2025 --out 1099-2025.txt")
async def file(
    bank: Bank,
    *,
    year: Year,
    out: Annotated[Path, typer.Option(help="The file to write. It holds full taxpayer identification numbers.")],
    corrected_since: Annotated[date | None, DayOption(help="Write only what was corrected from this day on.")] = None,
    customer: Annotated[
        list[UUID] | None, typer.Option(help="Write only this customer's returns. May be given more than once.")
    ] = None,
    crlf: Annotated[bool, typer.Option("--crlf", help="End records with CR and LF, their last two positions.")] = False,
) -> str:
    """Write Forms 1099-INT and 1099-B of a year for the IRS (FIRE, Publication 1220).

    In a sandbox it is a test file. Only its owner can read it; upload it, then delete it.
    """
    if year >= et_date(await bank.now()).year:
        raise CliError(f"The year {year} is not over.", "File it next year.")
    since = None if corrected_since is None else et_instant(corrected_since, 0)
    try:
        descriptor = os.open(out, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise CliError(f"{out} cannot be written: {error.strerror}.", "Name another file.") from None
    try:
        with os.fdopen(descriptor, "w+b") as content:
            written = await write_irs_file(
                bank, year, content, corrected_since=since, only=customer or (), line_ends=crlf
            )
    except InvalidInput as invalid:
        out.unlink()
        raise CliError(str(invalid), "Set it as BILLFOLD_<NAME>: docs/operate/configuration.md.") from None
    except BaseException:
        out.unlink()
        raise
    return _filed(written, out)


def _filed(written: WrittenFile, out: Path) -> str:
    """Return a summary of the file. Raises CliError with the customers that failed."""
    for customer_id in written.without_number:
        print_warning(f"Customer {customer_id} has no taxpayer identification number.")
    if written.failed:
        named = "; ".join(f"{customer_id}: {error_summary(why)}" for customer_id, why in written.failed.items())
        raise CliError(
            f"{written.returns} returns are in {out}. Those of {len(written.failed)} customers are missing. {named}",
            "Correct what the errors name, then file these customers with --customer.",
        )
    return f"{written.returns} returns are in {out}."


@group.command(f"status {EXAMPLE_ID} --exempt", f"status {EXAMPLE_ID} --withhold-from 2025-07-01")
async def status(
    bank: Bank,
    customer_id: CustomerId,
    *,
    exempt: Annotated[
        bool | None, typer.Option("--exempt/--not-exempt", help="Whether it is an exempt recipient (Form W-9).")
    ] = None,
    withhold_from: Annotated[date | None, DayOption(help="The first day of backup withholding.")] = None,
    withhold_until: Annotated[date | None, DayOption(help="The first day without it.")] = None,
) -> str:
    """Set a customer's tax status; options that are not given are reset to their defaults.

    By default its type of business decides whether it is exempt: corporations are.
    """
    await _require_customer(bank, customer_id)
    if withhold_until is not None and (withhold_from is None or withhold_until <= withhold_from):
        raise CliError("Withholding ends before it begins.", "Name a later day with --withhold-until.")
    await set_tax_status(bank, TaxStatus(customer_id, exempt, withhold_from, withhold_until))
    return "The tax status is set."


async def _require_customer(bank: Bank, customer_id: UUID) -> None:
    if await find_customer(bank.pool, customer_id) is None:
        raise CliError(f"There is no customer {customer_id}.", "List them with `billfold customers list`.")


def _line_row(line: TaxLine) -> Row:
    disposal = line.disposal
    return (
        disposal.pocket_id,
        disposal.cusip,
        disposal.acquired_on,
        disposal.disposed_on,
        "matured" if disposal.redeemed else "sold",
        disposal.units,
        *map(format_usd, (disposal.proceeds, disposal.cost, line.interest, line.gain)),
    )
