"""Fedwire messages as they are sent."""

from datetime import date, datetime

import msgspec

from billfold.accounts.counterparties.sealed_details import open_details
from billfold.data_keys.data_key import DataShredded
from billfold.data_keys.keys import DataKeys, KeyRing
from billfold.ledger.bank import Bank
from billfold.payments.wires.iso20022.types import Message
from billfold.payments.wires.rules import messages
from billfold.payments.wires.rules.messages import MessageFields
from billfold.payments.wires.store.message_queue import PendingMessage, SentMessage
from billfold.platform.dates import et_date
from billfold.platform.settings.settings import Settings


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
