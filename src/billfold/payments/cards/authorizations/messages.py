"""Messages of the card processor become commands, and are answered in time.

The processor waits for two seconds. A message whose decision takes longer is kept before it is declined: whatever the
bank decides of it is reversed by a job, and it is a decline whenever it is sent again.
"""

import asyncio
import hashlib
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec

from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.engine.pending_command import Answer
from billfold.ledger.scheduler import schedule
from billfold.ledger.types import ScheduledJob
from billfold.payments.cards.authorizations import store
from billfold.payments.cards.authorizations.commands import (
    AuthorizeCard,
    IncrementAuthorization,
    InquireBalance,
    ReverseAuthorization,
    references_of,
)
from billfold.payments.cards.authorizations.types import (
    LATE_JOB,
    PROCESSOR,
    Decision,
    DeclineReason,
    EntryMode,
    LateMessageRow,
    Merchant,
    NetworkReference,
)
from billfold.platform.errors import InvalidInput, MarketDataStale, Unavailable

DEADLINE_SECONDS: Final = 1.7
"""Of the two seconds of the network; the rest is for the way."""
_KEEPING_SECONDS: Final = 0.2
"""How long it may take to keep a message that is late."""
AMOUNT_MAX: Final = 999_999_999_999
"""Twelve digits, as in field 4 of ISO 8583."""


class MessageType(StrEnum):
    """What the processor wants. An advice is what it, or the network, has decided already."""

    AUTHORIZATION = "AUTHORIZATION"
    INCREMENT = "INCREMENT"
    REVERSAL = "REVERSAL"
    ADVICE = "ADVICE"
    REFUND = "REFUND"
    BALANCE_INQUIRY = "BALANCE_INQUIRY"


Cents = Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)]


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message about a card. `amount` is cents: of a reversal what is released, null is all of it.

    `cash` is what of the amount is paid out in cash; at a cash machine it is all of it. `is_partial_allowed` and
    `is_purchase_only_allowed` say what the terminal can do with less: with a part of a purchase, or without its cash.
    """

    message_id: UUID
    type: MessageType
    card_id: UUID
    network_reference: NetworkReference
    amount: Cents | None
    merchant: Merchant
    transmitted_at: datetime
    currency: Literal["USD"] = "USD"
    cash: Cents = 0
    is_partial_allowed: bool = False
    is_purchase_only_allowed: bool = False
    is_preauthorization: bool = False
    entry_mode: EntryMode | None = None


class MessageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The bank's decision. `approved_amount` is cents: of an inquiry what the card could pay now."""

    decision: Decision
    approved_amount: int = 0
    reason: DeclineReason | None = None
    authorization_id: UUID | None = None


_TERMS: Final = ("cash", "is_partial_allowed", "is_purchase_only_allowed")
"""What of a message decides how much of its amount can be approved."""
_TIMED_OUT: Final = MessageAnswer(decision=Decision.DECLINED, reason=DeclineReason.TIMED_OUT)


async def answer_message(bank: Bank, message: Message) -> MessageAnswer:
    """Decide a message. Raises InvalidInput, Unavailable, and Refused for an id that another message has."""
    entry = await bank.directory.find("card", message.card_id)
    if entry is None:
        return MessageAnswer(decision=Decision.DECLINED, reason=DeclineReason.CARD_NOT_FOUND)
    if message.type == MessageType.REFUND:  # announced: its money comes by clearing
        return MessageAnswer(decision=Decision.APPROVED, approved_amount=message.amount or 0)
    return await _decide(bank, message, command_of(message, entry.customer_id))


async def _decide(bank: Bank, message: Message, command: Command) -> MessageAnswer:
    is_repeated = bank.engine.is_running(command)
    decision = asyncio.ensure_future(bank.engine.submit(command))
    try:
        answer = await asyncio.wait_for(asyncio.shield(decision), DEADLINE_SECONDS)
    except TimeoutError:
        if not isinstance(command, AuthorizeCard | IncrementAuthorization) or message.type == MessageType.ADVICE:
            raise Unavailable("The bank takes too long. Send the message again.", retry_after_seconds=1) from None
        decision.add_done_callback(_forget)
        await _keep_late(bank, message, command.customers[0])
        return _TIMED_OUT
    except MarketDataStale:
        return MessageAnswer(decision=Decision.DECLINED, reason=DeclineReason.UNAVAILABLE)
    if (answer.replayed or is_repeated) and await store.is_late(bank.pool, message.message_id):
        return _TIMED_OUT
    names = MessageAnswer.__struct_fields__
    return msgspec.convert({name: answer.outcome[name] for name in names}, MessageAnswer)


async def _keep_late(bank: Bank, message: Message, customer_id: UUID) -> None:
    """Keep a message that is about to be declined. Raises Unavailable: then the processor must reverse it."""
    job = ScheduledJob(LATE_JOB, message.message_id, customer_id, await bank.now())
    late = LateMessageRow(
        message_id=message.message_id, customer_id=customer_id, message=msgspec.json.encode(message).decode()
    )
    try:
        async with asyncio.timeout(_KEEPING_SECONDS), bank.pool.acquire() as conn, conn.transaction():
            await store.keep_late(conn, late)
            await schedule(conn, [job])
    except TimeoutError:
        raise Unavailable("The bank takes too long. Reverse the message.", retry_after_seconds=1) from None


def _forget(decision: asyncio.Future[Answer]) -> None:
    """Take note of an error that nobody waits for any more."""
    if not decision.cancelled():
        decision.exception()


def command_of(message: Message, customer_id: UUID) -> Command:
    """Return the command of a message. Raises InvalidInput."""
    common: dict[str, Any] = {
        "caller": PROCESSOR,
        "key": message.message_id,
        "customers": (customer_id,),
        "request_hash": _fingerprint(message),
        "references": references_of(message.card_id, message.network_reference),
        "card_id": message.card_id,
    }
    if message.type == MessageType.BALANCE_INQUIRY:
        return InquireBalance(**common, entry_mode=message.entry_mode)
    about: dict[str, Any] = {name: getattr(message, name) for name in ("network_reference", "merchant", "entry_mode")}
    about["is_preauthorization"] = message.is_preauthorization
    if message.type == MessageType.REVERSAL:
        return ReverseAuthorization(**common, **about, amount=message.amount)
    if message.amount is None:
        raise InvalidInput.at("body", "amount", msg="is only left out of a reversal")
    if message.cash > message.amount:
        raise InvalidInput.at("body", "cash", msg="is at most the amount")
    about |= {name: getattr(message, name) for name in ("amount", *_TERMS)}
    if message.type == MessageType.INCREMENT:
        return IncrementAuthorization(**common, **about)
    return AuthorizeCard(**common, **about, is_advice=message.type == MessageType.ADVICE)


def _fingerprint(message: Message) -> bytes:
    """Return what tells one message from another with its id; the time of sending does not.

    What earlier releases did not know is left out where it says nothing: their messages may be sent again.
    """
    unsaid = {"transmitted_at", *(name for name in ("cash", "is_purchase_only_allowed") if not getattr(message, name))}
    said = {name: getattr(message, name) for name in message.__struct_fields__ if name not in unsaid}
    return hashlib.sha256(msgspec.json.encode(said)).digest()
