"""Simulated decisions on applications."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.onboarding.applications import store
from billfold.onboarding.applications.decisions import decide
from billfold.onboarding.applications.ports import CheckResult, CheckStatus
from billfold.onboarding.applications.types import ApplicationKind
from billfold.sandbox.operations import sandbox_post
from billfold.sandbox.simulated_identity_check import NEEDED_OF_BUSINESS, NEEDED_OF_INDIVIDUAL

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class ApplicationDecision(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How an application that was submitted shall be decided."""

    application_id: UUID
    status: Literal["APPROVED", "REJECTED", "MANUAL_REVIEW", "DOCUMENTS_NEEDED"]
    reason: Reason | None = None


@sandbox_post(
    "application-decision/",
    name="sandbox_application_decision",
    refuses=("not-found", "application-not-in-review", "application-incomplete"),
)
async def decide_application(caller: Caller, bank: Bank, data: ApplicationDecision) -> None:
    """Decide an application of the partner, or of one of its customers, whatever its check would find."""
    row = await store.get_partner_application(bank.pool, caller.partner_id, data.application_id)
    needed = NEEDED_OF_BUSINESS if row.kind == ApplicationKind.BUSINESS else NEEDED_OF_INDIVIDUAL
    result = CheckResult(
        status=CheckStatus(data.status),
        reasons=(data.reason or f"SANDBOX_{data.status}",) if data.status != "APPROVED" else (),
        documents=(needed,) if data.status == "DOCUMENTS_NEEDED" else (),
    )
    await decide(bank, row, result, origin=caller.origin, now=caller.now)
