"""Approved requests that are not carried out yet, read in batches."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from billfold.approvals.transfer_orders import RequestContent, decode_content
from billfold.approvals.types import EXECUTE_TRANSFER_REQUEST
from billfold.ledger import scheduler as jobs_store
from billfold.platform.database.connection import Pool
from billfold.platform.database.pool import Batcher, uuid_array

_Name = tuple[UUID, UUID]
"""A customer and one of its requests."""

# A wire, a withdrawal or a transfer is there with the commit that carries it out.
# One look into an index per request and table, however long the tables have grown.
_READY = """
SELECT q.customer_id, q.request_id, q.content,
       'unverified_wires' = ANY(customer_features(q.customer_id)),
       CASE q.type
       WHEN 'WIRE' THEN (SELECT true FROM wire w
                          WHERE w.customer_id = q.customer_id AND w.wire_id = q.request_id)
       WHEN 'USDC' THEN (SELECT true FROM crypto_withdrawal c
                          WHERE c.customer_id = q.customer_id AND c.withdrawal_id = q.request_id)
       ELSE (SELECT true FROM transfer t
              WHERE t.customer_id = q.customer_id AND t.transfer_id = q.request_id)
        END
  FROM unnest($1::text::uuid[], $2::text::uuid[]) AS k(customer_id, request_id)
 CROSS JOIN LATERAL (
       SELECT * FROM transfer_request r
        WHERE r.customer_id = k.customer_id AND r.request_id = k.request_id
          AND r.status = 'APPROVED' AND r.reason IS NULL LIMIT 1) q
"""


class ApprovedRequest(NamedTuple):
    """A request to execute; `unverified_wires` allows an unverified counterparty."""

    content: RequestContent
    unverified_wires: bool


class ApprovedRequests:
    """The approved requests of one bank."""

    __slots__ = ("_done", "_pool", "_read")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._read: Batcher[_Name, ApprovedRequest | None] = Batcher(self._find)
        self._done: Batcher[UUID, None] = Batcher(self._complete)

    async def find(self, customer_id: UUID, request_id: UUID) -> ApprovedRequest | None:
        """Return a request that is to be carried out; None when it is not, was, or could not be."""
        return await self._read.ask((customer_id, request_id))

    async def cross_off(self, request_id: UUID) -> None:
        """Cancel the job of a request that was carried out."""
        await self._done.ask(request_id)

    async def _find(self, names: Sequence[_Name]) -> list[ApprovedRequest | None]:
        customers, requests = zip(*names, strict=True)
        ready = {}
        for row in await self._pool.fetch(_READY, uuid_array(customers), uuid_array(requests)):
            customer_id, request_id, content, unverified_wires, done = row
            if not done:
                found = ApprovedRequest(decode_content(content), unverified_wires)
                ready[customer_id, request_id] = found
        return [ready.get(name) for name in names]

    async def _complete(self, requests: Sequence[UUID]) -> list[None]:
        await jobs_store.cancel(self._pool, EXECUTE_TRANSFER_REQUEST, *requests)
        return [None] * len(requests)
