"""Pages of wires with the filters both APIs have."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.http.list_params import ListQuery
from billfold.http.parameters import Query
from billfold.ledger.bank import Bank
from billfold.payments.wires.store.wires import list_wires
from billfold.payments.wires.types import WireRow
from billfold.platform.paging import Page


class WireQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which wires: every filter None lets all through."""

    pocket_id: Annotated[UUID | None, Query()] = None
    customer_id: Annotated[UUID | None, Query()] = None
    direction: Annotated[Literal["INCOMING", "OUTGOING"] | None, Query()] = None


async def wire_page(bank: Bank, owner: str, owner_id: UUID, wanted: ListQuery, asked: WireQuery) -> Page[WireRow]:
    """One page of wires of a `customer_id` or a `partner_id`, newest first unless asked."""
    scope = f"wires:{owner}:{owner_id}"
    filters = {"descending": wanted.descending, **msgspec.to_builtins(asked)}
    return await wanted.page(
        bank.pager,
        scope,
        filters,
        read=lambda part: list_wires(
            bank.pool,
            owner,
            owner_id,
            pocket_id=asked.pocket_id,
            customer_id=asked.customer_id,
            direction=asked.direction,
            after=part.dated_place,
            descending=part.descending,
            limit=part.limit,
        ),
        sort_key_of=lambda row: (row.created_at.isoformat(), str(row.wire_id)),
    )
