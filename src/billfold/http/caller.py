"""The caller and the resources it owns. Every authentication ends in one frozen `Call`.

A resource of someone else is treated as unknown: NotFound.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.ledger.bank import Bank
from billfold.ledger.commands import Outcome
from billfold.ledger.customers import CustomerRow
from billfold.ledger.directory import find_customer
from billfold.ledger.engine.pending_command import KeptResponse
from billfold.ledger.types import Origin
from billfold.platform.errors import NotFound
from billfold.platform.ids import command_id, derive


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One authenticated request: its sender, its key, and its time.

    `name` is the sender in the audit log, `key` the idempotency key, `fingerprint` the hash
    of method, path, query and body it is bound to, `operation` the operationId. `now` is the
    business time at which the request was admitted, `wall` the wall time of the same moment;
    neither costs a round trip.
    """

    partner_id: UUID
    name: str
    key: UUID
    fingerprint: bytes
    operation: str
    now: datetime
    wall: datetime
    host: str
    """The host as sent, with its port: `acme.localhost:8443`. Links are built with it."""
    trace_id: str
    address: str
    """The IP address from which it came, behind trusted proxies."""
    agent: str | None
    """The User-Agent of the client."""
    response: Callable[[Callable[[Outcome], object]], KeptResponse | None] = lambda _: None
    """Returns the response for `Engine.submit`, of a function that returns what the handler returns for an outcome."""

    @property
    def origin(self) -> Origin:
        """The caller as recorded in the audit log."""
        raise NotImplementedError

    @property
    def key_owner(self) -> str:
        """The owner of the caller's idempotency keys: the same key of the same owner is the same command."""
        return self.name

    def command_fields(self, *customers: UUID, step: int = 0) -> dict[str, Any]:
        """Return the fields that every command has: `OpenPocket(**caller.command_fields(id), name=...)`.

        The first customer owns the command. A request that sends several commands numbers them
        by `step`, always in the same order, so that a repeated request finds each of them.
        """
        return {
            "caller": f"{self.key_owner}:{step}" if step else self.key_owner,
            "key": self.key,
            "request_hash": self.fingerprint,
            "customers": customers,
            "origin": self.origin,
        }

    def new_resource_id(self, seed: bytes) -> UUID:
        """Return the id of the object that the request creates: the same when it is repeated under its key."""
        return derive(seed, command_id(self.key_owner, self.key), 0)

    @property
    def only_customer_id(self) -> UUID | None:
        """The one customer a token is for; None for a partner, whose customers are all allowed."""
        return None

    def may(self, scope: str) -> bool:  # noqa: ARG002 - a partner may do all that its operations offer
        """Tell whether it may do what a scope of the Customer API permits."""
        return True

    async def customer(self, bank: Bank, customer_id: UUID | None = None) -> CustomerRow:
        """Return the current row of a customer; by default the token's. Raises NotFound if it is not the caller's."""
        own_id = self.only_customer_id or customer_id
        row = None if own_id is None else await find_customer(bank.pool, own_id)
        if row is None or row.partner_id != self.partner_id:
            raise NotFound("There is no such customer.")
        return row

    async def owner(self, bank: Bank, customer_id: UUID | None) -> UUID:
        """Return the token's customer, or else the one named in the path, from memory. Raises NotFound."""
        if self.only_customer_id is not None:
            return self.only_customer_id
        assert customer_id is not None
        return (await self.owned(bank, "customer", customer_id))[0]

    async def owned(self, bank: Bank, kind: str, value: UUID) -> tuple[UUID, UUID]:
        """Return (customer_id, id) of a resource in the directory. Raises NotFound if it is not the caller's."""
        entry = await bank.directory.find(kind, value)
        if (
            entry is None
            or entry.partner_id != self.partner_id
            or self.only_customer_id not in {None, entry.customer_id}
        ):
            raise NotFound(f"There is no such {kind.replace('_', ' ')}.")
        return entry.customer_id, entry.object_id

    async def pocket(self, bank: Bank, pocket_id: UUID, customer_id: UUID | None = None) -> tuple[UUID, UUID]:
        """Return (customer_id, pocket_id), from memory. Raises NotFound if it is not the caller's.

        With a `customer_id` it must be a pocket of this customer.
        """
        required_owner = None if customer_id is None else await self.owner(bank, customer_id)
        owner, own_id = await self.owned(bank, "pocket", pocket_id)
        if required_owner not in {None, owner}:
            raise NotFound("There is no such pocket.")
        return owner, own_id
