"""Messages as stored: accounts, addresses and free text of the parties are sealed, the rest stays legible.

Sealed fields of a message are kept as one text, `sealed`, next to its fields: rules do not read it.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.store import open_details
from billfold.data_keys.keys import DataKey, DataKeys, DataShredded, KeyRing, PartyField, PaymentKeys
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.wires import store
from billfold.payments.wires.commands import IncomingWireFields, QueuedMessage
from billfold.payments.wires.iso20022.types import CreditTransfer, Message
from billfold.payments.wires.rules import cut_offs, messages, recording
from billfold.payments.wires.rules.messages import MessageFields
from billfold.payments.wires.rules.recording import WIRE_SEND
from billfold.payments.wires.store import PendingMessage, SentMessage
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id, derive
from billfold.platform.settings.settings import Settings


async def queue_about(
    bank: Bank, conn: Connection, wire_id: UUID, customer_id: UUID, kind: str, terms: MessageFields
) -> None:
    """Queue a message about a wire: one of a kind per wire and case.

    Call it in a transaction, so that the message and its scheduled job are stored together.
    """
    messages.expect_sendable(kind, terms)
    now = await bank.now(conn)
    at = cut_offs.send_time(now, bank.calendars, bank.terms.wire_hours, international=False)
    case_id = terms.get("case_id")
    about = wire_id if case_id is None else f"{wire_id}:{case_id}"
    message_id = derive(bank.seed, command_id(f"wire-message:{kind}", about), 0)
    message = QueuedMessage(
        message_id=message_id,
        customer_id=customer_id,
        wire_id=wire_id,
        kind=kind,
        send_at=at,
        terms=msgspec.json.encode(terms).decode(),
    )
    await store.enqueue(conn, message)
    await scheduler.schedule(conn, [ScheduledJob(WIRE_SEND, message_id, customer_id, at=at)])


def message_to_send(bank: Bank, ring: KeyRing, waiting: PendingMessage, imad: str, *, at: datetime) -> Message:
    """Return the message to send now, with the payer's account number. Raises DataShredded."""
    terms: MessageFields = msgspec.json.decode(waiting.terms)
    if messages.PAYEE in terms:
        payee = open_details(ring.get(waiting.customer_id), terms[messages.PAYEE])
        if payee["identifier"] is None:
            raise DataShredded(waiting.customer_id)
        terms = messages.with_payee(terms, payee)
    if waiting.kind == "pacs.008" and waiting.account_number is not None:
        terms["debtor_account"] = {"number": waiting.account_number}
    return messages.message_of(waiting.kind, terms, imad, at=at, day=fedwire_day(bank, at))


async def message_sent(bank: Bank, sent: SentMessage) -> Message:
    """Return a message as it was sent, without fields destroyed since."""
    terms: MessageFields = msgspec.json.decode(sent.terms)
    if messages.PAYEE in terms:
        ring = await bank.ports[DataKeys].load(bank.pool, (sent.customer_id,))
        terms = messages.with_payee(terms, open_details(ring.get(sent.customer_id), terms[messages.PAYEE]))
    return messages.message_of(sent.kind, terms, sent.imad, at=sent.sent_at, day=fedwire_day(bank, sent.sent_at))


def environment_of(settings: Settings) -> str:
    """Return the Fedwire environment of the bank: TEST in a sandbox, else PROD."""
    return "PROD" if settings.is_production else "TEST"


def fedwire_day(bank: Bank, at: datetime) -> date:
    """Return the Fedwire business day on which a message of this instant settles."""
    return bank.calendars.fed_on_or_after(et_date(at))


_SEALED: Final = "sealed"
_FIELDS: Final = ("debtor_account", "creditor_account", "instructions", "remittance", "documents")
_PARTIES: Final = ("debtor", "creditor", "creator")


def seal_message(data_key: DataKey, message: Message) -> dict[str, Any]:
    """Return a message as stored, in JSON-ready values."""
    fields: dict[str, Any] = msgspec.to_builtins(message)
    sealed = {name: fields.pop(name) for name in _FIELDS if fields.get(name) is not None}
    for name in _PARTIES:
        address = fields.get(name, {}).pop("address", None)
        if address is not None:
            sealed[name] = {"address": address}
    if sealed:
        fields[_SEALED] = PartyField.TEXT.seal(data_key, msgspec.json.encode(sealed).decode())
    return fields


def open_message(keys: PaymentKeys, customer_id: UUID, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored message in JSON-ready values; fields destroyed with their key are omitted."""
    fields = {name: value for name, value in stored.items() if name != _SEALED}
    sealed = stored.get(_SEALED)
    plain = None if sealed is None else keys.open(PartyField.TEXT, customer_id, sealed)
    opened: dict[str, Any] = {} if plain is None else msgspec.json.decode(plain)
    for name, value in opened.items():
        fields[name] = {**fields[name], **value} if name in _PARTIES else value
    return fields


def seal_payment(data_key: DataKey, message: CreditTransfer, omad: str | None) -> IncomingWireFields:
    """Return the wire fields of a payment message, sealed."""
    fields = msgspec.json.encode(seal_message(data_key, message)).decode()
    instructions = seal_text(data_key, message.instructions)
    plain = recording.incoming_wire_of(message, omad)
    return msgspec.structs.replace(plain, message=fields, instructions=instructions)


def payment_details(
    data_key: DataKey, message: CreditTransfer, description: str | None, omad: str | None
) -> dict[str, Any]:
    """Return the details of a held payment: those for its return, and those for booking it later."""
    remittance, documents = seal_remittance(data_key, message)
    return {
        "description": seal_text(data_key, description),
        "message": seal_message(data_key, message),
        "omad": omad,
        "instructions": seal_text(data_key, message.instructions),
        "remittance": remittance,
        "documents": documents,
    }


def seal_remittance(data_key: DataKey, message: CreditTransfer) -> tuple[str | None, str | None]:
    """Return lines and documents of a payment, each sealed as one text; None if there are none."""
    documents = msgspec.json.encode(message.documents).decode() if message.documents else None
    return seal_text(data_key, message.remittance), seal_text(data_key, documents)


def seal_text(data_key: DataKey, text: str | None) -> str | None:
    """Return a text sealed, None for None."""
    return PartyField.TEXT.seal(data_key, text) if text else None
