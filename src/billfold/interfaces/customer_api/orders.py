"""A transfer as it is asked for: whose Pockets and counterparties it names, and in which state."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from billfold.domain import counterparties, pockets, requests
from billfold.domain.requests import Asked
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http.shapes.transfer_request import (
    OnUsOrder,
    Order,
    PeerToPeer,
)
from billfold.kit.errors import Refused


def asked_for(order: Order, reviewers: Sequence[UUID]) -> Asked:
    """Return what is asked for, in the words of whoever asks; nothing is looked up yet."""
    if isinstance(order, OnUsOrder):
        details = order.details
        counterparty_id = (
            details.destination_counterparty_id if isinstance(details, PeerToPeer) else None
        )
    else:
        counterparty_id = order.counterparty_id
    told = msgspec.to_builtins(order)
    return Asked(
        request_id=order.id,
        type=told["type"],
        pocket_id=order.origin_pocket_id,
        counterparty_id=counterparty_id,
        amount=order.amount.amount_usdc,
        transfer=told,
        payee=None,
        reviewers=tuple(dict.fromkeys(reviewers)),
    )


async def checked(member: Member, bank: Bank, asked: Asked) -> Asked:
    """Return what is asked for with whom it pays, when all it names is there and in order.

    Raises NotFound, Refused `pocket-not-open`, `pocket-frozen`, `same-pocket`,
    `counterparty-type-mismatch`, `counterparty-not-verified`.
    """
    await _check_origin(member, bank, asked.pocket_id)
    if asked.counterparty_id is None:
        to_pocket = UUID(str(asked.transfer["details"]["destination_pocket_id"]))
        await _check_destination(member, bank, asked.pocket_id, to_pocket)
        return asked
    async with bank.pool.acquire() as conn:
        payee = await requests.get_payee(conn, member.customer_id, asked.counterparty_id)
        unverified_wires = await requests.takes_unverified(conn, member.customer_id)
    counterparties.must_be_payable(payee, asked.type, unverified_wires=unverified_wires)
    return asked._replace(payee=msgspec.to_builtins(requests.told_of(payee)))


async def _check_origin(member: Member, bank: Bank, pocket_id: UUID) -> None:
    own_id = await member.own_pocket(bank, pocket_id)
    row = await pockets.get_pocket(bank.pool, member.customer_id, own_id)
    if row.status == "FROZEN":
        raise Refused("pocket-frozen", "The pocket is frozen: nothing leaves it.")
    if row.status != "OPEN":
        raise Refused("pocket-not-open", f"The pocket is {row.status}.")


async def _check_destination(member: Member, bank: Bank, pocket_id: UUID, to_pocket: UUID) -> None:
    own_id = await member.own_pocket(bank, to_pocket)
    if own_id == pocket_id:
        raise Refused("same-pocket", "A transfer needs two different pockets.")
    row = await pockets.get_pocket(bank.pool, member.customer_id, own_id)
    if row.status not in {"OPEN", "FROZEN"}:
        raise Refused("pocket-not-open", f"The receiving pocket is {row.status}.")
