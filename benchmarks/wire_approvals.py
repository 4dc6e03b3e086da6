"""Wires that a second person approved just now: written down as the last approval leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from benchmarks.dataset import customer_of, pocket_of
from billfold.approvals.rules import REQUEST_LIFETIME, hash_of, text_of
from billfold.approvals.transfer_orders import RequestContent, WireOrder
from billfold.approvals.types import EXECUTE_TRANSFER_REQUEST, ApprovalRequirement
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.types import ScheduledJob
from billfold.payments.on_us.schemas import RequestedAmount
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

_CENTS = 1_234_50
_APPROVED = """
INSERT INTO transfer_request (customer_id, request_id, type, pocket_id, counterparty_id, amount,
                              content, content_hash, asked, member_id, client_id, reviewers, terms,
                              business_date, status, created_at, updated_at, expires_at)
SELECT r.customer_id, r.request_id, 'WIRE', r.pocket_id, r.counterparty_id, $5, r.content::json,
       r.content_hash, r.content_hash, r.customer_id, 'bench', '{}', $8::json, $9, 'APPROVED',
       $10, $10, $11
  FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $6::text[], $7::bytea[])
    AS r(customer_id, request_id, pocket_id, counterparty_id, content, content_hash)
"""
Name = tuple[UUID, UUID]
"""A customer, and the request of his that was approved."""


async def approve_wires(bank: Bank, occasion: str, payees: Sequence[tuple[int, UUID]]) -> list[Name]:
    """Write down one approved wire of each customer to his payee; return their names.

    Each waits with the appointment at which it is carried out, as an approval leaves it.
    """
    now = await bank.now()
    names = [(customer_of(nth), command_id(f"wire:{occasion}", str(nth))) for nth, _ in payees]
    contents = [
        text_of(msgspec.to_builtins(_content(request_id, pocket_of(nth), payee)))
        for (nth, payee), (_, request_id) in zip(payees, names, strict=True)
    ]
    async with bank.pool.acquire() as conn, conn.transaction():
        await conn.execute(
            _APPROVED,
            [customer_id for customer_id, _ in names],
            [request_id for _, request_id in names],
            [pocket_of(nth) for nth, _ in payees],
            [payee for _, payee in payees],
            _CENTS,
            contents,
            [hash_of(content) for content in contents],
            text_of(ApprovalRequirement()),
            bank.calendars.business_date(now),
            now,
            now + REQUEST_LIFETIME,
        )
        await jobs_store.schedule(
            conn, [ScheduledJob(EXECUTE_TRANSFER_REQUEST, wire, customer, at=now) for customer, wire in names]
        )
    return names


def _content(request_id: UUID, pocket_id: UUID, payee: UUID) -> RequestContent:
    """Return what was approved."""
    return RequestContent(
        transfer=WireOrder(
            id=request_id,
            origin_pocket_id=pocket_id,
            counterparty_id=payee,
            amount=RequestedAmount(amount_usdc=_CENTS),
            description="Invoice",
        ),
        payee={
            "type": "wire",
            "counterparty_name": {"type": "business", "business_name": "Beta LLC"},
            "details": {"routing_number": "121182904", "identifier": "5647772655"},
            "target_pocket_id": None,
        },
    )
