"""`billfold desk`: exposure, orders, executions and the result of the trading desk, and its work by hand."""

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, DayOption, Row, console, key_value_table, table
from billfold.cli.context import CliError, read_text_file
from billfold.dual_control.cli import said_of
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.platform.dates import format_eastern
from billfold.platform.money import format_price, format_usd
from billfold.trading import decisions, store
from billfold.trading.blotter import COLUMNS, OpenOrders, number_of, read_blotter, read_execution
from billfold.trading.fix.store import list_of_order, list_open, list_sessions
from billfold.trading.overview import read_overview
from billfold.trading.types import OrderStatus

group = CommandGroup("desk", "Cover the bank's trades with dealers: exposure, orders, executions.", example="show")

_SHOWN = 100
_FACE = 100
_MICROS = 1_000_000
OrderId = Annotated[UUID, typer.Argument(help="The order's id, from `billfold desk orders`.")]
ExecutionId = Annotated[UUID, typer.Argument(help="The execution's id, from `billfold desk executions`.")]
Reason = Annotated[str, typer.Option(help="Why, for the audit log.")]
Reference = Annotated[str, typer.Option(help="The dealer's own reference of it.")]
Price = Annotated[str, typer.Option(help="Dollars per $100 of face, like 99.691250.")]
Face = Annotated[str, typer.Option(help="The face value in dollars.")]


@group.view("show")
async def show(bank: Bank) -> str:
    """Show the state of the desk, the exposure by bill with what covers it, and the result of the last closed day."""
    overview = await read_overview(bank)
    summary: list[tuple[str, object]] = [
        ("Desk", overview.state),
        ("Dealers", ", ".join(bank.settings.dealers) or "none: trades settle at their price"),
        ("Everything is covered by", format_eastern(overview.cover_by)),
        ("Live orders", len(overview.orders)),
        (
            "Result",
            f"{format_usd(overview.result)} on {overview.closed_on}" if overview.closed_on else "no day is closed",
        ),
    ]
    console.print(key_value_table(summary))
    rows = [
        (each.cusip, day, *map(_face, (customers, dealers, each.inventory, each.live, each.units)))
        for each in (line.exposure for line in overview.lines)
        for day, customers, dealers in [*each.dates, *([] if each.dates else [(None, 0, 0)])]
    ]
    if rows:
        columns = ("Bill", "Settles on", "Customers>", "Dealers>", "Inventory>", "Live orders>", "Exposure>")
        console.print(table("Face by bill and settlement date; inventory and exposure are of the bill", columns, rows))
    return "Nothing is uncovered." if not any(line.uncovered for line in overview.lines) else overview.sentence


@group.table(
    "orders",
    "orders --all",
    columns=("order", "side", "bill", "face>", "filled>", "limit>", "status", "settles on", "decided", "cause"),
    empty="No order is live.",
)
async def orders(
    bank: Bank,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include the last hundred that ended.")] = False,
) -> Iterable[Row]:
    """List live orders, oldest first."""
    bank_id = bank.own_id
    found = await store.list_live_orders(bank.pool, bank_id)
    if everything:
        found += await store.list_ended_orders(bank.pool, bank_id, _SHOWN)
    return [
        (
            *(each.order_id, each.side, each.cusip, _face(each.units), _face(each.filled_units)),
            *(format_price(each.limit_micros), each.status, each.settles_on, each.decided_at, each.cause),
        )
        for each in found
    ]


@group.table(
    "executions",
    columns=("execution", "kind", "dealer", "reference", "side", "bill", "face>", "price>", "money>", "warnings"),
    empty="Nothing is executed.",
)
async def executions(bank: Bank) -> Iterable[Row]:
    """List the last hundred executions, newest first; those that were corrected or busted say so."""
    found = await store.list_executions(bank.pool, bank.own_id, _SHOWN)
    return [
        (
            *(row.execution_id, f"{row.kind}, replaced" if is_replaced else row.kind, row.dealer, row.reference),
            *(row.side, row.cusip, _face(row.units), format_price(row.price_micros), format_usd(row.money), row.flags),
        )
        for row, is_replaced in found
    ]


@group.table(
    "result --day 2025-06-02",
    columns=("bill", "customers>", "dealers>", "inventory>", "result>"),
    empty="Nothing was traded on that day.",
)
async def result(bank: Bank, day: Annotated[date, DayOption(help="A day that is closed.")]) -> Iterable[Row]:
    """Show the trading result of a day by bill: money of customers and dealers, change of the inventory's value."""
    found = await store.list_results(bank.pool, bank.own_id, day)
    return [
        (each.cusip, *map(format_usd, (each.customers, each.dealers, each.revaluation, each.total))) for each in found
    ]


@group.command("pause --reason 'Dealers do not answer'")
async def pause(bank: Bank, *, reason: Reason) -> str:
    """Pause the desk: it places no orders until it is resumed."""
    await decisions.pause(bank, paused=True, reason=reason, by=_operator(bank))
    return "The trading desk is paused."


@group.table(
    "sessions",
    columns=("dealer", "state", "since", "session day", "next in>", "next out>", "problem"),
    empty="No dealer has had a session.",
)
async def sessions(bank: Bank) -> Iterable[Row]:
    """List the sessions with dealers over FIX: whether each is on, its sequence numbers and its last problem."""
    return [
        (
            *(each.dealer, "on" if each.is_on else "off", each.changed_at, each.session_day),
            *(each.next_in, each.next_out, each.problem),
        )
        for each in await list_sessions(bank.pool)
    ]


@group.table(
    "messages",
    "messages --order " + EXAMPLE_ID,
    columns=("message", "received", "dealer", "type", "status", "reason", "content"),
    empty="No message waits for a person.",
)
async def messages(
    bank: Bank,
    *,
    order_id: Annotated[UUID | None, typer.Option("--order", help="All messages about this order.")] = None,
) -> Iterable[Row]:
    """List the messages of dealers that a person has to see: held, because they contradict the books, or refused."""
    found = await (list_of_order(bank.pool, order_id, _SHOWN) if order_id else list_open(bank.pool, _SHOWN))
    return [
        (each.message_id, each.received_at, each.dealer, each.type, each.status, each.reason, each.shown)
        for each in found
    ]


@group.command(f"close-message {EXAMPLE_ID} --reason 'Booked by hand as T-1041'")
async def close_message(
    bank: Bank,
    message_id: Annotated[UUID, typer.Argument(help="The message's id, from `billfold desk messages`.")],
    *,
    reason: Reason,
) -> str:
    """Note that a message was seen and what was done about it. It books nothing: enter the execution for that."""
    await decisions.close_message(bank, message_id, reason=reason, by=_operator(bank))
    return "The message is CLOSED."


@group.command("reset-session citadel --reason 'Agreed with their desk, 10:31'")
async def reset_session(
    bank: Bank, dealer: Annotated[str, typer.Argument(help="The dealer, whose session is off.")], *, reason: Reason
) -> str:
    """Let a session begin with message 1 again, after both sides agreed to: what was missed is not sent again."""
    await decisions.reset_session(bank, dealer, reason=reason, by=_operator(bank))
    return "The next logon begins at 1."


@group.command("resume --reason 'Dealers answer again'")
async def resume(bank: Bank, *, reason: Reason) -> str:
    """Resume the desk."""
    await decisions.pause(bank, paused=False, reason=reason, by=_operator(bank))
    return "The trading desk is running."


@group.command("cover", "cover --cusip 912797PT8")
async def cover(bank: Bank, *, cusip: Annotated[str | None, typer.Option(help="Only this bill.")] = None) -> str:
    """Place orders now for everything that is not covered, as at the hour by which all is covered."""
    placed = await decisions.cover_now(bank, cusip=cusip, by=_operator(bank))
    return f"{len(placed)} orders were placed." if placed else "Nothing has to be covered."


@group.command(f"cancel {EXAMPLE_ID} --reason 'Price moved away'")
async def cancel(bank: Bank, order_id: OrderId, *, reason: Reason) -> str:
    """Cancel an order, or ask the dealer who has it over a session to. What of it is filled stays."""
    by = _operator(bank)
    outcome = await decisions.change_order(bank, order_id, OrderStatus.CANCELLED, reason=reason, by=by)
    is_over = outcome["status"] == OrderStatus.CANCELLED
    return "The order is CANCELLED." if is_over else "Its dealer is asked to cancel the order."


@group.command(f"report {EXAMPLE_ID} WORKING --reason 'Called, 10:31'")
async def report(
    bank: Bank,
    order_id: OrderId,
    status: Annotated[
        Literal["WORKING", "REJECTED", "EXPIRED", "UNKNOWN"],
        typer.Argument(case_sensitive=False, help="What the dealer says; UNKNOWN if it does not answer."),
    ],
    *,
    reason: Reason,
) -> str:
    """Record what a dealer says about an order. One that is UNKNOWN counts as covered in the worse direction."""
    await decisions.change_order(bank, order_id, OrderStatus(status), reason=reason, by=_operator(bank))
    return f"The order is {status}."


@group.command(f"quote {EXAMPLE_ID} --dealer citadel --price 99.691250 --face 1000000")
async def quote(
    bank: Bank,
    order_id: OrderId,
    *,
    dealer: Annotated[str, typer.Option(help="The dealer.")],
    price: Price,
    face: Face,
) -> str:
    """Keep a dealer's price for an order: all of them show that the best one was taken."""
    quoted = {"price_micros": _number(price, _MICROS), "units": _units(face)}
    await decisions.record_quote(bank, order_id, dealer=dealer, **quoted, by=_operator(bank))
    return "The quote is kept."


@group.command(
    f"enter {EXAMPLE_ID} --dealer citadel --reference T-1041 --side BUY --cusip 912797PT8 --face 1000000"
    " --price 99.691250 --money 996912.50 --traded-at '2025-06-02 10:31'"
)
async def enter(
    bank: Bank,
    order_id: OrderId,
    *,
    dealer: Annotated[str, typer.Option(help="The dealer.")],
    reference: Reference,
    side: Annotated[str, typer.Option(help="BUY or SELL: what the bank does.")],
    cusip: Annotated[str, typer.Option(help="The bill.")],
    face: Face,
    price: Price,
    money: Annotated[str, typer.Option(help="The dealer's money in dollars: it must equal ours to the cent.")],
    traded_at: Annotated[str, typer.Option(help="When, Eastern time.")],
    settles_on: Annotated[str, typer.Option(help="The settlement date; by default the next settlement day.")] = "",
) -> str:
    """Propose to book an execution. It is booked when another operator confirms it."""
    fields = {"dealer": dealer, "reference": reference, "side": side, "cusip": cusip, "face": face, "price": price}
    fields |= {"money": money, "traded_at": traded_at, "settles_on": settles_on, "order": str(order_id)}
    new = read_execution(fields, bank.calendars, OpenOrders(()))
    made = await decisions.propose_executions(bank, [new], source="Entered by hand", by=_operator(bank))
    if made.proposal is None:
        raise CliError(made.refused[0].reason, "Compare it with the dealer's confirmation and the order.")
    return said_of(made.proposal)


@group.command("import blotter.csv")
async def import_blotter(
    bank: Bank,
    file: Annotated[Path, typer.Argument(help=f"A CSV file with the columns {', '.join(COLUMNS)}.")],
) -> str:
    """Propose to book the executions of a CSV blotter. A line that does not fit is named and takes no other with it."""
    live = await store.list_live_orders(bank.pool, bank.own_id)
    lines = read_blotter(read_text_file(file), bank.calendars, OpenOrders(live))
    line_of = {id(each.execution): each.line_no for each in lines}
    read = [each.execution for each in lines if each.execution]
    made = await decisions.propose_executions(bank, read, source=f"Blotter {file.name}", by=_operator(bank))
    wrong = [(each.line_no, each.problem) for each in lines if each.execution is None]
    wrong += [(line_of[id(execution)], reason) for execution, reason in made.refused]
    if wrong:
        console.print(table("Lines that are not proposed", ("Line>", "Reason"), sorted(wrong)))
    if made.proposal is None:
        raise CliError("No line was proposed.", "Correct the lines and import them again.")
    return f"{len(lines) - len(wrong)} of {len(lines)} lines. {said_of(made.proposal)}"


@group.command(
    f"correct {EXAMPLE_ID} --reference C-7 --face 900000 --price 99.70 --money 897300.00 --reason 'Wrong size'"
)
async def correct(
    bank: Bank,
    execution_id: ExecutionId,
    *,
    reference: Reference,
    face: Face,
    price: Price,
    money: Annotated[str, typer.Option(help="The dealer's money in dollars.")],
    settles_on: Annotated[date | None, DayOption(help="Another settlement date.")] = None,
    reason: Reason,
) -> str:
    """Propose to book a dealer's correction of an execution; the former row stays, and the new one points at it."""
    values = _units(face), _number(price, _MICROS), _number(money, 100)
    old = await store.get_execution(bank.pool, bank.own_id, execution_id)
    new = decisions.Amendment(*values, settles_on or old.settles_on)
    made = await decisions.propose_amendment(
        bank, execution_id, reference=reference, values=new, reason=reason, by=_operator(bank)
    )
    return said_of(made)


@group.command(f"bust {EXAMPLE_ID} --reference B-9 --reason 'Busted by the dealer'")
async def bust(bank: Bank, execution_id: ExecutionId, *, reference: Reference, reason: Reason) -> str:
    """Propose to book a dealer's bust of an execution, which takes it back."""
    made = await decisions.propose_amendment(
        bank, execution_id, reference=reference, values=None, reason=reason, by=_operator(bank)
    )
    return said_of(made)


def _operator(bank: Bank) -> Operator:
    return Operator.of_command_line(bank.settings.operator)


def _number(text: str, scale: int) -> int:
    found = number_of(text, scale)
    if not found:
        raise CliError(f"{text} is no positive number.", "Write --face 900000 --price 99.691250 --money 897221.25.")
    return found


def _units(face: str) -> int:
    units, rest = divmod(_number(face, 1), _FACE)
    if rest:
        raise CliError(f"{face} is no multiple of ${_FACE}.", "Write --face 900000.")
    return units


def _face(units: int) -> str:
    return f"{units * _FACE:,}"
