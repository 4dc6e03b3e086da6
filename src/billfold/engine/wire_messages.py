"""Messages about wires: those that move no customer's money are queued here, all are made here."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.domain import agenda, wires
from billfold.domain.wires import queue
from billfold.flows.send_wire import WIRE_SEND
from billfold.kit.dates import et_date
from billfold.kit.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.domain.wires.queue import Sent, Waiting
    from billfold.engine.bank import Bank
    from billfold.kit.db import Connection
    from billfold.kit.settings import Settings
    from billfold.ports.fedwire import Message


async def queue_about(
    bank: Bank, conn: Connection, wire_id: UUID, customer_id: UUID, kind: str, terms: wires.Terms
) -> None:
    """Let a message about a wire be sent when wires are: one of a kind for each wire and case.

    Call it in a transaction: the message and its appointment belong together.
    """
    wires.expect_sendable(kind, terms)
    now = await bank.now()
    at = wires.leaves_at(now, bank.calendars, bank.terms.wire_hours, international=False)
    case_id = terms.get("case_id")
    about = wire_id if case_id is None else f"{wire_id}:{case_id}"
    message_id = derive(bank.seed, command_id(f"wire-message:{kind}", about), 0)
    message = wires.QueuedMessage(
        message_id=message_id,
        customer_id=customer_id,
        wire_id=wire_id,
        kind=kind,
        send_at=at,
        terms=msgspec.json.encode(terms).decode(),
    )
    await queue.queue(conn, message)
    await agenda.make(conn, [agenda.Appointment(WIRE_SEND, message_id, customer_id, at)])


def message_of(bank: Bank, waiting: Waiting, imad: str, at: datetime) -> Message:
    """Return what a message says that goes now, with the account number of whoever pays."""
    told: dict[str, Any] = msgspec.json.decode(waiting.terms)
    if waiting.kind == "pacs.008" and waiting.account_number is not None:
        told["debtor_account"] = {"number": waiting.account_number}
    return wires.message_of(waiting.kind, told, imad, at, fedwire_day(bank, at))


def message_sent(bank: Bank, sent: Sent) -> Message:
    """Return a message of ours as it was sent."""
    told: dict[str, Any] = msgspec.json.decode(sent.terms)
    return wires.message_of(
        sent.kind, told, sent.imad, sent.sent_at, fedwire_day(bank, sent.sent_at)
    )


def environment_of(settings: Settings) -> str:
    """Return which Fedwire the bank is on: a sandbox knows no real one."""
    return "PROD" if settings.is_production else "TEST"


def fedwire_day(bank: Bank, at: datetime) -> date:
    """Return the day of Fedwire on which a message of this instant settles."""
    return bank.calendars.fed_on_or_after(et_date(at))
