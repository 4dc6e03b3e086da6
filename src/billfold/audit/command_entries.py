"""Audit entries of commands that a user or client requested, written in the transaction of their batch."""

from collections.abc import Sequence

from billfold.audit.record import record_all
from billfold.audit.types import NewEntry
from billfold.ledger.engine.pending_command import PendingCommand
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection


async def record_commands(conn: Connection, batch: Sequence[PendingCommand], *, vault: Vault) -> None:
    """Record the audited commands of this batch, in its transaction."""
    entries = [entry for job in batch if (entry := audit_entry_of(job)) is not None]
    if entries:
        await record_all(conn, vault, entries, now=wall_now())


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
