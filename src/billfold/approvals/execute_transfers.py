"""Approved transfer requests are carried out, once, under the id of their request.

The API does so as soon as the approval is committed. The job that was scheduled in the same commit
does it when the process of the API ended before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.approvals.feasibility import CALLER, INSUFFICIENT_FUNDS, command_for
from billfold.approvals.transfer_requests import record_rejection
from billfold.approvals.types import TransferRequest
from billfold.ledger.jobs.types import ScheduledJob
from billfold.payments.on_us.worker import CALLER as PENDING_TRANSFER
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

_REASONS = {
    "counterparty-not-verified": "ACCOUNT_UNAVAILABLE",
    "insufficient-funds": INSUFFICIENT_FUNDS,
    "counterparty-not-linked": "ACCOUNT_UNAVAILABLE",
    "customer-not-open": "ACCOUNT_UNAVAILABLE",
    "not-found": "ACCOUNT_UNAVAILABLE",
    "pocket-frozen": "ACCOUNT_UNAVAILABLE",
    "pocket-not-open": "ACCOUNT_UNAVAILABLE",
}
"""Code of a refusal -> why the transfer could not be carried out; others: INVALID_TRANSFER."""


async def execute_request(bank: Bank, customer_id: UUID, request_id: UUID) -> None:
    """Carry out a request that was approved just now, before its job is due."""
    await _carry_out(bank, customer_id, request_id)
    await bank.approvals.cross_off(request_id)


async def run_execute_job(bank: Bank, appointment: ScheduledJob) -> None:
    """Run the job of an approved request. Running it twice changes nothing."""
    assert appointment.customer_id is not None
    await _carry_out(bank, appointment.customer_id, appointment.object_id)


def commands_of(request: TransferRequest) -> tuple[UUID, ...]:
    """Return the ids of the commands that can have moved the money of a request.

    Earlier releases carried an on-us request out by a second command.
    """
    callers = (CALLER, PENDING_TRANSFER) if request.type == "ON_US" else (CALLER,)
    return tuple(command_id(each, request.request_id) for each in callers)


async def _carry_out(bank: Bank, customer_id: UUID, request_id: UUID) -> None:
    found = await bank.approvals.find(customer_id, request_id)
    if found is None or found.content.type == "USDC" or not bank.settings.execute_transfers:
        return
    try:
        command = await command_for(
            bank.pool, customer_id, found.content, unverified_wires=found.unverified_wires, approved=True
        )
        code = (await bank.engine.submit(command)).outcome.get("code")
    except (Refused, NotFound) as refusal:
        code = refusal.code
    if code is not None:
        reason = _REASONS.get(code, "INVALID_TRANSFER")
        await record_rejection(bank, customer_id, request_id, reason=reason)
