"""The messages of a file of a rail, each readable: ACH entries, Fedwire messages, records of cards. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from billfold.payments.ach.nacha.reader import read_lines
from billfold.payments.cards.settlement.file_format import read_file
from billfold.payments.cards.settlement.types import Unreadable
from billfold.payments.files.types import InvalidFile
from billfold.payments.wires.iso20022.envelope import read_messages
from billfold.platform.money import format_usd

MESSAGES_MAX = 50
"""How many messages a page shows."""


class Message(NamedTuple):
    """One message: its line in the file, what it is in a few words, and its fields by their names in the standard."""

    line: int
    title: str
    fields: list[tuple[str, str]]


class MessagePage(NamedTuple):
    """Some messages of a file, whether there are more, and why a file cannot be read; "" when it can."""

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


_READERS: Mapping[str, Callable[[bytes, str], Iterator[Message]]] = {"ACH": _ach, "WIRE": _wire, "CARD": _card}


def _fields(fields: object, skips: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    plain = fields._asdict() if isinstance(fields, Unreadable) else msgspec.to_builtins(fields)
    yield from _flat({name: value for name, value in plain.items() if name not in skips})


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - what JSON knows
    """Yield the fields of a value by their names, those inside others with both names; what is empty is left out."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}".strip("."))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value, start=1):
            yield from _flat(each, f"{name} {number}".strip())
    elif value not in (None, ""):
        is_money = isinstance(value, int) and name.endswith("amount")
        yield re.sub("[._]", " ", name), format_usd(value) if is_money else str(value)
