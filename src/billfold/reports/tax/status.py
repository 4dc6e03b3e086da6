"""A customer's tax status is set by an operator, from what the customer certified (Form W-9) or the IRS notified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.audit.record import audited
from billfold.ledger.types import (Origin)
from billfold.platform.clock import wall_now
from billfold.platform.crypto import fingerprint
from billfold.reports.tax import store

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.reports.tax.types import TaxStatus


async def set_tax_status(bank: Bank, status: TaxStatus) -> None:
    """Store it as the next version, in the audit log with its fingerprint."""
    async with audited(
        bank.pool,
        bank.vault,
        status.customer_id,
        Origin.operator(),
        "tax_status.set",
        resource=("tax_status", None),
        now=wall_now(),
    ) as action:
        row = await store.add_tax_status(action.conn, status, await bank.now(action.conn))
        columns = [(name, row[name]) for name in sorted(row.keys()) if row[name] is not None]
        action.resource_id = str(row["version"])
        action.proves("tax_status", row["version"], fingerprint(columns))
