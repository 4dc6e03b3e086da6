"""The sentence of a notification at rest: it names persons with their addresses, and is sealed with the bank's key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.events.notifications.types import CustomerNotification
from billfold.platform.crypto import Vault, associated_data, is_sealed_text

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

_BATCH_SIZE = 2_000
_PLAIN = """
SELECT customer_id, notification_id, description FROM notification
 WHERE NOT starts_with(description, 'sealed:') AND (customer_id, notification_id) > ($1, $2)
 ORDER BY customer_id, notification_id LIMIT $3
"""
_REPLACE = """
UPDATE notification n SET description = t.sealed
  FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS t(customer_id, notification_id, sealed)
 WHERE n.customer_id = t.customer_id AND n.notification_id = t.notification_id
"""


def seal_description(vault: Vault, customer_id: UUID, notification_id: UUID, /, plain: str) -> str:
    """Return the description of a notification, sealed."""
    return vault.seal_text(plain, _place(customer_id, notification_id))


def open_notifications(
    vault: Vault, customer_id: UUID, stored: Iterable[CustomerNotification]
) -> list[CustomerNotification]:
    """Return notifications of a customer as they are read; those of an earlier release may be in plain text."""
    return [
        msgspec.structs.replace(each, description=vault.open_text(each.description, _place(customer_id, each.id)))
        if is_sealed_text(each.description)
        else each
        for each in stored
    ]


async def seal_earlier_descriptions(bank: Bank, progress: Callable[[str], None]) -> int:
    """Seal the descriptions that an earlier release stored in plain text; return how many."""
    count, after = 0, (UUID(int=0), UUID(int=0))
    while rows := await bank.pool.fetch(_PLAIN, *after, _BATCH_SIZE):
        customer_ids, notification_ids, plain = zip(*rows, strict=True)
        sealed = [seal_description(bank.vault, *row) for row in rows]
        await bank.pool.execute(_REPLACE, customer_ids, notification_ids, sealed)
        count, after = count + len(plain), (customer_ids[-1], notification_ids[-1])
        progress(f"{count} of notification.description are sealed")
    return count


def _place(customer_id: UUID, notification_id: UUID) -> bytes:
    return associated_data("notification", "description", notification_id, tenant_id=customer_id)
