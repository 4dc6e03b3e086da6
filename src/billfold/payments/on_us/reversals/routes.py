"""Reversals of on-us transfers: made at once within one customer, requested from another."""

from uuid import UUID

import msgspec

from billfold.http.caller import Call
from billfold.http.operations import SIGNED, get, post, with_scope
from billfold.http.parameters import OrderedQuery, searched_page_of
from billfold.http.schemas import SearchedList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.payments.on_us.commands import TransferOnUs, TransferOrder, TransferRow, type_of_reversal
from billfold.payments.on_us.reversals import schemas, store
from billfold.payments.on_us.reversals.commands import (
    EndReversalRequest,
    RequestReversal,
    ReversalRequestRow,
    ReversalStatus,
)
from billfold.payments.on_us.routes import show_transfer
from billfold.payments.on_us.schemas import OnUsTransfer
from billfold.payments.on_us.store import get_transfer, list_reversals
from billfold.platform.database.paging import list_as_of
from billfold.platform.errors import NotFound, Refused

_READ, _WRITE = with_scope("transfers.read", "disputes"), with_scope("transfers.write", "disputes")
_TRANSFER = "/api/v1/transfers/on-us/{transfer_id}"
_ALL, _ONE = "/api/v1/reversal-requests/", "/api/v1/reversal-requests/{reversal_id}/"
_PAYS = (
    "customer-not-open",
    "agreement-not-accepted",
    "pocket-not-open",
    "pocket-frozen",
    "transfer-not-reversible",
    "reversal-not-open",
)


@post(f"{_TRANSFER}/reverse/", tag="transfers", moves_money=True, previews=True, refuses=_PAYS)
async def reverse_on_us_transfer(
    caller: Caller, bank: Bank, transfer_id: UUID, data: schemas.ReverseTransfer
) -> OnUsTransfer:
    """Reverse on-us transfer

    Pays a transfer between two Pockets of one customer back, by another transfer, which names it in `reverses_id`. The
    sum of its reversals is at most its amount. It is REJECTED if the Pocket lacks the money. What another customer was
    paid is requested instead.
    """
    owner, own_id = await caller.owned(bank, "transfer", transfer_id)
    original = await get_transfer(bank.pool, owner, own_id)
    if original.payee_id != owner:
        raise Refused("transfer-not-reversible", "Another customer was paid. Create a reversal request.")
    paid_back = (await list_reversals(bank.pool, [own_id])).get(own_id, [])
    amount = data.amount_usdc or original.amount - sum(each.amount for each in paid_back)
    return await _pay_back(caller, bank, original, payee=owner, amount=amount)


@post(
    f"{_TRANSFER}/reversal-requests/",
    SIGNED,
    _WRITE,
    tag="transfers",
    refuses=("customer-not-open", "pocket-not-open", "transfer-not-reversible", "reversal-open"),
)
async def create_reversal_request(
    caller: Call, bank: Bank, transfer_id: UUID, data: schemas.CreateReversalRequest
) -> schemas.ReversalRequest:
    """Create reversal request

    Asks the customer that a transfer paid to pay it back, in full or in part. It accepts or declines within the days of
    `BILLFOLD_REVERSAL_REQUEST_DAYS`. One request is open at a time, and a payee is asked three times at most.
    """
    owner, own_id = await caller.owned(bank, "transfer", transfer_id)
    original = await get_transfer(bank.pool, owner, own_id)
    payee = original.payee_id or owner
    reversal_id = caller.new_resource_id(bank.seed)
    await bank.engine.submit(
        RequestReversal(
            **caller.command_fields(payee, owner),
            references=(own_id,),
            reversal_id=reversal_id,
            transfer_id=own_id,
            amount=data.amount_usdc,
            reason=data.reason,
        )
    )
    return schemas.render_reversal(await store.get_request(bank.pool, payee, reversal_id), owner)


@get(_ALL, SIGNED, _READ, tag="transfers", as_of=True)
async def list_reversal_requests(
    caller: Call, bank: Bank, page_query: OrderedQuery, filters: schemas.ReversalFilters
) -> SearchedList[schemas.ReversalRequest]:
    """List reversal requests

    Returns what a customer asks back, and what it is asked for, newest first. The Partner API needs `customer_id`.
    """
    owner = await caller.filtered_owner(bank, filters.customer_id)
    asks = None if filters.side is None else filters.side == "REQUESTER"
    listed, then = list_as_of(store.REQUESTS, store.REQUESTS_THEN, caller.as_of)
    page = await page_query.read(bank, listed, owner, asks, filters.status, *then, scope="reversal-requests")
    return searched_page_of(page, [schemas.render_reversal(row, owner) for row in page.items])


@get(_ONE, SIGNED, _READ, tag="transfers", as_of=True)
async def get_reversal_request(caller: Call, bank: Bank, reversal_id: UUID) -> schemas.ReversalRequest:
    """Get reversal request"""
    return schemas.render_reversal(*await _find(caller, bank, reversal_id))


@post(f"{_ONE}accept/", tag="transfers", moves_money=True, previews=True, refuses=_PAYS)
async def accept_reversal_request(caller: Caller, bank: Bank, reversal_id: UUID) -> OnUsTransfer:
    """Accept reversal request

    Pays back what the customer was asked for. The transfer is REJECTED, and the request stays open, if the Pocket lacks
    the money. In the Customer API a member requests a transfer with details of type `REVERSAL`, so that the rules of
    the team apply.
    """
    row = await _of_payee(caller, bank, reversal_id)
    original = await get_transfer(bank.pool, row.requester_id, row.transfer_id)
    return await _pay_back(caller, bank, original, payee=row.customer_id, amount=row.amount)


@post(f"{_ONE}decline/", SIGNED, _WRITE, tag="transfers", status=200, refuses=("reversal-not-open",))
async def decline_reversal_request(caller: Call, bank: Bank, reversal_id: UUID) -> schemas.ReversalRequest:
    """Decline reversal request

    Only the customer that is asked declines.
    """
    row = await _of_payee(caller, bank, reversal_id)
    return await _end(caller, bank, row, ReversalStatus.DECLINED, reader=row.customer_id)


@post(f"{_ONE}cancel/", SIGNED, _WRITE, tag="transfers", status=200, refuses=("reversal-not-open",))
async def cancel_reversal_request(caller: Call, bank: Bank, reversal_id: UUID) -> schemas.ReversalRequest:
    """Cancel reversal request

    Only the customer that asked cancels.
    """
    row, _ = await _find(caller, bank, reversal_id)
    if not await _owns(caller, bank, row.requester_id):
        raise NotFound("There is no such reversal request.")
    return await _end(caller, bank, row, ReversalStatus.CANCELLED, reader=row.requester_id)


async def _pay_back(caller: Caller, bank: Bank, original: TransferRow, *, payee: UUID, amount: int) -> OnUsTransfer:
    assert original.to_pocket_id is not None
    order = TransferOrder(reverses=original.transfer_id)
    answer = await bank.engine.submit(
        TransferOnUs(
            **caller.command_fields(payee, original.customer_id),
            transfer_id=caller.new_resource_id(bank.seed),
            type=type_of_reversal(original),
            from_pocket_id=original.to_pocket_id,
            to_pocket_id=original.from_pocket_id,
            amount=amount,
            partner_id=caller.partner_id,
            order=order,
            references=order.referenced,
        )
    )
    return await show_transfer(caller, bank, await get_transfer(bank.pool, payee, UUID(answer.outcome["transfer_id"])))


async def _end(
    caller: Call, bank: Bank, row: ReversalRequestRow, status: ReversalStatus, *, reader: UUID
) -> schemas.ReversalRequest:
    await bank.engine.submit(
        EndReversalRequest(
            **caller.command_fields(row.customer_id, row.requester_id),
            references=(row.reversal_id,),
            reversal_id=row.reversal_id,
            status=status,
        )
    )
    return schemas.render_reversal(msgspec.structs.replace(row, status=status), reader)


async def _of_payee(caller: Call, bank: Bank, reversal_id: UUID) -> ReversalRequestRow:
    """Return a request that the caller may answer. Raises NotFound."""
    return await store.get_request(bank.pool, *await caller.owned(bank, "reversal_request", reversal_id))


async def _find(caller: Call, bank: Bank, reversal_id: UUID) -> tuple[ReversalRequestRow, UUID]:
    """Return a request that is made to or by the caller's customer, and that customer. Raises NotFound."""
    entry = await bank.directory.find("reversal_request", reversal_id)
    if entry is not None:
        row = await store.get_request(bank.pool, entry.customer_id, entry.object_id, as_of=caller.as_of)
        for reader in (row.customer_id, row.requester_id):
            if await _owns(caller, bank, reader):
                return row, reader
    raise NotFound("There is no such reversal request.")


async def _owns(caller: Call, bank: Bank, customer_id: UUID) -> bool:
    try:
        return await caller.owner(bank, customer_id) == customer_id
    except NotFound:
        return False
