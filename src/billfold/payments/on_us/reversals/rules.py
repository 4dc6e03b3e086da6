"""Reversals: of a transfer no more is paid back than it moved, and between customers only what was requested."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.accounts.pockets.rules import pocket_of, require_not_closed
from billfold.events import kinds
from billfold.events.payloads import ReversalRequestPayload
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.customers import require_active
from billfold.payments.on_us.commands import OnUsTransferRow, TransferOnUs, TransferOrder, TransferStatus
from billfold.payments.on_us.reversals.commands import (
    EXPIRY_JOB,
    EndReversalRequest,
    RequestReversal,
    ReversalRequestRow,
    ReversalStatus,
)
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused

REQUESTS_MAX: Final = 3
"""The payee of a transfer is not asked more often."""
OPEN_MAX: Final = 10
"""Requests of one customer to one payee that are open at a time."""


@decides(RequestReversal)
def request_reversal(books: Books, cmd: RequestReversal, ctx: Context) -> Outcome:
    """Ask the payee for its money back. The state of the payee's Pocket is not told to the requester.

    Refuses: customer-not-open, pocket-not-open, transfer-not-reversible, reversal-open. NotFound for a transfer of
    another customer.
    """
    payee, payer = book_of(books, cmd.customers[0]), book_of(books, cmd.customers[-1])
    original, left = _reversible(payee, payer, cmd.transfer_id)
    _require_recent(original, ctx)
    if payee is payer:
        raise Refused("transfer-not-reversible", "Both Pockets are of one customer: reverse it without a request.")
    require_active(payer.account_status)
    require_not_closed(pocket_of(payer, original.from_pocket_id))
    earlier = list(_requests(payee, cmd.transfer_id))
    seen = [each for each in payee.referenced.values() if isinstance(each, ReversalRequestRow)]
    if sum(each.requester_id == payer.customer_id and _is_open(each, ctx) for each in seen) >= OPEN_MAX:
        raise Refused("reversal-open", f"{OPEN_MAX} requests to this payee are open already.")
    if any(each.status == ReversalStatus.REQUESTED for each in earlier):
        raise Refused("reversal-open", "A request to pay it back is open already.")
    if len(earlier) >= REQUESTS_MAX:
        raise Refused("transfer-not-reversible", f"The payee was asked {REQUESTS_MAX} times.")
    amount = left if cmd.amount is None else cmd.amount
    _require_left(amount, left)
    until = ctx.calendars.add_fed_days(et_date(ctx.now), ctx.terms.reversal_request_days)
    row = ReversalRequestRow(
        customer_id=payee.customer_id,
        reversal_id=cmd.reversal_id,
        requester_id=payer.customer_id,
        transfer_id=cmd.transfer_id,
        amount=amount,
        reason=cmd.reason,
        status=ReversalStatus.REQUESTED,
        reversed_by=None,
        expires_at=ctx.calendars.closes_at(until),
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    payee.draft.add(row)
    payee.put(payee.referenced, row.reversal_id, row)
    payee.keep_fingerprint(row)
    payee.enter("reversal_request", str(row.reversal_id), row.reversal_id)
    payee.schedule(EXPIRY_JOB, row.reversal_id, row.expires_at)
    recording.event(payee, ctx, kinds.ON_US_REVERSAL_UPDATED, payload=_payload(row))
    return _outcome(row)


@decides(EndReversalRequest)
def end_reversal_request(books: Books, cmd: EndReversalRequest, ctx: Context) -> Outcome:
    """End a request without a payment. Refuses: reversal-not-open. NotFound for a request between other customers."""
    payee, requester = book_of(books, cmd.customers[0]), book_of(books, cmd.customers[-1])
    row = payee.referenced.get(cmd.reversal_id)
    if not isinstance(row, ReversalRequestRow) or row.requester_id != requester.customer_id:
        raise NotFound("There is no such reversal request.")
    is_due = cmd.status != ReversalStatus.EXPIRED or row.expires_at <= ctx.now
    if row.status != ReversalStatus.REQUESTED or not is_due:
        raise Refused("reversal-not-open", f"The request is {row.status}.")
    return _outcome(_end(payee, requester, row, ctx, status=cmd.status))


def require_reversal(payee: Book, payer: Book, cmd: TransferOnUs, ctx: Context) -> ReversalRequestRow | None:
    """Return the request that a reversal fulfils, None within one customer.

    The `payee` of the original is who pays now. Raises NotFound unless it goes the way back, Refused
    `transfer-not-reversible`, `reversal-not-open`.
    """
    assert cmd.order.reverses is not None
    original, left = _reversible(payee, payer, cmd.order.reverses)
    if (original.to_pocket_id, original.from_pocket_id) != (cmd.from_pocket_id, cmd.to_pocket_id):
        raise NotFound("There is no such transfer between these Pockets.")
    amount = cmd.amount or 0
    _require_left(amount, left)
    if payee is payer:
        _require_recent(original, ctx)
        return None
    request = next((each for each in _requests(payee, original.transfer_id) if _is_open(each, ctx)), None)
    if request is None or request.amount != amount:
        raise Refused("reversal-not-open", "Its payer has no open request for this amount.")
    return request


def accept_request(
    payee: Book, payer: Book, request: ReversalRequestRow | None, ctx: Context, transfer_id: UUID
) -> None:
    """Record the transfer that pays what was requested, if anything was."""
    if request is not None:
        _end(payee, payer, request, ctx, status=ReversalStatus.ACCEPTED, reversed_by=transfer_id)


def _reversible(payee: Book, payer: Book, transfer_id: UUID) -> tuple[OnUsTransferRow, int]:
    """Return a transfer, and the cents of it that are not paid back yet."""
    found = payer.referenced.get(transfer_id)
    if not isinstance(found, OnUsTransferRow) or found.to_pocket_id not in payee.pockets:
        raise NotFound("There is no such transfer.")
    if found.status != TransferStatus.COMPLETED:
        raise Refused("transfer-not-reversible", f"The transfer is {found.status}.")
    if found.reverses_id is not None:
        raise Refused("transfer-not-reversible", "It is a reversal itself.")
    if msgspec.json.decode(found.request, type=TransferOrder).in_kind:
        raise Refused("transfer-not-reversible", "It moved bills: transfer them back in kind.")
    seen = payee.referenced.values()
    paid_back = (each for each in seen if isinstance(each, OnUsTransferRow) and each.reverses_id == transfer_id)
    return found, found.amount - sum(each.amount for each in paid_back if each.status == TransferStatus.COMPLETED)


def _require_recent(original: OnUsTransferRow, ctx: Context) -> None:
    """Refuse a transfer that is too old; a request that was made in time is answered until it expires."""
    if ctx.now > original.created_at + timedelta(days=ctx.terms.reversal_days):
        raise Refused("transfer-not-reversible", f"It was made more than {ctx.terms.reversal_days} days ago.")


def _require_left(amount: int, left: int) -> None:
    if not 0 < amount <= left:
        raise Refused("transfer-not-reversible", f"{left} cents of it are not paid back yet.")


def _requests(payee: Book, transfer_id: UUID) -> Iterator[ReversalRequestRow]:
    seen = payee.referenced.values()
    return (each for each in seen if isinstance(each, ReversalRequestRow) and each.transfer_id == transfer_id)


def _is_open(row: ReversalRequestRow, ctx: Context) -> bool:
    return row.status == ReversalStatus.REQUESTED and ctx.now < row.expires_at


def _end(payee: Book, requester: Book, row: ReversalRequestRow, ctx: Context, **changed: Any) -> ReversalRequestRow:
    changed["updated_at"] = ctx.now
    row = msgspec.structs.replace(row, **changed)
    payee.change(ReversalRequestRow, row.reversal_id, **changed)
    payee.put(payee.referenced, row.reversal_id, row)
    payee.keep_fingerprint(row)
    for book in (payee, requester):
        recording.event(book, ctx, kinds.ON_US_REVERSAL_UPDATED, payload=_payload(row))
    return row


def _payload(row: ReversalRequestRow) -> ReversalRequestPayload:
    return ReversalRequestPayload(
        reversal_request_id=row.reversal_id, on_us_id=row.transfer_id, amount=row.amount, status=row.status
    )


def _outcome(row: ReversalRequestRow) -> Outcome:
    return {"reversal_id": str(row.reversal_id), "status": row.status, "amount": row.amount}
