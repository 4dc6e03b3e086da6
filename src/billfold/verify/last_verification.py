"""What the last verification found, as the bank's own audit log keeps it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from billfold.audit.record import record
from billfold.audit.types import (NewEntry)
from billfold.ledger.types import (Origin)
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.platform.checks import Report
    from billfold.platform.crypto import Vault
    from billfold.platform.database.connection import (Connection, Pool)

_IS_READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
_MAY_RECORD = "SELECT has_table_privilege('audit_entry', 'INSERT')"
_BANK = "SELECT bank_customer_id FROM bank"
_LAST = """
SELECT recorded_at, details::text FROM audit_entry WHERE action = 'ledger.verified' ORDER BY recorded_at DESC LIMIT 1
"""


class Verification(NamedTuple):
    """When the bank was verified, how many rows, and the first bad one; "" when all were as written."""

    at: datetime
    rows: int
    finding: str


async def record_verification(conn: Connection, vault: Vault, report: Report, *, operator: str | None) -> bool:
    """Keep the result in the bank's own audit log, unless the database is a copy that cannot be written.

    False if whoever is connected may only read.
    """
    customer_id = await conn.fetchval(_BANK)
    if customer_id is None or await conn.fetchval(_IS_READ_ONLY):
        return True
    if not await conn.fetchval(_MAY_RECORD):
        return False
    entry = NewEntry(
        customer_id=customer_id,
        origin=Origin(kind="OPERATOR", name=operator) if operator else Origin.operator(),
        action="ledger.verified",
        resource_type="ledger",
        outcome="SUCCESS" if report.first is None else "FAILURE",
        details={"rows": sum(report.checked.values()), "finding": str(report.first or "")},
    )
    async with conn.transaction():
        await record(conn, vault, entry, now=wall_now())
    return True


async def find_last_verification(conn: Connection | Pool) -> Verification | None:
    """Return the last result, or None before the first."""
    row = await conn.fetchrow(_LAST)
    if row is None:
        return None
    details = msgspec.json.decode(row["details"])
    return Verification(row["recorded_at"], details["rows"], details["finding"])
