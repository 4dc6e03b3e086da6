"""Fingerprints of the rows of dual control, stored in the audit log: an edited row is found.

Such a row is written within an audited action, whose entry keeps the row's fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.approvals.types import Actor
from billfold.audit.record import audited
from billfold.platform.crypto import fingerprint
from billfold.platform.database.rows import stored_name

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.audit.record import AuditedAction

KEYS = {
    "transfer_request": ("request_id",),
    "authorization_request": ("request_id",),
    "review": ("request_id", "review_no"),
    "approval_rule": ("rule_id",),
    "dual_control": ("customer_id",),
}
"""Table -> what tells a row of it from the customer's others."""


def record_checksums(audited_action: AuditedAction, table: str, rows: Iterable[Record]) -> None:
    """Record the fingerprints of these rows, with all columns, in an audited action."""
    for row in rows:
        audited_action.proves(stored_name(table), key_of(table, row), proof_of(row, row.keys()))


def key_of(table: str, row: Record) -> str:
    """Return the key of a row in an audit entry."""
    return "/".join(str(row[name]) for name in KEYS[table])


def proof_of(row: Record, columns: Iterable[str]) -> str:
    """Return the fingerprint of all these columns: an empty column is left out.

    So a column that is added later changes nothing, until something is in it.
    """
    return fingerprint([(n, row[n]) for n in sorted(columns) if row[n] is not None])


def audited_request(by: Actor, resource: str, verb: str, request_id: UUID, **details: Any) -> Any:  # noqa: ANN401 - a context of the audit log
    """Return the audited transaction in which a member acts on a request."""
    return audited(
        by.pool,
        by.vault,
        by.customer_id,
        origin=by.origin,
        action=f"{resource}.{verb}",
        resource=(resource, request_id),
        now=by.wall,
        details=details,
    )
