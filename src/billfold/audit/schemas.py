"""An audit log entry as the API returns it."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from billfold.audit.rules import AuditEntry, open_details
from billfold.platform.crypto import Vault


class CustomerAuditLogEntry(msgspec.Struct, kw_only=True):
    """An action. `member_id` is null when it was no member of the team.

    `actor_type` says who it was instead: a client by itself, the partner, or the operator of the
    bank. `client_id` is the OAuth client of the request.
    """

    id: UUID
    timestamp: datetime
    member_id: UUID | None
    member_name: str
    action: str
    resource_type: str
    resource_id: str | None
    outcome: Literal["SUCCESS", "FAILURE"]
    ip_address: str | None
    user_agent: str | None
    details: dict[str, Any]
    actor_type: Literal["MEMBER", "CLIENT", "PARTNER", "OPERATOR", "SYSTEM", "INVITED"]
    client_id: str | None
    object_type: Literal["CustomerAuditLogEntry"] = "CustomerAuditLogEntry"


COLUMNS = tuple(name for name in CustomerAuditLogEntry.__struct_fields__ if name != "object_type")
"""The same fields flattened, for files; `details` as JSON."""


def render_entry(vault: Vault, row: AuditEntry) -> CustomerAuditLogEntry:
    """Return an entry as the API shows it."""
    return CustomerAuditLogEntry(
        id=row.entry_id,
        timestamp=row.recorded_at,
        member_id=row.member_id,
        member_name=row.actor_name,
        action=row.action,
        resource_type=row.resource_type,
        resource_id=row.resource_id,
        outcome=row.outcome,
        ip_address=row.ip_address,
        user_agent=row.user_agent,
        details=open_details(row, vault),
        actor_type=row.actor,
        client_id=row.client_id,
    )


def cells_of(vault: Vault, row: AuditEntry) -> tuple[object, ...]:
    """Return an entry as a line of a file."""
    shown = render_entry(vault, row)
    details = msgspec.json.encode(shown.details).decode()
    return tuple(details if name == "details" else getattr(shown, name) for name in COLUMNS)
