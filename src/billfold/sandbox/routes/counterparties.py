"""Simulated decisions and expiry of counterparty verifications."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.commands import DecideVerification, ExpireVerification
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.platform.errors import Refused
from billfold.sandbox.operations import sandbox_post

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class VerificationRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How the verification of a counterparty that is PENDING shall end."""

    counterparty_id: UUID
    status: Literal["APPROVED", "REJECTED", "EXPIRED"]
    reason: Reason | None = None


@sandbox_post(
    "counterparty-verification/",
    name="sandbox_counterparty_verification",
    refuses=("not-found", "counterparty-not-pending", "document-not-in-review"),
)
async def end_verification(caller: Caller, bank: Bank, data: VerificationRequest) -> None:
    """Approve or reject what a counterparty waits with, or let its time run out."""
    owner, own_id = await caller.owned(bank, "counterparty", data.counterparty_id)
    row = await counterparty_store.get_counterparty(bank.pool, owner, own_id)
    if data.status == "EXPIRED":
        if row.status != "PENDING":
            raise Refused("counterparty-not-pending", f"The counterparty is {row.status}.")
        expired = ExpireVerification(**caller.command_fields(owner), counterparty_id=own_id)
        await bank.engine.submit(expired)
        return
    await bank.engine.submit(
        DecideVerification(
            **caller.command_fields(owner),
            references=tuple(counterparty_store.document_ids_of(row)),
            counterparty_id=own_id,
            approved=data.status == "APPROVED",
            reason=data.reason,
        )
    )
