"""Whom peer-to-peer payments reach, looked up for all who ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.domain import counterparties, portals
from billfold.domain.counterparties import Payee
from billfold.kit.errors import NotFound, Refused
from billfold.kit.gather import Gatherer

if TYPE_CHECKING:
    from billfold.kit.db import Pool

_Place = tuple[UUID, UUID]
"""A customer and a Pocket of his."""
_Link = tuple[UUID, UUID]
"""A customer and a counterparty of his."""


class Peer(NamedTuple):
    """Where a payment goes, and the addresses of the paying and the paid Pocket on the network."""

    customer_id: UUID
    pocket_id: UUID
    addresses: tuple[str | None, str | None]


class Peers:
    """The counterparties of one bank that are paid over its network."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._payees: Gatherer[_Link, Payee | None] = Gatherer(self._find_payees)
        self._addresses: Gatherer[_Place, str | None] = Gatherer(self._find_addresses)

    async def find(self, payer: UUID, pocket_id: UUID, counterparty_id: UUID) -> Peer:
        """Return whom a customer's counterparty is.

        Raises NotFound, and Refused counterparty-not-verified for one that is not linked.
        """
        payee = await self._payees.ask((payer, counterparty_id))
        if payee is None:
            raise NotFound("There is no such counterparty.")
        if payee.type != "on_us" or payee.status not in {"LINKED", "VERIFIED"}:
            raise Refused(
                "counterparty-not-verified",
                f"The counterparty is {payee.status}; link an on_us counterparty.",
            )
        if payee.target_customer_id is None or payee.target_pocket_id is None:
            raise NotFound("The counterparty leads nowhere.")
        end = (payee.target_customer_id, payee.target_pocket_id)
        here, there = await asyncio.gather(
            self._addresses.ask((payer, pocket_id)), self._addresses.ask(end)
        )
        return Peer(*end, (here, there))

    async def close(self) -> None:
        """Wait until nobody is being looked up."""
        await self._payees.settle()
        await self._addresses.settle()

    async def _find_payees(self, links: Sequence[_Link]) -> list[Payee | None]:
        customers, ids = zip(*links, strict=True)
        rows = await counterparties.look_up(self._pool, list(set(customers)), list(set(ids)))
        known = {
            (customer_id, counterparty_id): payee for customer_id, counterparty_id, payee in rows
        }
        return [known.get(link) for link in links]

    async def _find_addresses(self, places: Sequence[_Place]) -> Sequence[str | None]:
        return await portals.network_addresses(self._pool, *places)
