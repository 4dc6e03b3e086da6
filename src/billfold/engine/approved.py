"""What was approved is carried out, once, under the id of its request.

The door does so as soon as the approval is written down; whoever keeps the appointment that was
written with it does it again when the door has not come that far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from billfold.domain import requests, transfers
from billfold.domain.agenda import Appointment
from billfold.domain.directory import find_customer
from billfold.domain.requests import Approved, Asked, TransferRequest
from billfold.engine.pending import CALLER as CARRIES_OUT
from billfold.engine.pending import carry_out
from billfold.engine.rehearsal import rehearse
from billfold.flows.transfer_commands import TransferOnUs
from billfold.flows.wire_commands import SendWire
from billfold.kit.clock import wall_now
from billfold.kit.errors import NotFound, Refused
from billfold.kit.ids import command_id

if TYPE_CHECKING:
    from billfold.engine.bank import Bank
    from billfold.flows.command import Command
    from billfold.kit.db import Connection

CALLER: Final = "transfer-request"
"""Who gives the command by which a request is carried out; its key is the request's id."""
_INSUFFICIENT = "INSUFFICIENT_FUNDS"
_REASONS = {
    "counterparty-not-verified": "ACCOUNT_UNAVAILABLE",
    "insufficient-funds": _INSUFFICIENT,
    "counterparty-not-linked": "ACCOUNT_UNAVAILABLE",
    "customer-not-open": "ACCOUNT_UNAVAILABLE",
    "not-found": "ACCOUNT_UNAVAILABLE",
    "pocket-frozen": "ACCOUNT_UNAVAILABLE",
    "pocket-not-open": "ACCOUNT_UNAVAILABLE",
}
"""Code of a refusal -> why the transfer could not be carried out; others: INVALID_TRANSFER."""


async def check_possible(bank: Bank, customer_id: UUID, conn: Connection, asked: Asked) -> None:
    """Find out whether a transfer could be carried out now. Raises Refused as that would.

    What the simulated world rejects by its amount is let through: that is an answer to come.
    """
    if asked.type == "USDC":
        return
    command = await _rehearsed(conn, customer_id, asked)
    outcome = await rehearse(conn, bank, command)
    if outcome.get("reason") == _INSUFFICIENT:
        raise Refused(
            "insufficient-funds", "The Pocket cannot raise the amount now; nothing was approved."
        )


async def carry_out_request(bank: Bank, customer_id: UUID, request_id: UUID) -> None:
    """Carry out a request that was approved just now, before its appointment is kept."""
    await _carry_out(bank, customer_id, request_id)
    await bank.approvals.cross_off(request_id)


async def keep_execution(bank: Bank, appointment: Appointment) -> None:
    """Keep the appointment of an approved request. Doing it twice changes nothing."""
    assert appointment.customer_id is not None
    await _carry_out(bank, appointment.customer_id, appointment.object_id)


async def keep_expiry(bank: Bank, appointment: Appointment) -> None:
    """Keep the appointment of a request whose time is over."""
    assert appointment.customer_id is not None
    await requests.expire(
        bank.pool, bank.vault, appointment.customer_id, appointment.object_id,
        now=await bank.now(), wall=wall_now(),
    )  # fmt: skip


def command_of(request: TransferRequest) -> UUID:
    """Return the id of the command that moves the money of a request."""
    return command_id(CARRIES_OUT if request.type == "ON_US" else CALLER, request.request_id)


async def _carry_out(bank: Bank, customer_id: UUID, request_id: UUID) -> None:
    found = await bank.approvals.find(customer_id, request_id)
    if found is None or found.asked.type == "USDC" or not bank.settings.execute_transfers:
        return
    try:
        answer = await bank.engine.submit(await _approved(bank, customer_id, found))
        code = answer.outcome.get("code")
    except (Refused, NotFound) as refusal:
        code = refusal.code
    if code is not None:
        reason = _REASONS.get(code, "INVALID_TRANSFER")
        await requests.note_rejected(
            bank.pool, bank.vault, customer_id, request_id, reason,
            now=await bank.now(), wall=wall_now(),
        )  # fmt: skip
        return
    if found.asked.type == "ON_US":
        row = await transfers.get_transfer(bank.pool, customer_id, request_id)
        if row.status == "PENDING":
            await carry_out(bank, row)


async def _rehearsed(conn: Connection, customer_id: UUID, asked: Asked) -> Command:
    """Return the command of a transfer that somebody asks for."""
    if asked.type == "WIRE":
        takes_unverified = await requests.takes_unverified(conn, customer_id)
        return _wire(customer_id, asked, unverified_wires=takes_unverified)
    return await _transfer(conn, customer_id, asked, approved=False)


async def _approved(bank: Bank, customer_id: UUID, found: Approved) -> Command:
    """Return the command of a transfer that was approved."""
    if found.asked.type == "WIRE":
        wire = _wire(customer_id, found.asked, unverified_wires=found.unverified_wires)
        return msgspec.structs.replace(wire, approved=True)
    async with bank.pool.acquire() as conn:
        return await _transfer(conn, customer_id, found.asked, approved=True)


def _wire(customer_id: UUID, asked: Asked, *, unverified_wires: bool) -> SendWire:
    told = asked.transfer
    assert asked.counterparty_id is not None
    return SendWire(
        caller=CALLER,
        key=asked.request_id,
        customers=(customer_id,),
        wire_id=asked.request_id,
        pocket_id=asked.pocket_id,
        amount=asked.amount,
        counterparty_id=asked.counterparty_id,
        description=told.get("description"),
        wire_instructions=told.get("wire_instructions"),
        end_to_end_identification=told.get("end_to_end_identification"),
        created_by=CALLER,
        unverified_wires=unverified_wires,
        request=msgspec.json.encode(told).decode(),
        references=(asked.counterparty_id,),
    )


async def _transfer(
    conn: Connection, customer_id: UUID, asked: Asked, *, approved: bool
) -> TransferOnUs:
    customer = await find_customer(conn, customer_id)
    if customer is None or customer.partner_id is None:
        raise NotFound
    payee_id, to_pocket = await _destination(conn, customer_id, asked)
    told = asked.transfer
    details: dict[str, Any] = told["details"]
    return TransferOnUs(
        caller=CALLER,
        key=asked.request_id,
        # The other side is not looked at before it is carried out.
        customers=(customer_id,) if approved else (customer_id, payee_id),
        transfer_id=asked.request_id,
        type=details["type"],
        from_pocket_id=asked.pocket_id,
        to_pocket_id=to_pocket,
        amount=asked.amount,
        partner_id=customer.partner_id,
        in_kind=details.get("transfer_type") == "SECURITY_TRANSFER",
        description=told.get("description") or "",
        end_to_end_identification=told.get("end_to_end_identification"),
        counterparty_id=asked.counterparty_id,
        request=_partners_words(asked, to_pocket),
        later=approved,
        approved=approved,
        references=() if asked.counterparty_id is None else (asked.counterparty_id,),
    )


async def _destination(conn: Connection, customer_id: UUID, asked: Asked) -> tuple[UUID, UUID]:
    """Return (customer_id, pocket_id) of where the money goes."""
    if asked.counterparty_id is None:
        return customer_id, UUID(str(asked.transfer["details"]["destination_pocket_id"]))
    payee = await requests.get_payee(conn, customer_id, asked.counterparty_id)
    if payee.target_customer_id is None or payee.target_pocket_id is None:
        raise NotFound("The counterparty leads nowhere.")
    return payee.target_customer_id, payee.target_pocket_id


def _partners_words(asked: Asked, to_pocket: UUID) -> str:
    """Return what was asked for as the Partner API would have been asked: it may be read there."""
    told, details = asked.transfer, asked.transfer["details"]
    said = {
        "type": details["type"],
        "description": told.get("description"),
        "end_to_end_identification": told.get("end_to_end_identification"),
        "from_account": {"id": asked.pocket_id, "type": "SERVICE_ACCOUNT"},
        "to_account": {"id": to_pocket, "type": "SERVICE_ACCOUNT"}
        if asked.counterparty_id is None
        else None,
        "counterparty_id": asked.counterparty_id,
        "transfer_type": details.get("transfer_type"),
        "async_mode": True,
    }
    return msgspec.json.encode({k: v for k, v in said.items() if v is not None}).decode()
