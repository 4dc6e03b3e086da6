"""What a command looks at besides its customers' holdings: rows read under their heads' locks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.domain import ach, activity, counterparties, custody, documents, suspense
from billfold.domain.wires.reads import look_up as look_up_wires
from billfold.flows.adjust import CorrectBooking
from billfold.flows.command import Command
from billfold.flows.customers import CloseCustomer
from billfold.flows.pockets import UpdatePocket
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
PAYERS: frozenset[type[Command]] = frozenset({SendWire, TransferOnUs})
"""Commands that look at whom they pay, and at nothing else."""
SELDOM: dict[type[Command], Look] = {
    AssignFromSuspense: suspense.look_up,
    CloseCustomer: ach.look_up_under_way,
    CorrectBooking: activity.look_up,
    DecideVerification: documents.look_up,
    EndDelivery: custody.look_up,
    ReturnFromSuspense: suspense.look_up,
    UpdatePocket: ach.look_up_under_way,
}
"""What only these commands look at, and payments need not wait for."""


async def look(conn: Connection, batch: Sequence[Job], books: Mapping[UUID, Book]) -> None:
    """Show the books what their commands look at. What they saw earlier is forgotten."""
    asked = [job for job in batch if job.command.looks_at]
    if not asked:
        return
    customers = list({customer for job in asked for customer in job.customers})
    ids = list({each for job in asked for each in job.command.looks_at})
    for customer_id in customers:
        if customer_id in books:
            books[customer_id].seen.clear()
    kinds = {type(job.command) for job in asked}
    often = LOOKS if kinds - PAYERS else (counterparties.look_up,)
    for read in (*often, *{SELDOM[kind] for kind in kinds & SELDOM.keys()}):
        for customer_id, object_id, seen in await read(conn, customers, ids):
            if customer_id in books:
                books[customer_id].seen[object_id] = seen
