"""Notifications of counterparties whose status changed."""

from collections.abc import Sequence

from billfold.events.notifications.notify import notify
from billfold.ledger.engine.pending_command import PendingCommand
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection


async def notify_changes(conn: Connection, batch: Sequence[PendingCommand], *, vault: Vault) -> None:
    """Notify the team of each counterparty whose status a command of this batch changed, in its transaction."""
    for job in batch:
        for each in (job.outcome or {}).get("counterparties", ()):
            await notify(
                conn,
                vault,
                job.customers[0],
                kind="COUNTERPARTY_STATUS_CHANGED",
                title="A counterparty changed",
                description=each["said"],
                metadata={"counterparty_id": each["counterparty_id"]},
                now=wall_now(),
            )
