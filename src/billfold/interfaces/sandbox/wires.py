"""What the other side of Fedwire does, at once instead of at its own instants."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, post
from litestar.status_codes import HTTP_202_ACCEPTED

from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.answers import nothing
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.marks import BEARER, refuses
from billfold.interfaces.sandbox.simulation import SIMULATED, TheSimulation

Code = Annotated[
    str,
    msgspec.Meta(pattern="^[A-Z0-9]{4}$", description="a code of ISO 20022, such as AC04"),
]
MOST_CENTS = 999_999_999_999
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=105)]


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """An empty object."""


class Rejection(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Why the wire is rejected."""

    reason: Code = "AC04"


class Returned(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Why the wire comes back, and what the banks on its way keep of it, in cents."""

    reason: Code = "AC04"
    information: Words = "Returned by the receiving bank"
    charges_usdc: Annotated[int, msgspec.Meta(ge=0, le=MOST_CENTS)] = 0


class Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Why the sender asks for his wire."""

    reason: Code = "DUPL"


@post(
    "/api/v1/sandbox/wires/{wire_id:str}/submit/",
    status_code=HTTP_202_ACCEPTED,
    opt=BEARER | refuses("not-found", "wire-not-pending"),
    operation_id="sandbox_submit_wire",
    tags=["sandbox"],
    dependencies=SIMULATED,
)
async def submit(
    caller: Caller, bank: Bank, simulation: TheSimulation, wire_id: str, data: Nothing
) -> Response[None]:
    """Hand the message of a PENDING wire over before its hour: it is PROCESSING then."""
    del data
    owner, own_id = await caller.wire(bank, ids_in.path_uuid("wire_id", wire_id))
    await simulation.wires.submit(bank, owner, own_id)
    return nothing()


@post(
    "/api/v1/sandbox/wires/{wire_id:str}/acknowledge/",
    status_code=HTTP_202_ACCEPTED,
    opt=BEARER | refuses("not-found", "wire-not-processing"),
    operation_id="sandbox_acknowledge_wire",
    tags=["sandbox"],
    dependencies=SIMULATED,
)
async def acknowledge(
    caller: Caller, bank: Bank, simulation: TheSimulation, wire_id: str, data: Nothing
) -> Response[None]:
    """Let a PROCESSING wire settle (pacs.002, ACSC): it is COMPLETED then."""
    del data
    owner, own_id = await caller.wire(bank, ids_in.path_uuid("wire_id", wire_id))
    await simulation.wires.settle(bank, owner, own_id, None)
    return nothing()


@post(
    "/api/v1/sandbox/wires/{wire_id:str}/reject/",
    status_code=HTTP_202_ACCEPTED,
    opt=BEARER | refuses("not-found", "wire-not-processing"),
    operation_id="sandbox_reject_wire",
    tags=["sandbox"],
    dependencies=SIMULATED,
)
async def reject(
    caller: Caller, bank: Bank, simulation: TheSimulation, wire_id: str, data: Rejection
) -> Response[None]:
    """Let a PROCESSING wire be rejected (pacs.002, RJCT): the money is back then."""
    owner, own_id = await caller.wire(bank, ids_in.path_uuid("wire_id", wire_id))
    await simulation.wires.settle(bank, owner, own_id, data.reason)
    return nothing()


@post(
    "/api/v1/sandbox/wires/{wire_id:str}/return/",
    status_code=HTTP_202_ACCEPTED,
    opt=BEARER | refuses("not-found", "wire-not-completed", "wire-already-returned"),
    operation_id="sandbox_return_wire",
    tags=["sandbox"],
    dependencies=SIMULATED,
)
async def give_back(
    caller: Caller, bank: Bank, simulation: TheSimulation, wire_id: str, data: Returned
) -> Response[None]:
    """Let a COMPLETED wire of ours come back (pacs.004), as a wire of the type RETURN."""
    owner, own_id = await caller.wire(bank, ids_in.path_uuid("wire_id", wire_id))
    await simulation.wires.give_back(
        bank, owner, own_id, data.reason, data.information, data.charges_usdc
    )
    return nothing()


@post(
    "/api/v1/sandbox/wires/{wire_id:str}/request-return/",
    status_code=HTTP_202_ACCEPTED,
    opt=BEARER | refuses("not-found", "wire-not-completed"),
    operation_id="sandbox_request_wire_return",
    tags=["sandbox"],
    dependencies=SIMULATED,
)
async def ask_for(
    caller: Caller, bank: Bank, simulation: TheSimulation, wire_id: str, data: Request
) -> Response[None]:
    """Let the sender of a wire that arrived ask for it (camt.056); the operator decides."""
    owner, own_id = await caller.wire(bank, ids_in.path_uuid("wire_id", wire_id))
    await simulation.wires.ask_for(bank, owner, own_id, data.reason)
    return nothing()
