"""Who calls, and what he may touch. Every way of proving it ends in one frozen `Caller`.

Route functions take `caller: Caller` and `bank: Bank` by name. Path parameters are declared as
`{pocket_id:str}` and read by `ids_in.path_uuid`; a body is `data: SomeStruct` (msgspec,
forbid_unknown_fields). A foreign id and an id of nobody are the same: NotFound.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.audit.types import Origin
from billfold.ledger.bank import Bank
from billfold.ledger.directory.store import find_customer
from billfold.ledger.directory.types import CustomerRow, Entry
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id, derive


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One authenticated request, whoever sent it: under which key, and when.

    `name` is who it is in the log of commands, `key` the idempotency key, `fingerprint` the hash
    of method, path, query and body it is bound to, `operation` the operationId. `now` is the
    business time at which the request was let in, `wall` the wall time of the same moment;
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
    """The host as sent, with its port: `acme.localhost:8443`. Links are made with it."""
    trace_id: str
    address: str
    """The address on the net from which it came, behind trusted proxies."""
    agent: str | None
    """What the program calls itself: its User-Agent."""

    @property
    def origin(self) -> Origin:
        """Who asks, for the audit log."""
        raise NotImplementedError

    def command_fields(self, *customers: UUID, step: int = 0) -> dict[str, Any]:
        """Return what every command carries: `OpenPocket(**caller.command_fields(id), name=...)`.

        The first customer owns the command. A request that sends several commands numbers them
        by `step`, always in the same order, so that a repeated request finds each again.
        """
        return {
            "caller": f"{self.name}:{step}" if step else self.name,
            "key": self.key,
            "request_hash": self.fingerprint,
            "customers": customers,
            "origin": self.origin,
        }

    def new_resource_id(self, seed: bytes) -> UUID:
        """Return the id of what the request makes: the same when it is repeated under its key."""
        return derive(seed, command_id(self.name, self.key), 0)

    @property
    def only_customer_id(self) -> UUID | None:
        """The one customer a token is for; None for a partner, whose customers are all allowed."""
        return None

    async def customer(self, bank: Bank, customer_id: UUID | None = None) -> CustomerRow:
        """Return a customer as it is now, as a rule the token's. Raises NotFound when it is foreign."""
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
        return (await self._own(bank, "customer", customer_id)).customer_id

    async def pocket(self, bank: Bank, pocket_id: UUID, customer_id: UUID | None = None) -> tuple[UUID, UUID]:
        """Return (customer_id, pocket_id), from memory. Raises NotFound when it is foreign.

        With a `customer_id` it must be a pocket of this customer.
        """
        if customer_id is not None:
            owner = await self.owner(bank, customer_id)
            return owner, await self.pocket_of(bank, owner, pocket_id)
        entry = await self._own(bank, "pocket", pocket_id)
        return entry.customer_id, entry.object_id

    async def pocket_of(self, bank: Bank, customer_id: UUID, pocket_id: UUID) -> UUID:
        """Return the id when it is a pocket of this customer of the caller, from memory."""
        entry = await self._own(bank, "pocket", pocket_id)
        if entry.customer_id != customer_id:
            raise NotFound("There is no such pocket.")
        return entry.object_id

    async def _own(self, bank: Bank, kind: str, value: UUID) -> Entry:
        entry = await bank.directory.find(kind, value)
        if (
            entry is None
            or entry.partner_id != self.partner_id
            or self.only_customer_id not in {None, entry.customer_id}
        ):
            raise NotFound(f"There is no such {kind}.")
        return entry


class Caller(Call, frozen=True, kw_only=True):
    """One request of a partner: who, and on whose behalf."""

    partner_slug: str
    user_id: UUID
    own_customer_id: UUID
    features: frozenset[str]

    @property
    @override
    def origin(self) -> Origin:
        """The partner, and the user of his that asks."""
        return Origin(
            kind="PARTNER", name=self.partner_slug, client_id=self.name, ip_address=self.address, user_agent=self.agent
        )

    async def customer_id(self, bank: Bank, customer_id: UUID) -> UUID:
        """Return the id when it is a customer of the partner, from memory. Raises NotFound."""
        return (await self._own(bank, "customer", customer_id)).customer_id

    async def transfer(self, bank: Bank, transfer_id: UUID) -> tuple[UUID, UUID]:
        """Return (customer_id, transfer_id). Raises NotFound when it is foreign."""
        entry = await self._own(bank, "transfer", transfer_id)
        return entry.customer_id, entry.object_id

    async def wire(self, bank: Bank, wire_id: UUID) -> tuple[UUID, UUID]:
        """Return (customer_id, wire_id). Raises NotFound when it is foreign."""
        entry = await self._own(bank, "wire", wire_id)
        return entry.customer_id, entry.object_id

    async def counterparty(self, bank: Bank, counterparty_id: UUID) -> tuple[UUID, UUID]:
        """Return (customer_id, counterparty_id). Raises NotFound when it is foreign."""
        entry = await self._own(bank, "counterparty", counterparty_id)
        return entry.customer_id, entry.object_id

    async def portal(self, bank: Bank, portal_id: UUID) -> tuple[UUID, UUID]:
        """Return (customer_id, portal_id). Raises NotFound when it is foreign."""
        entry = await self._own(bank, "portal", portal_id)
        return entry.customer_id, entry.object_id

    def require_feature(self, feature: str) -> None:
        """Raise Refused `feature-not-enabled` unless the partner has the feature."""
        if feature not in self.features:
            raise Refused("feature-not-enabled", f"The feature `{feature}` is not switched on.")
