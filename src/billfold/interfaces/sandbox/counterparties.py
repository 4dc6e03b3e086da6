"""What a review decides of a counterparty, and when its time is over, because somebody asked."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from litestar import Response, post
from litestar.status_codes import HTTP_202_ACCEPTED

from billfold.domain import counterparties
from billfold.engine.bank import Bank
from billfold.flows.counterparty_commands import DecideVerification, ExpireVerification
from billfold.interfaces.http.answers import nothing
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.marks import BEARER, refuses
from billfold.kit.errors import Refused

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class VerificationRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How the verification of a counterparty that is PENDING shall end."""

    counterparty_id: UUID
    status: Literal["APPROVED", "REJECTED", "EXPIRED"]
    reason: Reason | None = None


@post(
    "/api/v1/sandbox/counterparty-verification/",
    status_code=HTTP_202_ACCEPTED,
    opt=BEARER | refuses("not-found", "counterparty-not-pending", "document-not-in-review"),
    operation_id="sandbox_counterparty_verification",
    tags=["sandbox"],
)
async def end_verification(caller: Caller, bank: Bank, data: VerificationRequest) -> Response[None]:
    """Approve or reject what a counterparty waits with, or let its time run out."""
    owner, own_id = await caller.counterparty(bank, data.counterparty_id)
    row = await counterparties.get_counterparty(bank.pool, owner, own_id)
    if data.status == "EXPIRED":
        if row.status != "PENDING":
            raise Refused("counterparty-not-pending", f"The counterparty is {row.status}.")
        expired = ExpireVerification(**caller.command_fields(owner), counterparty_id=own_id)
        await bank.engine.submit(expired)
        return nothing()
    await bank.engine.submit(
        DecideVerification(
            **caller.command_fields(owner),
            references=tuple(counterparties.documents_of(row)),
            counterparty_id=own_id,
            approved=data.status == "APPROVED",
            reason=data.reason,
        )
    )
    return nothing()


ROUTES = [end_verification]
