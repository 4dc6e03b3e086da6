"""Approved transfer requests are carried out, once, under the id of their request.

The API does so as soon as the approval is committed. The job that was scheduled in the same commit
does it when the process of the API ended before. A dry run of the same command shows before an
approval whether the transfer could be carried out.
"""

from typing import Final
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.rules.verification_kinds import SANCTION_SCREEN_FAILED
from billfold.approvals.store import payees
from billfold.approvals.store.approved_transfers import ApprovedRequests
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.transfer_orders import (
    InternalReallocation,
    OnUsOrder,
    PeerToPeer,
    RequestContent,
    UsdcOrder,
    WireOrder,
)
from billfold.approvals.types import TransferRequest
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.directory import find_customer
from billfold.ledger.dry_run import DryRun, dry_run
from billfold.ledger.types import ScheduledJob
from billfold.payments.crypto.withdrawals.commands import SendUsdc
from billfold.payments.crypto.withdrawals.destination import find_objection_to
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.on_us.types import TransferOrder
from billfold.payments.on_us.worker import CALLER as PENDING_TRANSFER
from billfold.payments.wires.commands import SendWire
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id

CALLER: Final = "transfer-request"
"""Who gives the command by which a request is carried out; its key is the request's id."""
INSUFFICIENT_FUNDS: Final = "INSUFFICIENT_FUNDS"

_Destination = tuple[UUID, UUID, tuple[str | None, str | None]]
"""A customer, the Pocket that is paid, and the network addresses of both Pockets."""
_REASONS = {
    "agreement-not-accepted": "ACCOUNT_UNAVAILABLE",
    "counterparty-not-verified": "ACCOUNT_UNAVAILABLE",
    "insufficient-funds": INSUFFICIENT_FUNDS,
    "counterparty-not-linked": "ACCOUNT_UNAVAILABLE",
    "customer-not-open": "ACCOUNT_UNAVAILABLE",
    "not-found": "ACCOUNT_UNAVAILABLE",
    "pocket-frozen": "ACCOUNT_UNAVAILABLE",
    "pocket-not-open": "ACCOUNT_UNAVAILABLE",
    "sanction-screen-failed": SANCTION_SCREEN_FAILED,
}
"""Code of a refusal -> why the transfer could not be carried out; others: INVALID_TRANSFER."""


async def execute_request(bank: Bank, customer_id: UUID, request_id: UUID) -> None:
    """Carry out a request that was approved just now, before its job is due."""
    await _carry_out(bank, customer_id, request_id)
    await bank.ports[ApprovedRequests].cross_off(request_id)


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


async def reject_request(bank: Bank, customer_id: UUID, request_id: UUID, reason: str) -> None:
    """Record why an approved request could not be carried out, for good."""
    await TRANSFER_REQUESTS.update_by_bank(
        bank,
        customer_id,
        request_id,
        verb="rejected",
        where="status = 'APPROVED' AND reason IS NULL",
        details={"reason": reason},
        reason=reason,
        updated_at=await bank.now(),
    )


async def check_feasible(bank: Bank, conn: Connection, content: RequestContent, *, customer_id: UUID) -> DryRun:
    """Return what a transfer would do if it were carried out now. Raises Refused as that would.

    Amounts that the sandbox rejects pass here: the rejection follows on execution.
    """
    unverified_wires = await payees.allows_unverified_wires(conn, customer_id)
    command = await _command_for(bank, conn, customer_id, content=content, unverified_wires=unverified_wires)
    found = await dry_run(conn, bank, command)
    if found.outcome.get("reason") == INSUFFICIENT_FUNDS:
        raise Refused("insufficient-funds", "The Pocket cannot raise the amount now. Add funds, or lower the amount.")
    return found


async def _carry_out(bank: Bank, customer_id: UUID, request_id: UUID) -> None:
    found = await bank.ports[ApprovedRequests].find(customer_id, request_id)
    if found is None or not bank.settings.execute_transfers:
        return
    try:
        command = await _command_for(
            bank,
            bank.pool,
            customer_id,
            content=found.content,
            unverified_wires=found.unverified_wires,
            approved=True,
        )
        code = (await bank.engine.submit(command)).outcome.get("code")
    except (Refused, NotFound) as refusal:
        code = refusal.code
    if code is not None:
        await reject_request(bank, customer_id, request_id, reason=_REASONS.get(code, "INVALID_TRANSFER"))


async def _command_for(
    bank: Bank,
    conn: Connection | Pool,
    customer_id: UUID,
    *,
    content: RequestContent,
    unverified_wires: bool,
    approved: bool = False,
) -> Command:
    """Return the command that carries a request out: of an approved one a refusal is an outcome.

    Raises NotFound when its customer or counterparty is not there any more.
    """
    order = content.transfer
    if isinstance(order, WireOrder):
        return _wire(customer_id, content, order, unverified_wires=unverified_wires, approved=approved)
    if isinstance(order, UsdcOrder):
        return await _usdc(bank, conn, customer_id, content=content, approved=approved)
    customer = await find_customer(conn, customer_id)
    if customer is None or customer.partner_id is None:
        raise NotFound
    payee_id, to_pocket_id, addresses = await _destination(conn, customer_id, content)
    named = content.counterparty_id
    return TransferOnUs(
        caller=CALLER,
        key=order.id,
        customers=(customer_id, payee_id),
        transfer_id=order.id,
        type="PEER_TO_PEER" if named else "INTERNAL_REALLOCATION",
        from_pocket_id=order.origin_pocket_id,
        to_pocket_id=to_pocket_id,
        amount=content.requested_cents,
        at_most=content.most_cents,
        partner_id=customer.partner_id,
        addresses=addresses,
        approved=approved,
        order=_on_us(order, named),
        references=() if named is None else (named,),
    )


def _on_us(order: OnUsOrder, counterparty_id: UUID | None) -> TransferOrder:
    details = order.details
    return TransferOrder(
        counterparty_id=counterparty_id,
        transfer_type=None if isinstance(details, PeerToPeer) else details.transfer_type,
        description=order.description,
        end_to_end_identification=order.end_to_end_identification,
        async_mode=True,
    )


def _wire(
    customer_id: UUID, content: RequestContent, order: WireOrder, *, unverified_wires: bool, approved: bool
) -> SendWire:
    return SendWire(
        caller=CALLER,
        key=order.id,
        customers=(customer_id,),
        wire_id=order.id,
        pocket_id=order.origin_pocket_id,
        amount=content.requested_cents,
        at_most=content.most_cents,
        counterparty_id=order.counterparty_id,
        description=order.description,
        wire_instructions=content.instructions,
        end_to_end_identification=order.end_to_end_identification,
        created_by=CALLER,
        unverified_wires=unverified_wires,
        approved=approved,
        request=msgspec.json.encode(order).decode(),
        references=(order.counterparty_id,),
    )


async def _usdc(
    bank: Bank, conn: Connection | Pool, customer_id: UUID, *, content: RequestContent, approved: bool
) -> SendUsdc:
    order = content.transfer
    assert isinstance(order, UsdcOrder)
    details = (content.payee or {})["details"]
    return SendUsdc(
        caller=CALLER,
        key=order.id,
        customers=(customer_id,),
        withdrawal_id=order.id,
        pocket_id=order.origin_pocket_id,
        amount=order.amount.amount_usdc,
        counterparty_id=order.counterparty_id,
        objection=await find_objection_to(bank, conn, customer_id, details),
        approved=approved,
        references=(order.counterparty_id,),
    )


async def _destination(conn: Connection | Pool, customer_id: UUID, content: RequestContent) -> _Destination:
    order = content.transfer
    if isinstance(order, OnUsOrder) and isinstance(order.details, InternalReallocation):
        return customer_id, order.details.destination_pocket_id, (None, None)
    assert content.counterparty_id is not None
    link = (customer_id, content.pocket_id, content.counterparty_id)
    (peer,) = await counterparty_store.find_peers(conn, [link])
    if peer is None:
        raise NotFound("There is no such counterparty.")
    if peer.customer_id is None or peer.pocket_id is None:
        raise NotFound("The counterparty has no Pocket.")
    return peer.customer_id, peer.pocket_id, (peer.payer_address, peer.payee_address)
