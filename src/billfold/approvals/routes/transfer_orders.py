"""The order of a transfer request: its Pockets and counterparty, and the state they are in."""

from __future__ import annotations

from uuid import UUID

import msgspec

from billfold.accounts.counterparties.rules import verification_kinds
from billfold.accounts.pockets import store as pocket_store
from billfold.approvals.store import payees
from billfold.approvals.transfer_orders import InternalReallocation, OnUsOrder, RequestContent
from billfold.http.caller import CustomerCaller
from billfold.ledger.bank import Bank
from billfold.platform.errors import Refused


async def with_payee(member: CustomerCaller, bank: Bank, content: RequestContent) -> RequestContent:
    """Return the content with its payee, if every Pocket and counterparty exists and is usable.

    Raises NotFound, Refused `pocket-not-open`, `pocket-frozen`, `same-pocket`,
    `counterparty-type-mismatch`, `counterparty-not-verified`.
    """
    await _check_origin(member, bank, content.pocket_id)
    order = content.transfer
    if isinstance(order, OnUsOrder) and isinstance(order.details, InternalReallocation):
        to_pocket_id = order.details.destination_pocket_id
        await _check_destination(member, bank, content.pocket_id, to_pocket=to_pocket_id)
        return content
    assert content.counterparty_id is not None
    async with bank.pool.acquire() as conn:
        payee = await payees.get_payee(conn, member.customer_id, content.counterparty_id)
        unverified_wires = await payees.allows_unverified_wires(conn, member.customer_id)
    verification_kinds.check_payable(payee, content.type, unverified_wires=unverified_wires)
    snapshot = msgspec.to_builtins(payees.snapshot_of(payee))
    return msgspec.structs.replace(content, payee=snapshot)


async def _check_origin(member: CustomerCaller, bank: Bank, pocket_id: UUID) -> None:
    _, own_id = await member.pocket(bank, pocket_id)
    row = await pocket_store.get_pocket(bank.pool, member.customer_id, own_id)
    if row.status == "FROZEN":
        raise Refused("pocket-frozen", "The pocket is frozen: nothing leaves it.")
    if row.status != "OPEN":
        raise Refused("pocket-not-open", f"The pocket is {row.status}.")


async def _check_destination(member: CustomerCaller, bank: Bank, pocket_id: UUID, to_pocket: UUID) -> None:
    _, own_id = await member.pocket(bank, to_pocket)
    if own_id == pocket_id:
        raise Refused("same-pocket", "A transfer needs two different pockets.")
    row = await pocket_store.get_pocket(bank.pool, member.customer_id, own_id)
    if row.status not in {"OPEN", "FROZEN"}:
        raise Refused("pocket-not-open", f"The receiving pocket is {row.status}.")
