"""Fedwire messages as they are sent."""

from datetime import date, datetime
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.sealed_details import open_details
from billfold.data_keys.keys import DataKeys, KeyRing
from billfold.data_keys.types import DataShredded
from billfold.ledger.bank import Bank
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.types import ScheduledJob
from billfold.payments.wires import store as queue
from billfold.payments.wires.commands import QueuedMessage
from billfold.payments.wires.iso20022.types import Message
from billfold.payments.wires.rules import cut_offs, messages
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

    Call it in a transaction: the message and its scheduled job belong together.
    """
    messages.expect_sendable(kind, terms)
    now = await bank.now()
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
    await queue.enqueue(conn, message)
    await jobs_store.schedule(conn, [ScheduledJob(WIRE_SEND, message_id, customer_id, at=at)])


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
    """Return a message as it was sent, without what was destroyed since."""
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
