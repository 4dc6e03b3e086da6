"""Whom a report is about, and which bills it has traded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.platform.errors import NotFound
from billfold.reports.entries.store import last_entry_before

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection, Pool)
    from billfold.reports.requests.types import ReportRequest

_CUSTOMER = "SELECT name FROM customer WHERE customer_id = $1"
_POCKETS = "SELECT pocket_id, name FROM pocket WHERE customer_id = $1 ORDER BY opened_at, written_no"
_OPENED = "SELECT pocket_id FROM pocket WHERE customer_id = $1 AND opened_at <= $2 ORDER BY opened_at, written_no"
_TRADED = "SELECT DISTINCT cusip FROM trade WHERE customer_id = $1 AND entry_no <= $2 ORDER BY cusip"


class Entity(NamedTuple):
    """A customer and the names of its Pockets."""

    customer_id: UUID
    name: str
    pockets: Mapping[UUID, str]

    def distinct_name(self, pocket_id: UUID) -> str:
        """Return the name of a Pocket; where several have the same, with the beginning of its id."""
        name = self.pockets[pocket_id]
        return name if Counter(self.pockets.values())[name] == 1 else f"{name} ({pocket_id.hex[:8]})"


async def entity_of(bank: Bank, customer_id: UUID) -> Entity:
    """Return a customer and its Pockets as they are called now. Raises NotFound."""
    name = await bank.pool.fetchval(_CUSTOMER, customer_id)
    if name is None:
        raise NotFound("There is no such customer.")
    return Entity(
        customer_id, name, {row["pocket_id"]: row["name"] for row in await bank.pool.fetch(_POCKETS, customer_id)}
    )


async def pockets_of(bank: Bank, request: ReportRequest) -> tuple[UUID, ...]:
    """Return the Pockets that a report is about: those named, or all that were open when it was requested."""
    named = request.parameters.pocket_ids
    if named is not None:
        return named
    rows = await bank.pool.fetch(_OPENED, request.customer_id, request.created_at)
    return tuple(row["pocket_id"] for row in rows)


async def last_entry_shown(bank: Bank, request: ReportRequest) -> int:
    """Return the number of the last journal entry that a report shows."""
    if request.shown_at < request.created_at:
        return await last_entry_before(bank.pool, request.customer_id, request.shown_at)
    return request.entry_no


async def cusips_traded(conn: Connection | Pool, customer_id: UUID, through: int) -> list[str]:
    """Return the CUSIPs that a customer has ever traded up to a journal entry."""
    return [row["cusip"] for row in await conn.fetch(_TRADED, customer_id, through)]
