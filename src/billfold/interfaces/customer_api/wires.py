"""Wires of the customer; sent ones are asked for by transfer requests."""

from __future__ import annotations

from litestar import get

from billfold.domain.wires.reads import get_wire
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.groups import WIRES
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.lists import ListQuery, page_of
from billfold.interfaces.http.marks import granted, refuses
from billfold.interfaces.http.shapes.pages import CursorList
from billfold.interfaces.http.shapes.wire import Wire, render_wire
from billfold.interfaces.http.wire_lists import LISTED, AskedWires, customer_in, wire_page
from billfold.kit.errors import NotFound

READS = granted("transfers.read", WIRES)


@get(
    "/api/v1/wires/",
    dependencies=LISTED,
    operation_id="list_wires",
    opt=READS | refuses("not-found"),
    tags=["wires"],
)
async def list_wires(
    member: Member, bank: Bank, wanted: ListQuery, asked: AskedWires
) -> CursorList[Wire]:
    """List wires in both directions, newest first."""
    if asked.customer_id not in {None, member.customer_id}:
        raise NotFound("There is no such customer.")
    if asked.pocket_id is not None:
        await member.pockets(bank, [asked.pocket_id])
    page = await wire_page(bank, "customer_id", member.customer_id, wanted, asked)
    return page_of(page, [render_wire(row) for row in page.items])


@get(
    "/api/v1/wires/{wire_id:str}/",
    operation_id="get_wire",
    opt=READS | refuses("not-found"),
    tags=["wires"],
)
async def read_wire(
    member: Member, bank: Bank, wire_id: str, customer_id: str | None = None
) -> Wire:
    """Read a wire and what has become of it."""
    if customer_in(customer_id) not in {None, member.customer_id}:
        raise NotFound("There is no such wire.")
    named = ids_in.path_uuid("wire_id", wire_id)
    return render_wire(await get_wire(bank.pool, member.customer_id, named))


ROUTES = [list_wires, read_wire]
