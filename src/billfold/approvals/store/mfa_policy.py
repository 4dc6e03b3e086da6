"""Whether every approval requires a recent sign-in, as a customer agreed with the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.approvals.store.fingerprints import record_checksums

if TYPE_CHECKING:
    from billfold.audit.record import AuditedAction
    from billfold.platform.database.pool import Connection, Pool

_ASKS = "SELECT step_up FROM dual_control WHERE customer_id = $1"
_SET = """
INSERT INTO dual_control (customer_id, step_up) VALUES ($1, $2)
ON CONFLICT (customer_id) DO UPDATE SET step_up = excluded.step_up
RETURNING *
"""


async def requires_step_up(conn: Connection | Pool, customer_id: UUID) -> bool:
    """Tell whether approvals through any application require a recent sign-in; by default not."""
    return await conn.fetchval(_ASKS, customer_id) is True


async def set_step_up(audited_action: AuditedAction, customer_id: UUID, *, asked: bool) -> None:
    """Require a recent sign-in for every approval of a customer, or leave it to applications."""
    record_checksums(audited_action, "dual_control", await audited_action.conn.fetch(_SET, customer_id, asked))
