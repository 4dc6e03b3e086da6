"""Destroys the data keys of customers and applicants whose retention has ended, on the business clock."""

from __future__ import annotations

from billfold.data_keys.keys import DataKeys
from typing import TYPE_CHECKING

from billfold.audit.record import audited
from billfold.ledger.types import (Origin)
from billfold.data_keys import store
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

_BATCH_SIZE = 500


async def shred_after_retention(bank: Bank) -> int:
    """Destroy the keys of customers who were closed that many years ago, and of applicants who became none.

    Return how many. The money they moved stays in the ledger and is proved as before. The audit log names who was
    forgotten.
    """
    now, count = await bank.now(), 0
    years = bank.settings.retention_years
    while ended := await store.list_retention_ended(bank.pool, now, years, _BATCH_SIZE):
        for subject_id, log_id in ended:
            async with audited(
                bank.pool,
                bank.vault,
                log_id,
                origin=Origin.system(),
                action="data_key.shredded",
                resource=("data_key", subject_id),
                details={"retention_years": years},
                now=wall_now(),
            ) as action:
                if await bank.ports[DataKeys].shred(action.conn, subject_id, now):
                    count += 1
                else:
                    action.skip()  # another worker was quicker
    return count
