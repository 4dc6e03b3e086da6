"""What a command looks at besides its customers' holdings: rows read under their heads' locks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.domain import activity, counterparties, custody, documents, suspense
from billfold.domain.wires.reads import look_up as look_up_wires

if TYPE_CHECKING:
    from billfold.engine.job import Job
    from billfold.flows.book import Book
    from billfold.kit.db import Connection

Look = Callable[
    ["Connection", Sequence[UUID], Sequence[UUID]], Awaitable[list[tuple[UUID, UUID, Any]]]
]
"""Reads those of some objects of some customers that are of one noun: (customer, id, object)."""

LOOKS: tuple[Look, ...] = (
    counterparties.look_up, look_up_wires, suspense.look_up, activity.look_up,
    custody.look_up, documents.look_up,
)  # fmt: skip


async def look(conn: Connection, batch: Sequence[Job], books: Mapping[UUID, Book]) -> None:
    """Show the books what their commands look at. What they saw earlier is forgotten."""
    asked = [job for job in batch if job.command.looks_at]
    if not asked:
        return
    customers = list({customer for job in asked for customer in job.customers})
    ids = list({each for job in asked for each in job.command.looks_at})
    for customer_id in customers:
        if customer_id in books:
            books[customer_id].seen = {}
    for read in LOOKS:
        for customer_id, object_id, seen in await read(conn, customers, ids):
            if customer_id in books:
                books[customer_id].seen[object_id] = seen
