"""What the body of a transfer request orders, as the content that is approved: read, sealed, and its payee found."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from billfold.accounts.agreements.rules import require_version
from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.schemas import valuation
from billfold.accounts.pockets.types import PocketRow
from billfold.approvals.store import payees
from billfold.approvals.transfer_orders import (
    InternalReallocation,
    OnUsOrder,
    OrderedTransfer,
    RequestContent,
    UsdcOrder,
    WireOrder,
)
from billfold.data_keys.keys import DataKeys
from billfold.data_keys.types import PartyField
from billfold.http.caller import Call
from billfold.ledger.bank import Bank
from billfold.ledger.directory.rules import require_active
from billfold.payments.crypto.withdrawals.destination import find_objection_to
from billfold.payments.crypto.withdrawals.rules import require_minimum
from billfold.platform.dates import et_date
from billfold.platform.errors import Refused


async def ordered_content(
    bank: Bank, customer_id: UUID, order: OrderedTransfer, *, reviewers: Sequence[UUID]
) -> RequestContent:
    """Return what is ordered, its instructions sealed; nothing is looked up yet."""
    content = RequestContent(transfer=order, reviewers=unique(reviewers))
    if not isinstance(order, WireOrder) or order.wire_instructions is None:
        return content
    data_key = await bank.ports[DataKeys].of(bank.pool, customer_id)
    return msgspec.structs.replace(
        content,
        transfer=msgspec.structs.replace(order, wire_instructions=None),
        wire_instructions=PartyField.TEXT.seal(data_key, order.wire_instructions),
    )


def unique(reviewers: Sequence[UUID]) -> tuple[UUID, ...]:
    """Return each reviewer once, in order."""
    return tuple(dict.fromkeys(reviewers))


async def with_payee(
    caller: Call, bank: Bank, content: RequestContent, *, customer_id: UUID | None = None
) -> RequestContent:
    """Return the content with its payee, if every Pocket and counterparty exists and is usable.

    The customer is that of the token, or the one that a partner names. Raises NotFound, Refused `customer-not-open`,
    `pocket-not-open`, `pocket-frozen`, `same-pocket`, `agreement-not-accepted`, `counterparty-type-mismatch`,
    `counterparty-not-verified`, `sanction-screen-failed`, and `insufficient-funds` for the whole of nothing.
    """
    customer = await caller.customer(bank, customer_id)
    owner = customer.customer_id
    require_active(customer.account_status)
    pays = await _check_pocket(caller, bank, content.pocket_id, owner=owner, receives=False)
    if content.requested_cents is None:
        if (value := valuation(pays, bank, caller.now).total_value) <= 0:
            raise Refused("insufficient-funds", "The Pocket is empty.")
        content = msgspec.structs.replace(content, value=value)
    order = content.transfer
    if isinstance(order, OnUsOrder) and isinstance(order.details, InternalReallocation):
        to_pocket_id = order.details.destination_pocket_id
        if to_pocket_id == content.pocket_id:
            raise Refused("same-pocket", "A transfer needs two different pockets.")
        await _check_pocket(caller, bank, to_pocket_id, owner=owner, receives=True)
        return content
    require_version(customer.agreement_version, bank.terms.agreements, et_date(caller.now))
    async with bank.pool.acquire() as conn:
        payee = await payees.get_payee(conn, owner, content)
    if isinstance(order, UsdcOrder):
        objection = await find_objection_to(bank, bank.pool, owner, payee["details"])
        if objection is not None:
            raise Refused(objection.code, objection.detail)
        require_minimum(order.amount.amount_usdc, bank.terms)
    return msgspec.structs.replace(content, payee=payee)


async def _check_pocket(caller: Call, bank: Bank, pocket_id: UUID, *, owner: UUID, receives: bool) -> PocketRow:
    _, own_id = await caller.pocket(bank, pocket_id, owner)
    row = await pocket_store.get_pocket(bank.pool, owner, own_id)
    status = row.status
    if status == "FROZEN" and not receives:
        raise Refused("pocket-frozen", "The pocket is frozen: nothing leaves it.")
    if status not in {"OPEN", "FROZEN"}:
        raise Refused("pocket-not-open", f"The {'receiving ' if receives else ''}pocket is {status}.")
    return row
