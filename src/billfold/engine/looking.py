"""What a command looks at besides its customers' holdings: rows read under their heads' locks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.domain import ach, activity, counterparties, custody, documents, suspense
from billfold.domain.wires.reads import look_up as look_up_wires
from billfold.flows.adjust import CorrectBooking
from billfold.flows.command import Command
from billfold.flows.originate_ach import OriginateAch
from billfold.flows.send_wire import SendWire
from billfold.flows.suspense import AssignFromSuspense, ReturnFromSuspense
from billfold.flows.transfer_bills import EndDelivery
from billfold.flows.transfer_on_us import TransferOnUs
from billfold.flows.verify_counterparty import DecideVerification

if TYPE_CHECKING:
    from billfold.engine.job import Job
    from billfold.flows.book import Book
    from billfold.kit.db import Connection

Look = Callable[
    ["Connection", Sequence[UUID], Sequence[UUID]], Awaitable[list[tuple[UUID, UUID, Any]]]
]
"""Reads those of some objects of some customers that are of one noun: (customer, id, object)."""

LOOKS: tuple[Look, ...] = (counterparties.look_up, look_up_wires, ach.look_up)
_WHO_IS_PAID: tuple[Look, ...] = (counterparties.look_up,)
_LOOKS_OF: dict[type[Command], tuple[Look, ...]] = {
    AssignFromSuspense: (*LOOKS, suspense.look_up),
    CorrectBooking: (*LOOKS, activity.look_up),
    DecideVerification: (*LOOKS, documents.look_up),
    EndDelivery: (*LOOKS, custody.look_up),
    OriginateAch: _WHO_IS_PAID,
    ReturnFromSuspense: (*LOOKS, suspense.look_up),
    SendWire: _WHO_IS_PAID,
    TransferOnUs: _WHO_IS_PAID,
}
"""What commands look at that look at more than the others, or at less."""


async def look(conn: Connection, batch: Sequence[Job], books: Mapping[UUID, Book]) -> None:
    """Show the books what their commands look at. What they saw earlier is forgotten."""
    for job in batch:
        if job.command.looks_at:
            for customer_id in job.customers:
                if customer_id in books:
                    books[customer_id].seen = {}
    for read, jobs in _asked(batch).items():
        customers = list({customer for job in jobs for customer in job.customers})
        ids = list({each for job in jobs for each in job.command.looks_at})
        for customer_id, object_id, seen in await read(conn, customers, ids):
            if customer_id in books:
                books[customer_id].seen[object_id] = seen


def _asked(batch: Sequence[Job]) -> dict[Look, list[Job]]:
    """Which commands look at what."""
    asked: dict[Look, list[Job]] = {}
    for job in batch:
        if job.command.looks_at:
            for read in _LOOKS_OF.get(type(job.command), LOOKS):
                asked.setdefault(read, []).append(job)
    return asked
