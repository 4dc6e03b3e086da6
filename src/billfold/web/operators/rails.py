"""Files of the rails, in and out: the result of each, and its messages."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from litestar import get, post

from billfold.identity.operators import recorded_action
from billfold.payments.ach.nacha.reader import read_lines
from billfold.payments.cards.settlement.file_format import read_file
from billfold.payments.cards.settlement.records import Unreadable
from billfold.payments.custody import messages as custody
from billfold.payments.files import retries, store
from billfold.payments.files.retries import propose_close
from billfold.payments.files.store import read_content
from billfold.payments.files.types import InvalidFile
from billfold.payments.wires.iso20022.envelope import read_messages
from billfold.platform.calendars import Calendars
from billfold.platform.money import format_usd
from billfold.reconciliation.compare import describe
from billfold.reconciliation.readers import read_statements
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import RECENT_AUTHENTICATION, FormError, PageResponse, path_id, redirect, shown_again

MESSAGES_MAX = 50
"""Maximum number of messages on a page."""


class Message(NamedTuple):
    """One message: its line in the file, a short description, and its fields by their names in the standard."""

    line: int
    title: str
    fields: list[tuple[str, str]]


class MessagePage(NamedTuple):
    """Some messages of a file, whether there are more, and why a file cannot be read; "" if it can."""

    messages: list[Message]
    has_more: bool
    problem: str = ""


def read_page(rail: str, direction: str, content: bytes, first: int) -> MessagePage:
    """Return the messages of a file from number `first` on, counted from 0."""
    try:
        found = list(islice(_READERS[rail](content, direction), first, first + MESSAGES_MAX + 1))
    except InvalidFile as invalid:
        return MessagePage([], has_more=False, problem=str(invalid))
    return MessagePage(found[:MESSAGES_MAX], has_more=len(found) > MESSAGES_MAX)


def _ach(content: bytes, _: str) -> Iterator[Message]:
    for line in read_lines(content):
        entry, way = line.entry, "Debit" if line.entry.is_debit else "Credit"
        fields = [*_fields(entry), *_fields(line.batch, skips=("entries",))]
        mistake = [("mistake", line.mistake)] if line.mistake else []
        yield Message(line.number, f"{way} of {format_usd(entry.amount)}, {entry.individual_name}", mistake + fields)


def _wire(content: bytes, direction: str) -> Iterator[Message]:
    for line, wire in read_messages(content, "outgoing" if direction == "OUT" else "incoming"):
        yield Message(line, wire.header.message_name, [*_fields(wire.message), *_fields(wire.header)])


def _card(content: bytes, _: str) -> Iterator[Message]:
    for line, record in read_file(content).records:
        fields = list(_fields(record))
        yield Message(line, dict(fields).get("type", type(record).__name__), fields)


def _custody(content: bytes, _: str) -> Iterator[Message]:
    for each in custody.read_messages(content):
        fields = [*_fields(each.message)] if each.message else [("mistake", str(one)) for one in each.mistakes]
        yield Message(each.line, each.name, fields)


def _statement(content: bytes, _: str) -> Iterator[Message]:
    for each in read_statements(content, Calendars()):
        about = [("account", each.account), ("day", each.day.isoformat())]
        for line in each.lines:
            title = f"{format_usd(line.amount)} {line.rail or ''}"
            yield Message(line.line_no, title, [*about, ("references", ", ".join(sorted(line.references)))])
        for nth, (cusip, units) in enumerate(each.units.items(), start=1):
            yield Message(nth, f"{units:,} units of {cusip}", about)
        for line_no, trade in each.trades:
            yield Message(line_no, describe(trade), [*about, ("reference", trade.reference)])
        yield from (Message(odd.line_no, "Cannot be read", [*about, ("reason", odd.reason)]) for odd in each.odd)


_READERS: Mapping[str, Callable[[bytes, str], Iterator[Message]]] = {
    "ACH": _ach,
    "WIRE": _wire,
    "CARD": _card,
    "CUSTODY": _custody,
    "STATEMENT": _statement,
}


def _fields(fields: object, skips: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    plain = fields._asdict() if isinstance(fields, Unreadable) else msgspec.to_builtins(fields)
    yield from _flat({name: value for name, value in plain.items() if name not in skips})


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - what JSON knows
    """Yield the fields of a value by their names, nested ones with both names; empty ones are left out."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}".strip("."))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value, start=1):
            yield from _flat(each, f"{name} {number}".strip())
    elif value not in (None, ""):
        is_money = isinstance(value, int) and name.endswith("amount")
        yield re.sub("[._]", " ", name), format_usd(value) if is_money else str(value)


RAILS = ("ACH", "WIRE", "CARD", "CUSTODY", "STATEMENT")
STATES = ("CREATED", "TRANSMITTED", "ARRIVED", "PROCESSED", "REFUSED")
DIRECTIONS = {"IN": "In", "OUT": "Out"}
_FILES_MAX = 50
READ_BYTES_MAX = 1_000_000
"""The content of a larger file is shown only by the command line."""
_FIRST_DIGITS_MAX = 7


async def _show(operator: BankPage, file_id: str, wrong: FormError = "") -> PageResponse:
    file = await store.find_file(operator.bank.pool, path_id(file_id))
    first = operator.page.query.get("first", "0")
    number = int(first) if first.isascii() and first.isdigit() and len(first) <= _FIRST_DIGITS_MAX else 0
    if file.size_bytes > READ_BYTES_MAX:
        found = MessagePage([], has_more=False, problem="The file is large. Read it with `billfold files show`.")
    else:
        content = await read_content(operator.bank, file.file_id)
        found = await asyncio.to_thread(read_page, file.rail, file.direction, content, number)
    return operator.render(
        "bank_rail_file",
        wrong=wrong,
        file=file,
        retry=retries.retry_state_of(file),
        report="" if file.report is None else msgspec.json.format(file.report, indent=2),
        found=found,
        first=number,
    )


@get("/bank/rails")
async def list_files(operator: InBank) -> PageResponse:
    """List the newest files, by the filters of the query."""
    sent, choices = operator.page.query, {"rail": RAILS, "direction": DIRECTIONS, "state": STATES}
    filters = {name: sent[name] for name, known in choices.items() if sent.get(name) in known}
    files = await store.list_files(operator.bank.pool, **filters, limit=_FILES_MAX)
    shown = [(each, retries.retry_state_of(each)) for each in files]
    return operator.render(
        "bank_rails",
        files=shown,
        filters=filters,
        rails=[(each, each) for each in RAILS],
        states=[(each, each.capitalize()) for each in STATES],
        directions=list(DIRECTIONS.items()),
        files_max=_FILES_MAX,
    )


@get("/bank/rails/{file_id:str}")
async def show_file(operator: InBank, file_id: str) -> PageResponse:
    """Show a file, its report and its messages."""
    return await _show(operator, file_id)


@post("/bank/rails/{file_id:str}/retry", opt=RECENT_AUTHENTICATION)
@shown_again(_show)
async def retry_file(operator: InBank, file_id: str) -> PageResponse:
    """Have a worker process a failed file again at once."""
    wanted, details = path_id(file_id), {"user_id": str(operator.page.user.user_id)}
    async with recorded_action(operator.bank, operator.by, "files.retry", ("files", wanted), **details):
        await retries.retry_as_operator(operator.bank, wanted, operator.by)
    return redirect(f"/bank/rails/{wanted}", done="file-retried")


@post("/bank/rails/{file_id:str}/close", opt=RECENT_AUTHENTICATION)
@shown_again(_show)
async def close_file(operator: InBank, file_id: str) -> PageResponse:
    """Propose to close a failing file: another operator confirms it, and it is never retried."""
    wanted = path_id(file_id)
    reason = operator.page.form.get("reason", "")
    await propose_close(operator.bank, wanted, reason=reason, by=operator.by)
    return redirect("/bank/freezes", done="freeze-proposed")
