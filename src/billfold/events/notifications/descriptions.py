"""The sentence of a notification at rest: it names persons with their addresses, and is sealed with the bank's key."""

from collections.abc import Iterable
from uuid import UUID

import msgspec

from billfold.events.notifications.types import CustomerNotification
from billfold.platform.crypto import Vault, associated_data


def seal_description(vault: Vault, customer_id: UUID, notification_id: UUID, /, plain: str) -> str:
    """Return the description of a notification, sealed."""
    return vault.seal_text(plain, _place(customer_id, notification_id))


def open_notifications(
    vault: Vault, customer_id: UUID, stored: Iterable[CustomerNotification]
) -> list[CustomerNotification]:
    """Return notifications of a customer as they are read."""
    return [
        msgspec.structs.replace(each, description=vault.open_text(each.description, _place(customer_id, each.id)))
        for each in stored
    ]


def _place(customer_id: UUID, notification_id: UUID) -> bytes:
    return associated_data("notification", "description", notification_id, tenant_id=customer_id)
