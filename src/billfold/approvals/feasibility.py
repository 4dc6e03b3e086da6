"""The command of a transfer request, and whether it could be carried out now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import peers
from billfold.approvals.store import payees
from billfold.approvals.transfer_orders import InternalReallocation, OnUsOrder, PeerToPeer, RequestContent, WireOrder
from billfold.ledger.directory.store import find_customer
from billfold.ledger.engine.dry_run import dry_run
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.on_us.types import TransferOrder
from billfold.payments.wires.commands import SendWire
from billfold.platform.errors import NotFound, Refused

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command
    from billfold.platform.database.pool import Connection, Pool

CALLER: Final = "transfer-request"
"""Who gives the command by which a request is carried out; its key is the request's id."""
INSUFFICIENT_FUNDS: Final = "INSUFFICIENT_FUNDS"

_Destination = tuple[UUID, UUID, tuple[str | None, str | None]]
"""A customer, the Pocket that is paid, and the network addresses of both Pockets."""


async def check_feasible(bank: Bank, conn: Connection, content: RequestContent, *, customer_id: UUID) -> None:
    """Find out whether a transfer could be carried out now. Raises Refused as that would.

    Amounts that the sandbox rejects pass here: the rejection follows on execution.
    """
    if content.type == "USDC":
        return
    unverified_wires = await payees.allows_unverified_wires(conn, customer_id)
    command = await command_for(conn, customer_id, content, unverified_wires=unverified_wires)
    outcome = await dry_run(conn, bank, command)
    if outcome.get("reason") == INSUFFICIENT_FUNDS:
        raise Refused(
            "insufficient-funds",
            "The Pocket cannot raise the amount. Add funds, then approve again.",
        )


async def command_for(
    conn: Connection | Pool,
    customer_id: UUID,
    content: RequestContent,
    *,
    unverified_wires: bool,
    approved: bool = False,
) -> Command:
    """Return the command that carries a request out: of an approved one a refusal is an outcome.

    Raises NotFound when its customer or counterparty is not there any more.
    """
    order = content.transfer
    if isinstance(order, WireOrder):
        return _wire(customer_id, order, unverified_wires=unverified_wires, approved=approved)
    assert isinstance(order, OnUsOrder)
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
        amount=content.amount,
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


def _wire(customer_id: UUID, order: WireOrder, *, unverified_wires: bool, approved: bool) -> SendWire:
    return SendWire(
        caller=CALLER,
        key=order.id,
        customers=(customer_id,),
        wire_id=order.id,
        pocket_id=order.origin_pocket_id,
        amount=order.amount.amount_usdc,
        counterparty_id=order.counterparty_id,
        description=order.description,
        wire_instructions=order.wire_instructions,
        end_to_end_identification=order.end_to_end_identification,
        created_by=CALLER,
        unverified_wires=unverified_wires,
        approved=approved,
        request=msgspec.json.encode(order).decode(),
        references=(order.counterparty_id,),
    )


async def _destination(conn: Connection | Pool, customer_id: UUID, content: RequestContent) -> _Destination:
    order = content.transfer
    if isinstance(order, OnUsOrder) and isinstance(order.details, InternalReallocation):
        return customer_id, order.details.destination_pocket_id, (None, None)
    assert content.counterparty_id is not None
    link = (customer_id, content.pocket_id, content.counterparty_id)
    (peer,) = await peers.find_peers(conn, [link])
    if peer is None:
        raise NotFound("There is no such counterparty.")
    if peer.customer_id is None or peer.pocket_id is None:
        raise NotFound("The counterparty has no Pocket.")
    return peer.customer_id, peer.pocket_id, (peer.payer_address, peer.payee_address)
