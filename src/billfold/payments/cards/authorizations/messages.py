"""Turns messages of the card processor into commands, and answers them in time.

The processor waits for two seconds. A message whose decision takes longer is stored before it is declined: a later
approval is reversed by a job, and the message is declined whenever it is sent again.
"""

import asyncio
import hashlib
import hmac
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec

from billfold.http.api import Api
from billfold.http.operations import OPEN, Proof, post
from billfold.http.raw_request import RawRequest, decode
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.engine.pending_command import Answer
from billfold.ledger.scheduler import schedule
from billfold.ledger.types import ScheduledJob
from billfold.payments.cards.authorizations import commands, store
from billfold.platform.clock import wall_now
from billfold.platform.errors import InvalidInput, Refused, Unavailable
from billfold.platform.settings.settings import Settings

DEADLINE_SECONDS: Final = 1.7
"""Out of the network's two seconds; the rest is for transmission."""
_KEEPING_SECONDS: Final = 0.2
"""Maximum time for storing a late message."""
AMOUNT_MAX: Final = 999_999_999_999
"""Twelve digits, as in field 4 of ISO 8583."""


class MessageType(StrEnum):
    """The type of request. An advice reports a decision by the processor or the network."""

    AUTHORIZATION = "AUTHORIZATION"
    INCREMENT = "INCREMENT"
    REVERSAL = "REVERSAL"
    ADVICE = "ADVICE"
    REFUND = "REFUND"
    BALANCE_INQUIRY = "BALANCE_INQUIRY"


Cents = Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)]


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message about a card. `amount` is cents; for a reversal it is the amount to release, null for all of it.

    `cash` is the part of the amount paid out in cash; at an ATM it is all of it. `is_partial_allowed` and
    `is_purchase_only_allowed` state whether the terminal accepts a partial approval, or one without the cash.
    """

    message_id: UUID
    type: MessageType
    card_id: UUID
    network_reference: commands.NetworkReference
    amount: Cents | None
    merchant: commands.Merchant
    transmitted_at: datetime
    currency: Literal["USD"] = "USD"
    cash: Cents = 0
    is_partial_allowed: bool = False
    is_purchase_only_allowed: bool = False
    is_preauthorization: bool = False
    entry_mode: commands.EntryMode | None = None


class MessageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The bank's decision. `approved_amount` is cents; for an inquiry, the amount that the card could pay now."""

    decision: commands.Decision
    approved_amount: int = 0
    reason: commands.DeclineReason | None = None
    authorization_id: UUID | None = None


_AFTER_LATE: Final = frozenset({MessageType.ADVICE, MessageType.REVERSAL})
"""What was approved too late is reversed before these: or it is taken from a hold advised, or counts as released."""
_TERMS: Final = ("cash", "is_partial_allowed", "is_purchase_only_allowed")
"""The fields that decide how much of the amount can be approved."""
_TIMED_OUT: Final = MessageAnswer(decision=commands.Decision.DECLINED, reason=commands.DeclineReason.TIMED_OUT)


async def answer_message(bank: Bank, message: Message) -> MessageAnswer:
    """Decide a message. Raises InvalidInput, Unavailable, and Refused for an id that another message used."""
    entry = await bank.directory.find("card", message.card_id)
    if entry is None:
        return MessageAnswer(decision=commands.Decision.DECLINED, reason=commands.DeclineReason.CARD_NOT_FOUND)
    if message.type == MessageType.REFUND:  # only announced: the money comes by clearing
        return MessageAnswer(decision=commands.Decision.APPROVED, approved_amount=message.amount or 0)
    return await _decide_message(bank, message, command_of(message, entry.customer_id))


async def _decide_message(bank: Bank, message: Message, command: Command) -> MessageAnswer:
    if message.type in _AFTER_LATE:
        for late in await store.list_to_reverse(bank.pool, command.customers[0]):
            earlier = msgspec.json.decode(late.message, type=Message)
            if (earlier.card_id, earlier.network_reference) == (message.card_id, message.network_reference):
                await reverse_late_message(bank, late)
    is_repeated = bank.engine.is_running(command)
    decision = asyncio.ensure_future(bank.engine.submit(command))
    decision.add_done_callback(_ignore_abandoned)
    try:
        answer = await asyncio.wait_for(asyncio.shield(decision), DEADLINE_SECONDS)
    except TimeoutError:
        if (
            not isinstance(command, commands.AuthorizeCard | commands.IncrementAuthorization)
            or message.type == MessageType.ADVICE
        ):
            raise Unavailable("The bank takes too long. Send the message again.", retry_after_seconds=1) from None
        await _keep_late(bank, message, command.customers[0])
        return _TIMED_OUT
    if (answer.replayed or is_repeated) and await store.is_late(bank.pool, command.customers[0], message.message_id):
        return _TIMED_OUT
    names = MessageAnswer.__struct_fields__
    return msgspec.convert({name: answer.outcome[name] for name in names}, MessageAnswer)


async def _keep_late(bank: Bank, message: Message, customer_id: UUID) -> None:
    """Store a message that is about to be declined. Raises Unavailable: then the processor must reverse it."""
    job = ScheduledJob(commands.LATE_JOB, message.message_id, customer_id, await bank.now())
    late = commands.LateMessageRow(
        message_id=message.message_id, customer_id=customer_id, message=msgspec.json.encode(message).decode()
    )
    try:
        async with asyncio.timeout(_KEEPING_SECONDS), bank.pool.acquire() as conn, conn.transaction():
            await store.keep_late(conn, late)
            await schedule(conn, [job])
    except TimeoutError:
        raise Unavailable("The bank takes too long. Reverse the message.", retry_after_seconds=1) from None


async def reverse_late_message(bank: Bank, late: commands.LateMessageRow) -> None:
    """Reverse a message that was approved after it had been declined; an undecided one is decided first."""
    command = command_of(msgspec.json.decode(late.message, type=Message), late.customer_id)
    assert isinstance(command, commands.AuthorizeCard | commands.IncrementAuthorization)
    outcome = (await bank.engine.submit(command)).outcome
    if cents := outcome["approved_amount"]:
        await bank.engine.submit(
            commands.ReverseAuthorization(
                caller=commands.LATE,
                key=command.key,
                customers=command.customers,
                references=command.references,
                card_id=command.card_id,
                network_reference=command.network_reference,
                merchant=command.merchant,
                amount=cents,
                is_late=isinstance(command, commands.AuthorizeCard),
                hold_entry_no=outcome.get("hold_entry_no"),
            )
        )


def _ignore_abandoned(decision: asyncio.Future[Answer]) -> None:
    """Retrieve the error of an abandoned decision, so that it is not reported as unhandled."""
    if not decision.cancelled():
        decision.exception()


def command_of(message: Message, customer_id: UUID) -> Command:
    """Return the command of a message. Raises InvalidInput."""
    common: dict[str, Any] = {
        "caller": commands.PROCESSOR,
        "key": message.message_id,
        "customers": (customer_id,),
        "request_hash": _fingerprint(message),
        "references": commands.references_of(message.card_id, message.network_reference),
        "card_id": message.card_id,
    }
    if message.type == MessageType.BALANCE_INQUIRY:
        return commands.InquireBalance(**common, entry_mode=message.entry_mode)
    about: dict[str, Any] = {name: getattr(message, name) for name in ("network_reference", "merchant", "entry_mode")}
    about["is_preauthorization"] = message.is_preauthorization
    if message.type == MessageType.REVERSAL:
        return commands.ReverseAuthorization(**common, **about, amount=message.amount)
    if message.amount is None:
        raise InvalidInput.at("body", "amount", msg="is only left out of a reversal")
    if message.cash > message.amount:
        raise InvalidInput.at("body", "cash", msg="is at most the amount")
    about |= {name: getattr(message, name) for name in ("amount", *_TERMS)}
    if message.type == MessageType.INCREMENT:
        return commands.IncrementAuthorization(**common, **about)
    return commands.AuthorizeCard(**common, **about, is_advice=message.type == MessageType.ADVICE)


def _fingerprint(message: Message) -> bytes:
    """Return the fingerprint that distinguishes messages with the same id; it ignores the time of sending."""
    said = {name: getattr(message, name) for name in message.__struct_fields__ if name != "transmitted_at"}
    return hashlib.sha256(msgspec.json.encode(said)).digest()


WINDOW_SECONDS: Final = 300
_KEY_PERSON: Final = b"billfold.cards"


def processor_key(settings: Settings, seed: bytes) -> bytes | None:
    """Return the key for messages: from the settings, or derived from a sandbox's seed; None: there is no processor."""
    if settings.card_processor_key is not None:
        return settings.card_processor_key
    return None if settings.is_production else hashlib.blake2b(seed, digest_size=32, person=_KEY_PERSON).digest()


def sign_message(key: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a message."""
    return hmac.digest(key, timestamp.encode() + body, "sha256").hex()


@post("/v1/messages/", OPEN, tag="cards", status=200, any_query=True)
async def decide_message(request: RawRequest, bank: Bank) -> MessageAnswer:
    """Decide a message about a card."""
    _require_signed(bank, request)
    request.check_content_type()
    message: Message = decode(request.body, Message)
    return await answer_message(bank, message)


def _require_signed(bank: Bank, request: RawRequest) -> None:
    """Raise Refused invalid-signature unless the body has a recent signature of the processor."""
    key = processor_key(bank.settings, bank.seed)
    timestamp, signature = request.header(b"x-timestamp") or "", request.header(b"x-signature") or ""
    is_recent = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= len("9999999999")
    is_recent = is_recent and abs(wall_now().timestamp() - int(timestamp)) <= WINDOW_SECONDS
    if key is None or not is_recent:
        raise Refused("invalid-signature", "The message is not signed, or not within five minutes.")
    if not hmac.compare_digest(sign_message(key, timestamp, request.body).encode(), signature.lower().encode()):
        raise Refused("invalid-signature", "The signature does not match timestamp and body.")


class CardProcessorApi(Api):
    """The API of the card processor."""

    def __init__(self) -> None:
        super().__init__([decide_message], frozenset({Proof.NONE}))


def create_card_processor_app(bank: Bank) -> CardProcessorApi:
    """Return the ASGI application of one worker."""
    api = CardProcessorApi()
    api.open(bank, None)
    return api
