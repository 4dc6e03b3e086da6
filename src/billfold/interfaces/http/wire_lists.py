"""Pages of wires with the filters both APIs have."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from litestar.di import Provide
from litestar.params import QueryParameter

from billfold.domain.wires import WireDirection, WireRow
from billfold.domain.wires.reads import list_wires
from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.lists import ListQuery, list_query
from billfold.kit.errors import InvalidInput
from billfold.kit.paging import Page


class AskedWires(msgspec.Struct, frozen=True):
    """Which wires: every filter None lets all through."""

    pocket_id: UUID | None
    customer_id: UUID | None
    direction: str | None


_Direction = Annotated[
    str | None, QueryParameter(name="direction", description="INCOMING or OUTGOING.")
]


def _asked(
    pocket_id: str | None = None, customer_id: str | None = None, direction: _Direction = None
) -> AskedWires:
    if direction not in {None, WireDirection.INCOMING, WireDirection.OUTGOING}:
        raise InvalidInput.at("query", "direction", msg="must be INCOMING or OUTGOING", kind="enum")
    return AskedWires(
        None if pocket_id is None else ids_in.query_uuid("pocket_id", pocket_id),
        None if customer_id is None else ids_in.query_uuid("customer_id", customer_id),
        direction,
    )


def customer_in(customer_id: str | None = None) -> UUID | None:
    """The customer that a read of one wire may name."""
    return None if customer_id is None else ids_in.query_uuid("customer_id", customer_id)


LISTED = {**list_query(ordered=True), "asked": Provide(_asked, sync_to_thread=False)}


async def wire_page(
    bank: Bank, owner: str, owner_id: UUID, wanted: ListQuery, asked: AskedWires
) -> Page[WireRow]:
    """One page of wires of a `customer_id` or a `partner_id`, newest first unless asked."""
    scope = f"wires:{owner}:{owner_id}"
    filters = {"descending": wanted.descending, **msgspec.to_builtins(asked)}
    position = wanted.position(bank.pager, scope, filters)
    backwards = position is not None and position.direction == "prev"
    rows = await list_wires(
        bank.pool,
        owner,
        owner_id,
        pocket_id=asked.pocket_id,
        customer_id=asked.customer_id,
        direction=asked.direction,
        after=_place(position.place) if position else None,
        descending=wanted.descending != backwards,
        limit=wanted.limit + 1,
    )
    return bank.pager.page(
        scope,
        filters,
        rows,
        limit=wanted.limit,
        came_from=position,
        place_of=lambda row: (row.created_at.isoformat(), str(row.wire_id)),
    )


def _place(place: tuple[object, ...]) -> tuple[datetime, UUID]:
    return datetime.fromisoformat(str(place[0])), UUID(str(place[1]))
