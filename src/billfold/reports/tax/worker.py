"""Makes the tax forms of years that are over, customer by customer, one process at a time."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.failed_work import forget, list_failed, put_aside
from billfold.platform.database.shortage import error_summary
from billfold.reports.statements.worker import claimed
from billfold.reports.tax import store
from billfold.reports.tax.making import make_forms
from billfold.reports.tax.rules import years_due

log = structlog.get_logger(__name__)

_FAILED_FORMS: Final = "tax forms"
PAUSE_SECONDS: Final = 5.0
PAUSE_AFTER_FAILURE_SECONDS: Final = 600.0


class TaxFormMaker:
    """A task of the worker. It looks for a year that is over now and then."""

    def __init__(self) -> None:
        self._next_at = 0.0
        self._first_year: int | None = None

    async def __call__(self, bank: Bank) -> int:
        """Make what is due; return how many forms."""
        if monotonic() < self._next_at:
            return 0
        made, pause = 0, PAUSE_SECONDS
        # That of the first Pocket stays; to look for it takes a scan of all.
        self._first_year = self._first_year or await store.first_year(bank.pool)
        finished = await store.list_finished(bank.pool)
        for year in years_due(self._first_year, finished, await bank.now()):
            async with claimed(bank) as is_ours:
                if not is_ours:
                    break
                forms, failed = await make_year(bank, year)
                made += forms
                if failed:
                    pause = PAUSE_AFTER_FAILURE_SECONDS
        self._next_at = monotonic() + pause
        return made


async def make_year(bank: Bank, year: int) -> tuple[int, int]:
    """Make the forms that a calendar year lacks; return how many, and for how many customers that failed.

    The year is finished when none failed: a customer whose forms fail holds up no other.
    """
    made, failed = 0, dict[UUID, Exception]()
    async for customer_id in store.stream_customers(bank.pool):
        try:
            made += await make_forms(bank, customer_id, year)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other customers get theirs
            failed[customer_id] = error
    for customer_id, why in failed.items():
        log.error("tax_forms_failed", customer_id=str(customer_id), year=year, error=error_summary(why))
    await _record_failures(bank, year, failed)
    if not failed:
        await store.finish(bank.pool, year, await bank.now())
    if made or failed:
        log.info("tax_forms_made", year=year, made=made, failed=len(failed))
    return made, len(failed)


async def _record_failures(bank: Bank, year: int, failed: Mapping[UUID, Exception]) -> None:
    """Let the health of the bank show which customers failed, and no longer those that did before."""
    tries = {each.item: each.tries for each in await list_failed(bank.pool) if each.kind == _FAILED_FORMS}
    items = {f"{year} {customer_id}": error for customer_id, error in failed.items()}
    done = [item for item in tries if item.startswith(f"{year} ") and item not in items]
    await forget(bank.pool, _FAILED_FORMS, done)
    for item, error in items.items():
        tried = tries.get(item, 0) + 1
        await put_aside(bank.pool, _FAILED_FORMS, item, error, now=wall_now(), tries=tried)
