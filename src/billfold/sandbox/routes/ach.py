"""Simulated moves of ACH entries, outside the bank or by an operator: one move each."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.rules.notification_of_change import (
    CHANGE_CODES,
    CORRECTING_CODES,
    Correction,
    correction_of,
)
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import run_job
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.commands import (
    AMOUNT_MAX_CENTS,
    AchStatus,
    ReinitiateAch,
    ReturnAchEntry,
    ReverseAch,
    ReviewAch,
)
from billfold.payments.ach.nacha.writer import to_ach_text
from billfold.payments.ach.rules.entries import ACH_WINDOW
from billfold.payments.return_codes import RECEIVED_RETURN_REASONS, RETURN_REASONS, ReturnReason
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.sandbox.rails.ach_network import EntryOrder, SimulatedAchNetwork
from billfold.sandbox.routes.operations import request_id, sandbox_post

Text16 = Annotated[str, msgspec.Meta(min_length=1, max_length=16)]
_ENTRY = """
SELECT e.customer_id, c.partner_id FROM ach_entry e JOIN customer c USING (customer_id)
 WHERE e.ach_id = $1
"""
_PORTAL = """
SELECT routing_number, account_number FROM portal WHERE customer_id = $1 AND portal_id = $2
"""
_LOOKAHEAD = timedelta(days=30)
"""Entries that wait for a window in this period are sent at once when an operation submits them."""


class AchMove(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One move of an entry. `code` belongs to return, give-back (R..) and change (C..), `corrected`
    with change: the 29 characters that its code reads, blank where it corrects nothing.
    """

    move: Literal["approve", "reject", "cancel", "return", "change", "reverse", "retry", "give-back"]
    code: str | None = None
    corrected: Annotated[str, msgspec.Meta(min_length=1, max_length=29, pattern=r"^[ -~]+\Z")] | None = None


class AchEntryRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An entry of some company for a portal: a DEBIT collects money from its Pocket."""

    portal_id: UUID
    direction: Literal["CREDIT", "DEBIT"]
    amount_usdc: Annotated[int, msgspec.Meta(ge=1, le=AMOUNT_MAX_CENTS)]
    company_name: Text16 = "FakeCompany"
    sec_code: Literal["CCD", "PPD", "WEB"] = "PPD"
    company_entry_description: Annotated[str, msgspec.Meta(pattern=r"^[ a-zA-Z0-9]{1,10}\Z")] = "PAYMENT"


@sandbox_post("ach/entries/", name="sandbox_ach_entry", moves_money=True, refuses=("not-found", "no-open-portal"))
async def send_entry(caller: Caller, bank: Bank, network: SimulatedAchNetwork, data: AchEntryRequest) -> None:
    """Let an ACH file with one entry arrive for a portal, open or closed."""
    customer_id, portal_id = await caller.owned(bank, "portal", data.portal_id)
    row = await bank.pool.fetchrow(_PORTAL, customer_id, portal_id)
    if row is None or row["account_number"] is None:
        raise Refused("no-open-portal", "The portal has no account number.")
    order = EntryOrder(
        routing_number=row["routing_number"],
        account_number=row["account_number"],
        amount=data.amount_usdc,
        is_debit=data.direction == "DEBIT",
        company=to_ach_text(data.company_name, 16),
        entry_class=data.sec_code,
        purpose=to_ach_text(data.company_entry_description, 10),
    )
    await network.send_entry(bank, request_id(caller), order)


@sandbox_post("ach/submit/", name="sandbox_ach_submit", moves_money=True)
async def submit(caller: Caller, bank: Bank) -> None:
    """Send the entries that wait for a window now, in a separate file."""
    at = caller.now + _LOOKAHEAD
    await run_job(bank, ScheduledJob(ACH_WINDOW, request_id(caller), None, at=at))


@sandbox_post(
    "ach/{transfer_id}/",
    name="sandbox_ach_move",
    moves_money=True,
    refuses=(
        "ach-origination-not-pending",
        "ach-origination-not-sent",
        "ach-origination-not-reversible",
        "ach-origination-not-returned",
        "ach-entry-not-returnable",
        "insufficient-funds",
    ),
)
async def move(caller: Caller, bank: Bank, transfer_id: UUID, network: SimulatedAchNetwork, data: AchMove) -> None:
    """Decide about an entry, return or correct it, reverse it, send it once more."""
    ach_id = transfer_id
    owner = await bank.pool.fetchrow(_ENTRY, ach_id)
    if owner is None or owner["partner_id"] != caller.partner_id:
        raise NotFound("There is no such ACH entry.")
    fields = {**caller.command_fields(owner["customer_id"]), "ach_id": ach_id}
    fields["references"] = (ach_id,)
    if data.move == "return":
        code = _return_code(data, RECEIVED_RETURN_REASONS)
        await network.return_entry(bank, request_id(caller), ach_id, code=code)
    elif data.move == "change":
        code, corrected = _change(data)
        await network.change_entry(bank, request_id(caller), ach_id, code=code, corrected=corrected)
    elif data.move == "reverse":
        await bank.engine.submit(ReverseAch(**fields))
    elif data.move == "retry":
        await bank.engine.submit(ReinitiateAch(**fields))
    elif data.move == "give-back":
        await bank.engine.submit(ReturnAchEntry(**fields, code=_return_code(data, RETURN_REASONS)))
    else:
        await bank.engine.submit(ReviewAch(**fields, decision=_DECISIONS[data.move]))


_DECISIONS = {"approve": AchStatus.APPROVED, "reject": AchStatus.REJECTED, "cancel": AchStatus.CANCELLED}


def _return_code(data: AchMove, known: Mapping[str, ReturnReason]) -> str:
    if data.code is None or data.code not in known:
        raise InvalidInput.at("body", "code", msg=f"is one of {', '.join(sorted(known))}")
    return data.code


def _change(data: AchMove) -> tuple[str, str]:
    code, corrected = data.code, data.corrected or ""
    if code not in CHANGE_CODES:
        raise InvalidInput.at("body", "code", msg=f"is one of {', '.join(sorted(CHANGE_CODES))}")
    if code in CORRECTING_CODES and correction_of(code, corrected) == Correction():
        raise InvalidInput.at("body", "corrected", msg=f"says nothing that {code} corrects, in its columns")
    return code, corrected
