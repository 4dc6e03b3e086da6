"""Messages about wires are queued outside a rule: returns from suspense, recalls and their answers."""

from uuid import UUID

import msgspec

from billfold.ledger import scheduler as jobs_store
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.wires.rules import cut_offs, messages
from billfold.payments.wires.rules.messages import MessageFields
from billfold.payments.wires.rules.recording import WIRE_SEND
from billfold.payments.wires.store import message_queue as queue
from billfold.payments.wires.types import QueuedMessage
from billfold.platform.database.connection import Connection
from billfold.platform.ids import command_id, derive


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
