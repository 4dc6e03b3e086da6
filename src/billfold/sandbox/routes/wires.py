"""Operations that make the other side of Fedwire act now instead of at its own instants."""

from typing import Annotated
from uuid import UUID

import msgspec

from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.sandbox.rails.fedwire import Returned, SimulatedFedwire
from billfold.sandbox.routes.operations import request_id, sandbox_post

Code = Annotated[str, msgspec.Meta(pattern=r"^[A-Z0-9]{4}\Z", description="a code of ISO 20022, such as AC04")]
WIRE_MAX_CENTS = 999_999_999_999
InformationText = Annotated[str, msgspec.Meta(min_length=1, max_length=105)]


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """An empty object."""


class Rejection(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The reason a wire is rejected."""

    reason: Code = "AC04"


class ReturnRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The reason a wire is returned, the charges of the banks on its way, and the amount, in cents.

    Without an amount, all that is outstanding is returned; the rest of a smaller one can be returned later.
    """

    reason: Code = "AC04"
    information: InformationText = "Returned by the receiving bank"
    charges_usdc: Annotated[int, msgspec.Meta(ge=0, le=WIRE_MAX_CENTS)] = 0
    amount_usdc: Annotated[int, msgspec.Meta(ge=1, le=WIRE_MAX_CENTS)] | None = None


class Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The reason the sender requests the return of their wire."""

    reason: Code = "DUPL"


@sandbox_post("wires/{wire_id}/submit/", name="sandbox_submit_wire", refuses=("wire-not-pending",))
async def submit(caller: Caller, bank: Bank, fedwire: SimulatedFedwire, wire_id: UUID, data: Nothing) -> None:
    """Send the message of a PENDING wire before its hour: it becomes PROCESSING, if it was not already."""
    del data
    await fedwire.submit(bank, *await caller.owned(bank, "wire", wire_id))


@sandbox_post("wires/{wire_id}/acknowledge/", name="sandbox_acknowledge_wire", refuses=("wire-not-processing",))
async def acknowledge(caller: Caller, bank: Bank, fedwire: SimulatedFedwire, wire_id: UUID, data: Nothing) -> None:
    """Settle a PROCESSING wire (pacs.002, ACSC): it becomes COMPLETED, if it was not already."""
    del data
    await fedwire.settle(bank, *await caller.owned(bank, "wire", wire_id), code=None)


@sandbox_post("wires/{wire_id}/reject/", name="sandbox_reject_wire", refuses=("wire-not-processing",))
async def reject(caller: Caller, bank: Bank, fedwire: SimulatedFedwire, wire_id: UUID, data: Rejection) -> None:
    """Reject a PROCESSING wire (pacs.002, RJCT): the money is refunded."""
    await fedwire.settle(bank, *await caller.owned(bank, "wire", wire_id), code=data.reason)


@sandbox_post(
    "wires/{wire_id}/return/", name="sandbox_return_wire", refuses=("wire-not-completed", "wire-already-returned")
)
async def return_wire(
    caller: Caller, bank: Bank, fedwire: SimulatedFedwire, wire_id: UUID, data: ReturnRequest
) -> None:
    """Return a COMPLETED wire of ours (pacs.004), as a wire of the type RETURN."""
    wire = await caller.owned(bank, "wire", wire_id)
    returned, key = Returned(data.amount_usdc, data.charges_usdc), request_id(caller)
    await fedwire.give_back(bank, *wire, reason=data.reason, information=data.information, returned=returned, key=key)


@sandbox_post("wires/{wire_id}/request-return/", name="sandbox_request_wire_return", refuses=("wire-not-completed",))
async def request_return(caller: Caller, bank: Bank, fedwire: SimulatedFedwire, wire_id: UUID, data: Request) -> None:
    """Request the return of an incoming wire as its sender (camt.056); the operator decides."""
    await fedwire.ask_for(bank, *await caller.owned(bank, "wire", wire_id), reason=data.reason)
