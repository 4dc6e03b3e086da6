"""A wire that arrived is returned, as when two operators have decided it."""

from uuid import UUID

from billfold.ledger.types import (Origin)
from billfold.payments.wires.cases import carry_out_return, get_wire
from billfold.payments.wires.commands import ReturnWire
from billfold.platform import ids


async def pay_back(bank, wire_id, *, key=None):
    """Return a wire, and accept its recall; return the id of the return."""
    wire = await get_wire(bank, wire_id)
    command = ReturnWire(
        caller="operator",
        key=key or ids.new(),
        customers=(wire.customer_id,),
        references=(wire_id,),
        origin=Origin.operator(),
        original_id=wire_id,
        code="FOCR",
    )
    return UUID((await carry_out_return(bank, command))["wire_id"])
