"""Commands requested by a user or client (`origin`) leave an entry in the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.audit.record import record_all
from billfold.audit.types import NewEntry
from billfold.events.notifications import notify as notification_notify
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.ledger.engine.pending_command import PendingCommand
    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection


async def record_audited_actions(conn: Connection, vault: Vault | None, batch: Sequence[PendingCommand]) -> None:
    """Record the audited commands of this batch, in its transaction."""
    if vault is None:
        return
    for job in batch:
        if job.outcome is not None and "counterparties" in job.outcome:
            await _notify(conn, vault, job.customers[0], changed=job.outcome["counterparties"])
    entries = [entry for job in batch if (entry := audit_entry_of(job)) is not None]
    if entries:
        await record_all(conn, vault, entries, now=wall_now())


async def _notify(conn: Connection, vault: Vault, customer_id: UUID, changed: Sequence[Mapping[str, str]]) -> None:
    """Notify the team of counterparties whose status changed, whatever the cause."""
    for each in changed:
        await notification_notify.notify(
            conn,
            vault,
            customer_id,
            kind="COUNTERPARTY_STATUS_CHANGED",
            title="A counterparty changed",
            description=each["said"],
            metadata={"counterparty_id": each["counterparty_id"]},
            now=wall_now(),
        )


def audit_entry_of(job: PendingCommand) -> NewEntry | None:
    """Return what to record of a command that was decided just now; None for most."""
    command, outcome = job.command, job.outcome
    audit, origin = command.audit, command.origin
    if audit is None or origin is None or outcome is None:
        return None
    details = command.audited_fields()
    refused = outcome.get("refused")
    if refused is not None:
        details["refused"] = refused
    verb = audit.verb if isinstance(audit.verb, str) else audit.verb(command)
    named = f"{audit.resource}_id"
    itself = job.customers[0] if audit.resource == "customer" else None
    return NewEntry(
        customer_id=job.customers[0],
        origin=origin,
        action=f"{audit.resource}.{verb}",
        resource_type=audit.resource,
        resource_id=outcome.get(named) or getattr(command, named, itself),
        outcome="SUCCESS" if refused is None else "FAILURE",
        details=details,
    )
