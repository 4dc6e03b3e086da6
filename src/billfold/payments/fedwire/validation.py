"""Validation of the messages of an inbound Fedwire file, against each other and against the state of the bank."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from billfold.payments.wires.commands import WireDirection
from billfold.payments.wires.iso20022.types import (
    CreditTransfer,
    FedwireMessage,
    FedwireMistake,
    OriginalMessage,
    PaymentReturn,
    PaymentStatus,
    ReturnRequest,
    ReturnRequestResponse,
)
from billfold.payments.wires.store import MatchedWire, SentMessage
from billfold.platform.calendars import Calendars

NumberedMessages = Sequence[tuple[int, FedwireMessage]]
SETTLED, REJECTED = "ACSC", "RJCT"
STATUSES = frozenset({SETTLED, REJECTED, "PDNG", "ACSP", "ACTC", "RCVD"})
"""ACSC and RJCT are final; the others are intermediate."""
_ENDINGS = {SETTLED: "settled", REJECTED: "rejected"}
_CONFLICTING_STATUS = {SETTLED: "REJECTED", REJECTED: "COMPLETED"}


class CheckContext(NamedTuple):
    """The state of the bank to which the file's messages refer."""

    routing_number: str
    environment: str
    calendars: Calendars
    today: date
    arrived: Mapping[str, str]
    sent: Mapping[str, SentMessage]
    payments: Mapping[tuple[str, str], MatchedWire]
    open_cases: frozenset[str]


def numbers_of(wire: FedwireMessage) -> tuple[str, ...]:
    """Return the numbers that make a message unique: its message id, and the UETR of a payment."""
    message = wire.message
    own = f"{wire.header.message_name}:{message.message_id}"
    return (own, f"uetr:{message.uetr}") if isinstance(message, CreditTransfer) else (own,)


class RefusedMessage(NamedTuple):
    """A message that is not booked: its line, its content, and its errors."""

    line: int
    wire: FedwireMessage
    mistakes: tuple[FedwireMistake, ...]

    @property
    def is_repeat(self) -> bool:
        """True if it repeats a booked message: all its numbers came before, and it has no other error."""
        elements = {_displayed(number)[0] for number in numbers_of(self.wire)}
        return {each.element for each in self.mistakes} == elements


def mistakes_of(line: int, wire: FedwireMessage, context: CheckContext) -> list[FedwireMistake]:
    """Return the errors of a message, with their lines and reasons."""
    return [*_repeats(line, wire, context), *(FedwireMistake(line, *each) for each in _mistakes(wire, context))]


def contradictions_in(lines: NumberedMessages) -> Iterator[list[FedwireMistake]]:
    """Yield for each message what repeats or contradicts an earlier message of the file."""
    numbered: dict[str, tuple[int, FedwireMessage]] = {}
    ended: dict[str, tuple[str, int]] = {}
    for line, wire in lines:
        yield [*_duplicates(line, wire, numbered), *_conflicts(line, wire, ended)]


def _conflicts(line: int, wire: FedwireMessage, ended: dict[str, tuple[str, int]]) -> Iterator[FedwireMistake]:
    """Yield payments with two final messages in a file; settled and then returned is allowed."""
    message = wire.message
    if isinstance(message, PaymentReturn):
        ending = "returned"
    elif isinstance(message, PaymentStatus) and message.status in _ENDINGS:
        ending = _ENDINGS[message.status]
    else:
        return
    if message.original.uetr not in ended:
        ended[message.original.uetr] = (ending, line)
        return
    earlier, first_line = ended[message.original.uetr]
    if "settled" not in {earlier, ending} or "rejected" in {earlier, ending}:
        yield FedwireMistake(line, "OrgnlUETR", f"the payment is {earlier} on line {first_line} already")


def _repeats(line: int, wire: FedwireMessage, context: CheckContext) -> Iterator[FedwireMistake]:
    """Yield the numbers that were received in another file."""
    for number in numbers_of(wire):
        if number in context.arrived:
            element, displayed = _displayed(number)
            yield FedwireMistake(line, element, f"{displayed} came in the file {context.arrived[number]} already")


def _duplicates(
    line: int, wire: FedwireMessage, numbered: dict[str, tuple[int, FedwireMessage]]
) -> Iterator[FedwireMistake]:
    """Yield the numbers that occur twice in a file, and whether the messages differ."""
    for number in numbers_of(wire):
        first_line, first = numbered.setdefault(number, (line, wire))
        if first is wire:
            continue
        element, displayed = _displayed(number)
        yield FedwireMistake(line, element, f"{displayed} stands on line {first_line} already")
        if first.message != wire.message:
            yield FedwireMistake(line, "Document", f"it differs from that of {displayed} on line {first_line}")


def _displayed(number: str) -> tuple[str, str]:
    """Return the element and the value of a number."""
    kind, _, displayed = number.partition(":")
    return ("UETR" if kind == "uetr" else "MsgId"), displayed


def _mistakes(wire: FedwireMessage, context: CheckContext) -> Iterator[tuple[str, str]]:
    message = wire.message
    if message.receiver != context.routing_number:
        yield "InstdAgt", f"it is for {message.receiver}, not for {context.routing_number}"
    if wire.header.environment != context.environment:
        yield "BizSvc", f"it is of {wire.header.environment}, the bank of {context.environment}"
    if isinstance(message, CreditTransfer | PaymentReturn):
        yield from _day(message.settles_on, context)
    if isinstance(message, PaymentStatus):
        yield from _status(message, context)
    elif isinstance(message, PaymentReturn):
        yield from _return(message, context)
    elif isinstance(message, ReturnRequest):
        yield from _request(message, context)
    elif isinstance(message, ReturnRequestResponse) and message.case_id not in context.open_cases:
        yield "Id", f"no case {message.case_id} of ours is open"


def _day(day: date, context: CheckContext) -> Iterator[tuple[str, str]]:
    """Yield a settlement date on which money cannot settle.

    The next Fedwire business day is allowed, because it begins on the evening before.
    """
    if not context.calendars.is_fed_day(day):
        yield "IntrBkSttlmDt", f"Fedwire is closed on {day}"
    elif day > context.calendars.next_fed_day(context.today):
        yield "IntrBkSttlmDt", f"{day} is in the future"


def _status(message: PaymentStatus, context: CheckContext) -> Iterator[tuple[str, str]]:
    original = message.original
    sent = context.sent.get(original.message_id)
    if sent is None:
        yield "OrgnlMsgId", f"no message {original.message_id} was sent"
        return
    if message.status not in STATUSES:
        yield "TxSts", f"{message.status} is not a known status"
    conflicting_status = _CONFLICTING_STATUS.get(message.status)
    if sent.direction == WireDirection.OUTGOING and sent.status == conflicting_status:
        yield "TxSts", f"{message.status}, but the wire is {sent.status} already"
    if f'"{original.uetr}"' not in sent.terms:
        yield "OrgnlUETR", f"{original.uetr} is not that of {original.message_id}"


def _return(message: PaymentReturn, context: CheckContext) -> Iterator[tuple[str, str]]:
    wire = _original(message.original, WireDirection.OUTGOING, context)
    if wire is None:
        yield "OrgnlUETR", f"no payment {message.original.uetr} was sent"
        return
    if wire.status not in {"COMPLETED", "PROCESSING"}:
        yield "OrgnlUETR", f"the payment is {wire.status}: it cannot be returned"
    if wire.outstanding <= 0:
        yield "OrgnlUETR", "the payment is already returned"
    elif wire.amount < message.amount:
        yield "RtrdIntrBkSttlmAmt", f"{_usd(message.amount)}, the payment was {_usd(wire.amount)}"
    elif wire.outstanding < message.amount + (message.charges or 0):  # less is allowed: the rest may follow
        amounts = f"{_usd(message.amount)} and charges, of the payment {_usd(wire.outstanding)} is outstanding"
        yield "RtrdIntrBkSttlmAmt", amounts
    if message.original_amount not in {None, wire.amount}:
        amounts = f"{_usd(message.original_amount or 0)}, the payment was {_usd(wire.amount)}"
        yield "OrgnlIntrBkSttlmAmt", amounts


def _request(message: ReturnRequest, context: CheckContext) -> Iterator[tuple[str, str]]:
    wire = _original(message.original, WireDirection.INCOMING, context)
    if wire is None:
        yield "OrgnlUETR", f"no payment {message.original.uetr} arrived"
        return
    if wire.outstanding < wire.amount or wire.status != "COMPLETED":
        yield "OrgnlUETR", "the payment is already returned"
    if wire.amount != message.amount:
        yield "OrgnlIntrBkSttlmAmt", f"{_usd(message.amount)}, the payment was {_usd(wire.amount)}"


def _original(original: OriginalMessage, direction: str, context: CheckContext) -> MatchedWire | None:
    """Return the payment by UETR, if its message id matches too."""
    wire = context.payments.get((direction, original.uetr))
    return wire if wire is not None and wire.imad == original.message_id else None


def _usd(cents: int) -> str:
    return f"${cents // 100:,}.{cents % 100:02}"
