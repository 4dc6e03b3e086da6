"""Wires of the customer; sent ones are asked for by transfer requests."""

from __future__ import annotations

from uuid import UUID

from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import WIRES
from billfold.http.list_params import OrderedQuery, page_of
from billfold.http.operations import get, with_scope
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank
from billfold.payments.wires.pages import WireQuery, wire_page
from billfold.payments.wires.schemas import Wire, render_wire
from billfold.payments.wires.store.wires import get_wire
from billfold.platform.errors import NotFound

READS = with_scope("transfers.read", WIRES)


@get("/api/v1/wires/", READS, refuses=("not-found",))
async def list_wires(member: CustomerCaller, bank: Bank, wanted: OrderedQuery, asked: WireQuery) -> CursorList[Wire]:
    """List wires in both directions, newest first."""
    if asked.customer_id not in {None, member.customer_id}:
        raise NotFound("There is no such customer.")
    if asked.pocket_id is not None:
        await member.pockets(bank, [asked.pocket_id])
    page = await wire_page(bank, "customer_id", member.customer_id, wanted, asked)
    return page_of(page, [render_wire(row) for row in page.items])


@get("/api/v1/wires/{wire_id}/", READS, name="get_wire")
async def read_wire(member: CustomerCaller, bank: Bank, wire_id: UUID, customer_id: UUID | None = None) -> Wire:
    """Read a wire and what has become of it."""
    if customer_id not in {None, member.customer_id}:
        raise NotFound("There is no such wire.")
    return render_wire(await get_wire(bank.pool, member.customer_id, wire_id))
