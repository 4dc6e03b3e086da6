"""Pages of wires with the filters both APIs have."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.domain.wires import WireRow
from billfold.domain.wires.reads import list_wires
from billfold.engine.bank import Bank
from billfold.interfaces.http.lists import ListQuery
from billfold.interfaces.http.parameters import Query
from billfold.kit.paging import Page


class WireQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which wires: every filter None lets all through."""

    pocket_id: Annotated[UUID | None, Query()] = None
    customer_id: Annotated[UUID | None, Query()] = None
    direction: Annotated[Literal["INCOMING", "OUTGOING"] | None, Query()] = None


async def wire_page(
    bank: Bank, owner: str, owner_id: UUID, wanted: ListQuery, asked: WireQuery
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
