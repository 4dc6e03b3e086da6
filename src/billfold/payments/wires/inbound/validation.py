"""What a file of messages must hold to before anything of it is booked: all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from billfold.payments.wires.ports import (
    CreditTransfer,
    Mistake,
    Original,
    PaymentReturn,
    PaymentStatus,
    ReturnAnswer,
    ReturnRequest,
    Wire,
)
from billfold.payments.wires.store.arrivals import KnownWire
from billfold.payments.wires.store.message_queue import Sent
from billfold.payments.wires.types import WireDirection
from billfold.platform.calendars import Calendars

Lines = Sequence[tuple[int, Wire]]
SETTLED, REJECTED = "ACSC", "RJCT"
STATUSES = frozenset({SETTLED, REJECTED, "PDNG", "ACSP", "ACTC", "RCVD"})
"""ACSC and RJCT end a wire; the others say that it is on its way."""
_ENDINGS = {SETTLED: "settled", REJECTED: "rejected"}
_ENDED_OTHERWISE = {SETTLED: "REJECTED", REJECTED: "COMPLETED"}


class Known(NamedTuple):
    """What the bank knows of the messages that the file's messages are about."""

    routing_number: str
    environment: str
    calendars: Calendars
    today: date
    arrived: Mapping[str, str]
    sent: Mapping[str, Sent]
    payments: Mapping[tuple[str, str], KnownWire]
    open_cases: frozenset[str]


def numbers_of(wire: Wire) -> tuple[str, ...]:
    """Return the numbers under which a message is taken once: its own, and that of a payment."""
    message = wire.message
    own = f"{wire.header.message_name}:{message.message_id}"
    return (own, f"uetr:{message.uetr}") if isinstance(message, CreditTransfer) else (own,)


def mistakes_in(lines: Lines, known: Known) -> list[Mistake]:
    """Return everything that keeps the file from being taken, with lines and reasons."""
    found: list[Mistake] = []
    before: dict[str, int] = {}
    ended: dict[str, tuple[str, int]] = {}
    for line, wire in lines:
        found += _repeated(line, wire, known, before)
        found += [Mistake(line, *each) for each in _wrong(wire, known)]
        found += _contradicted(line, wire, ended)
    return found


def _contradicted(line: int, wire: Wire, ended: dict[str, tuple[str, int]]) -> Iterator[Mistake]:
    """A payment ends once in a file, but for one that has settled and then comes back."""
    message = wire.message
    if isinstance(message, PaymentReturn):
        ends = "returned"
    elif isinstance(message, PaymentStatus) and message.status in _ENDINGS:
        ends = _ENDINGS[message.status]
    else:
        return
    earlier, where = ended.setdefault(message.original.uetr, (ends, line))
    settled = "settled" in {earlier, ends} and "rejected" not in {earlier, ends}
    if where != line and not settled:
        yield Mistake(line, "OrgnlUETR", f"the payment is {earlier} on line {where} already")


def _repeated(line: int, wire: Wire, known: Known, before: dict[str, int]) -> Iterator[Mistake]:
    for number in numbers_of(wire):
        element = "UETR" if number.startswith("uetr:") else "MsgId"
        shown = number.partition(":")[2]
        if number in known.arrived:
            reason = f"{shown} came in the file {known.arrived[number]} already"
            yield Mistake(line, element, reason)
        elif number in before:
            yield Mistake(line, element, f"{shown} stands on line {before[number]} already")
        before.setdefault(number, line)


def _wrong(wire: Wire, known: Known) -> Iterator[tuple[str, str]]:
    message = wire.message
    if message.receiver != known.routing_number:
        yield "InstdAgt", f"it is for {message.receiver}, not for {known.routing_number}"
    if wire.header.environment != known.environment:
        yield "BizSvc", f"it is of {wire.header.environment}, the bank of {known.environment}"
    if isinstance(message, CreditTransfer | PaymentReturn):
        yield from _day(message.settles_on, known)
    if isinstance(message, PaymentStatus):
        yield from _status(message, known)
    elif isinstance(message, PaymentReturn):
        yield from _return(message, known)
    elif isinstance(message, ReturnRequest):
        yield from _request(message, known)
    elif isinstance(message, ReturnAnswer) and message.case_id not in known.open_cases:
        yield "Id", f"no case {message.case_id} of ours is open"


def _day(day: date, known: Known) -> Iterator[tuple[str, str]]:
    """Money settles on a day of Fedwire; the next one begins in the evening before it."""
    if not known.calendars.is_fed_day(day):
        yield "IntrBkSttlmDt", f"Fedwire is closed on {day}"
    elif day > known.calendars.next_fed_day(known.today):
        yield "IntrBkSttlmDt", f"{day} has not come"


def _status(message: PaymentStatus, known: Known) -> Iterator[tuple[str, str]]:
    original = message.original
    sent = known.sent.get(original.message_id)
    if sent is None:
        yield "OrgnlMsgId", f"no message {original.message_id} was sent"
        return
    if message.status not in STATUSES:
        yield "TxSts", f"{message.status} is no status that is known here"
    otherwise = _ENDED_OTHERWISE.get(message.status)
    if sent.direction == WireDirection.OUTGOING and sent.status == otherwise:
        yield "TxSts", f"{message.status}, but the wire is {sent.status} already"
    if f'"{original.uetr}"' not in sent.terms:
        yield "OrgnlUETR", f"{original.uetr} is not that of {original.message_id}"


def _return(message: PaymentReturn, known: Known) -> Iterator[tuple[str, str]]:
    wire = _original(message.original, WireDirection.OUTGOING, known)
    if wire is None:
        yield "OrgnlUETR", f"no payment {message.original.uetr} was sent"
        return
    if wire.status not in {"COMPLETED", "PROCESSING"}:
        yield "OrgnlUETR", f"the payment is {wire.status}: it cannot come back"
    if wire.returned:
        yield "OrgnlUETR", "the payment has come back already"
    if wire.amount < message.amount:  # less is what comes when banks on the way keep charges
        yield "RtrdIntrBkSttlmAmt", f"{_usd(message.amount)}, the payment was {_usd(wire.amount)}"
    if message.original_amount not in {None, wire.amount}:
        told = f"{_usd(message.original_amount or 0)}, the payment was {_usd(wire.amount)}"
        yield "OrgnlIntrBkSttlmAmt", told


def _request(message: ReturnRequest, known: Known) -> Iterator[tuple[str, str]]:
    wire = _original(message.original, WireDirection.INCOMING, known)
    if wire is None:
        yield "OrgnlUETR", f"no payment {message.original.uetr} arrived"
        return
    if wire.returned or wire.status != "COMPLETED":
        yield "OrgnlUETR", "the payment has gone back already"
    if wire.amount != message.amount:
        yield "OrgnlIntrBkSttlmAmt", f"{_usd(message.amount)}, the payment was {_usd(wire.amount)}"


def _original(original: Original, direction: str, known: Known) -> KnownWire | None:
    """The payment by its number from end to end, when the message's own number is its too."""
    wire = known.payments.get((direction, original.uetr))
    return wire if wire is not None and wire.imad == original.message_id else None


def _usd(cents: int) -> str:
    return f"${cents // 100:,}.{cents % 100:02}"
