"""The approved transfer requests that wait to be executed, and the settings that decide about it."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from billfold.approvals import types
from billfold.approvals.transfer_orders import RequestContent, decode_content
from billfold.ledger import scheduler
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.pool import Batcher, uuid_array

_Name = tuple[UUID, UUID]
"""A customer and one of its requests."""

_SETTINGS = """
SELECT 'unverified_wires' = ANY(features), EXISTS (SELECT 1 FROM policy p WHERE p.customer_id = $1)
  FROM customer_features($1) AS features
"""
# A wire, withdrawal or transfer is inserted by the commit that executes it.
_READY = """
WITH q AS MATERIALIZED (
  SELECT customer_id, request_id, content, type
    FROM unnest($1::text::uuid[], $2::text::uuid[]) AS k(customer_id, request_id)
    JOIN transfer_request USING (customer_id, request_id) WHERE status = 'APPROVED' AND reason IS NULL
     AND series_state IS NULL
), done AS MATERIALIZED (
  SELECT request_id FROM q JOIN wire w ON w.customer_id = q.customer_id AND w.wire_id = q.request_id
   WHERE q.type = 'WIRE'
   UNION ALL
  SELECT request_id FROM q JOIN crypto_withdrawal c
      ON c.customer_id = q.customer_id AND c.withdrawal_id = q.request_id WHERE q.type = 'USDC'
   UNION ALL
  SELECT request_id FROM q JOIN transfer t ON t.customer_id = q.customer_id AND t.transfer_id = q.request_id
   WHERE q.type NOT IN ('WIRE', 'USDC')
), governed AS MATERIALIZED (SELECT customer_id FROM q JOIN policy p USING (customer_id))
SELECT customer_id, request_id, content, 'unverified_wires' = ANY(customer_features(customer_id)),
       customer_id IN (SELECT customer_id FROM governed), request_id IN (SELECT request_id FROM done)
  FROM q
"""


class PaymentSettings(NamedTuple):
    """The settings of a customer: wires may go to unverified counterparties, and it has a policy."""

    unverified_wires: bool
    has_policy: bool


class ApprovedRequest(NamedTuple):
    """A request to execute."""

    content: RequestContent
    settings: PaymentSettings


class ApprovedRequests:
    """The approved requests of one bank."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._read: Batcher[_Name, ApprovedRequest | None] = Batcher(self._find)
        self._done: Batcher[UUID, None] = Batcher(self._complete)

    async def find(self, customer_id: UUID, request_id: UUID) -> ApprovedRequest | None:
        """Return a request that is ready for execution; None if it is not approved, was executed, or was rejected."""
        return await self._read.ask((customer_id, request_id))

    async def cross_off(self, request_id: UUID) -> None:
        """Cancel the job of a request that was executed."""
        await self._done.ask(request_id)

    async def _find(self, names: Sequence[_Name]) -> list[ApprovedRequest | None]:
        customers, requests = zip(*names, strict=True)
        ready = {}
        for row in await self._pool.fetch(_READY, uuid_array(customers), uuid_array(requests)):
            customer_id, request_id, text, *settings, done = row
            if not done:
                content = decode_content(text)
                found = ApprovedRequest(content, PaymentSettings(*settings))
                ready[customer_id, request_id] = found
        return [ready.get(name) for name in names]

    async def _complete(self, requests: Sequence[UUID]) -> list[None]:
        await scheduler.cancel(self._pool, types.EXECUTE_TRANSFER_REQUEST, *requests)
        return [None] * len(requests)


async def load_payment_settings(conn: Connection, customer_id: UUID) -> PaymentSettings:
    """Return what decides about executing payments of this customer."""
    (row,) = await conn.fetch(_SETTINGS, customer_id)
    return PaymentSettings(*row)
