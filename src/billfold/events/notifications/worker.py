"""Notifies teams of payments, and of webhook subscriptions that fail."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from billfold.audit import record as audit_record
from billfold.audit.types import (NewEntry)
from billfold.ledger.types import (Origin)
from billfold.events.notifications import notify as notification_notify
from billfold.events.notifications import payment_notifications
from billfold.events.webhooks.attempts import FailingSubscription
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.events.webhooks.attempts import OnFailing
    from billfold.platform.crypto import Vault
    from billfold.platform.database.connection import (Connection)

_FAILING_TEXT = "Its last deliveries all failed. They are tried again as its retry policy says."
_DISABLED_TEXT = "Its receiver answered 410 Gone, so it was disabled and receives nothing any more."


class NotificationWorker:
    """A periodic task of the worker. Pending events wait in the log."""

    __slots__ = ("_clock",)

    def __init__(self, clock: Callable[[], datetime] = wall_now) -> None:
        self._clock = clock

    async def __call__(self, bank: Bank) -> int:
        """Notify of what is new; return how many events that was."""
        now = self._clock()
        retried = await payment_notifications.retry_notifications(bank.pool, bank.vault, now=now)
        return retried + await payment_notifications.notify_of_payments(bank.pool, bank.vault, now=now, wait=False)


def failing_notifier(vault: Vault, clock: Callable[[], datetime] = wall_now) -> OnFailing:
    """Return the callback for subscriptions that begin to fail; it runs in the transaction of the attempts."""

    async def notify_failing(conn: Connection, failing: FailingSubscription) -> None:
        if failing.customer_id is None:
            return
        now = clock()
        await notification_notify.notify(
            conn,
            vault,
            failing.customer_id,
            kind="SUBSCRIPTION_DELIVERY_FAILING",
            title="Webhook deliveries fail",
            description=_DISABLED_TEXT if failing.ended else _FAILING_TEXT,
            metadata={"subscription_id": failing.subscription_id},
            now=now,
        )
        if failing.ended:
            entry = NewEntry(
                customer_id=failing.customer_id,
                origin=Origin.system(),
                action="subscription.disabled",
                resource_type="subscription",
                resource_id=failing.subscription_id,
                details={"because": "410 Gone"},
            )
            await audit_record.record(conn, vault, entry, now=now)

    return notify_failing
