"""`billfold liquidity`: the reserve by hour, the wires that wait for it, and their release by two people."""

from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, console, key_value_table, table
from billfold.dual_control.cli import said_of
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.payments.liquidity.overview import propose_release, read_overview
from billfold.platform.dates import format_eastern
from billfold.platform.money import format_usd

group = CommandGroup("liquidity", "The bank's reserve by hour, and the wires that wait for it.", example="show")


@group.view("show")
async def show(bank: Bank) -> str:
    """Show the expected reserve by hour, the floor, unsettled money by dealer, and the wires that wait."""
    found = await read_overview(bank)
    floor = "none: no wire waits" if found.floor is None else format_usd(found.floor)
    summary: list[tuple[str, object]] = [
        ("Reserve", format_usd(found.reserve)),
        ("Floor", floor),
        ("Line of credit", format_usd(found.line)),
        ("Available", format_usd(found.available)),
        ("Sent by wire today", format_usd(found.sent_today)),
        *((f"Unsettled with {dealer}", format_usd(cents)) for dealer, cents in found.dealers),
    ]
    console.print(key_value_table(summary))
    hours = [
        (format_eastern(each.begins), format_usd(each.inflow), format_usd(each.outflow), format_usd(each.balance))
        for each in found.hours
        if each.inflow or each.outflow
    ]
    if hours:
        console.print(table("Expected by hour", ("Hour", "In>", "Out>", "Reserve>"), hours))
    waits = [(each.wire_id, format_usd(each.cents), format_eastern(each.due_at)) for each in found.waiting]
    if waits:
        console.print(table("Waiting for funds of the bank", ("Wire", "Amount>", "Due since"), waits))
    return f"{len(waits)} wires wait for funds." if waits else "No wire waits for funds."


@group.command(f"release {EXAMPLE_ID} --reason 'The line of credit is drawn at noon'")
async def release(
    bank: Bank,
    wire_id: Annotated[UUID, typer.Argument(help="The wire's id, from `billfold liquidity show`.")],
    *,
    reason: Annotated[str, typer.Option(help="Why, for the audit log.")],
) -> str:
    """Propose to let a waiting wire leave below the floor. It leaves when another operator confirms it."""
    by = Operator.of_command_line(bank.settings.operator)
    return said_of(await propose_release(bank, wire_id, reason=reason, by=by))
