"""Messages about wires that move no customer's money: queued outside of any command."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.domain import agenda, wires
from billfold.domain.wires import queue
from billfold.flows.send_wire import WIRE_SEND
from billfold.kit.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.engine.bank import Bank


async def queue_about(
    bank: Bank, wire_id: UUID, customer_id: UUID, kind: str, terms: wires.Terms
) -> None:
    """Let a message about a wire be sent when wires are. One of a kind is queued for each wire."""
    wires.expect_sendable(kind, terms)
    now = await bank.now()
    at = wires.leaves_at(now, bank.calendars, bank.terms.wire_hours, international=False)
    message_id = derive(bank.seed, command_id(f"wire-message:{kind}", wire_id), 0)
    message = wires.QueuedMessage(
        message_id=message_id,
        customer_id=customer_id,
        wire_id=wire_id,
        kind=kind,
        send_at=at,
        terms=msgspec.json.encode(terms).decode(),
    )
    async with bank.pool.acquire() as conn, conn.transaction():
        await queue.queue(conn, message)
        due = agenda.Appointment(WIRE_SEND, message_id, customer_id, at)
        await agenda.make(conn, [due])
