"""The keys for what payments say of their other parties: those of the customers, and the bank's own in their place.

What arrives for nobody, or for a customer whose key was destroyed, is sealed with the bank's own key: money is booked
and returned whatever became of a key. A sealed text says which key it needs.
"""

from __future__ import annotations

from billfold.data_keys.keys import DataKeys
from collections.abc import Collection
from typing import TYPE_CHECKING, Self
from uuid import UUID

from billfold.data_keys.keys import find_key
from billfold.data_keys.types import DataShredded
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.platform.crypto import is_sealed_text

if TYPE_CHECKING:
    from billfold.data_keys.keys import KeyRing
    from billfold.data_keys.types import DataKey, PartyField
    from billfold.ledger.bank import Bank


async def bank_key(bank: Bank) -> DataKey:
    """Return the data key of the bank itself. It is never destroyed."""
    return await bank.ports[DataKeys].of(bank.pool, bank_customer_id(bank.seed))


class PaymentKeys:
    """Seals and opens fields of payments of some customers."""

    __slots__ = ("_ring", "bank_key")

    def __init__(self, own: DataKey, ring: KeyRing) -> None:
        self.bank_key = own
        self._ring = ring

    @classmethod
    async def load(cls, bank: Bank, customer_ids: Collection[UUID]) -> Self:
        """Return what opens payments of these customers; call it before a transaction begins."""
        return cls(await bank_key(bank), await bank.ports[DataKeys].load(bank.pool, customer_ids))

    @classmethod
    async def prepare(cls, bank: Bank, customer_ids: Collection[UUID]) -> Self:
        """Return what seals payments of these customers; a customer without a key gets one."""
        ring = dict(await bank.ports[DataKeys].load(bank.pool, customer_ids))
        for customer_id in set(customer_ids) - ring.keys():
            try:
                ring[customer_id] = await bank.ports[DataKeys].of(bank.pool, customer_id)
            except DataShredded:
                ring[customer_id] = None
        return cls(await bank_key(bank), ring)

    def of(self, customer_id: UUID | None) -> DataKey:
        """Return the key to seal with: the customer's, or the bank's for nobody and for one that was destroyed."""
        return self.bank_key if customer_id is None else find_key(self._ring, customer_id) or self.bank_key

    def open(self, field: PartyField, customer_id: UUID, stored: str) -> str | None:
        """Return the text, one in plain text as it is; None for what was destroyed with its key.

        A text that only looks as if it were sealed is in plain text. Raises InvariantError for a damaged one.
        """
        if not is_sealed_text(stored):
            return stored
        own = self._ring.get(customer_id)
        for data_key in (own, self.bank_key):
            if data_key is not None and data_key.has_sealed(stored):
                return field.open(data_key, stored)
        return None if own is None and customer_id in self._ring else stored
