"""The payee of a request: whether it may be paid, and is still the approved one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.rules import verification_kinds
from billfold.accounts.counterparties.types import Payee
from billfold.approvals.transfer_orders import content_of
from billfold.approvals.types import TransferRequest
from billfold.platform.errors import NotFound, Refused

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_UNVERIFIED = """
SELECT 'unverified_wires' = ANY(p.features) FROM customer c JOIN partner p USING (partner_id)
 WHERE c.customer_id = $1
"""


async def get_payee(conn: Connection, customer_id: UUID, counterparty_id: UUID) -> Payee:
    """Return a counterparty of a customer as payments see it. Raises NotFound."""
    found = await counterparty_store.find_payees(conn, [customer_id], [counterparty_id])
    if not found:
        raise NotFound("There is no such counterparty.")
    payee: Payee = found[0][2]
    return payee


def snapshot_of(payee: Payee) -> dict[str, Any]:
    """Return the payee of a counterparty as the approved content stores it."""
    return {
        "counterparty_name": payee.counterparty_name,
        "details": payee.details,
        "target_pocket_id": payee.target_pocket_id,
        "type": payee.type,
    }


async def allows_unverified_wires(conn: Connection, customer_id: UUID) -> bool:
    """Tell whether wires of this customer may go to unverified counterparties."""
    return await conn.fetchval(_UNVERIFIED, customer_id) is True


async def check_same_payee(conn: Connection, request: TransferRequest) -> None:
    """Refuse a payee that may no longer be paid, or has changed.

    Raises Refused `counterparty-not-verified`, `content-changed`.
    """
    if request.counterparty_id is None:
        return
    payee = await get_payee(conn, request.customer_id, request.counterparty_id)
    unverified_wires = await allows_unverified_wires(conn, request.customer_id)
    verification_kinds.check_payable(payee, request.type, unverified_wires=unverified_wires)
    if msgspec.to_builtins(snapshot_of(payee)) != content_of(request).payee:
        raise Refused("content-changed", "The counterparty has changed since the request. Send a new request.")
