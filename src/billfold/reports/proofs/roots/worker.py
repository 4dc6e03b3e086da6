"""The root of a day is made once the bank has closed it, or later; a job that is run twice makes it once."""

import asyncio
import secrets
from collections.abc import Iterator
from datetime import date, timedelta

import structlog

from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import ScheduledJob
from billfold.platform.database.background_work import claimed
from billfold.platform.ids import command_id
from billfold.reports.proofs.document_keys import get_document_key
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.build import make_root
from billfold.reports.proofs.roots.rules import AnnounceRoot
from billfold.reports.proofs.roots.types import MakingKeys, StoredRoot, Unbalanced

log = structlog.get_logger(__name__)

_SECRET_BYTES = 32
_WAIT = timedelta(minutes=10)
_CLAIM = "daily roots"
"""What whoever publishes roots has claimed. No lock of a session: a pooler may give each statement another one."""
_OPEN_DAY = "SELECT business_date FROM ledger_head WHERE customer_id = $1"
_PARTNERS = "SELECT partner_id, own_customer_id FROM partner"


class DailyRootMaker:
    """Publishes roots in one process: one at a time, so that days closed together do not each hold a connection."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._announced = 0

    async def run(self, bank: Bank, job: ScheduledJob) -> None:
        """Publish the roots of the days that the bank has closed, unless they are. What does not balance is refused."""
        async with self._lock:
            try:
                await publish_root(bank)
            except Unbalanced as unbalanced:
                log.error("daily_root_refused", reason=str(unbalanced))  # noqa: TRY400 - the sentence says it
            # One that another worker made, and did not live to announce, is announced too.
            for root in await store.list_roots_since(bank.pool, job.at):
                if root.number > self._announced:
                    await _announce(bank, root)
                    self._announced = root.number


async def publish_root(bank: Bank) -> StoredRoot:
    """Return the root of the last closed day, made now if there is none, after those of the days before it.

    Raises Unbalanced, and records it: a day that does not balance has no root once a later one has.
    """
    open_day: date = await bank.pool.fetchval(_OPEN_DAY, bank_customer_id(bank.seed))
    refused: Unbalanced | None = None
    async with claimed(bank.pool, _CLAIM, wait=_WAIT):
        last = await store.find_root(bank.pool)
        for day in _days_without(bank, last, open_day):
            now = await bank.now()
            keys = MakingKeys(
                await get_document_key(bank.pool, bank.vault, now),
                await bank.ports[DataKeys].of(bank.pool, bank_customer_id(bank.seed)),
                secrets.token_bytes(_SECRET_BYTES),
            )
            async with bank.pool.acquire() as conn:
                try:
                    last, refused = await make_root(conn, bank, day, now=now, keys=keys), None
                except Unbalanced as unbalanced:
                    refused = unbalanced
                    await store.record_refusal(conn, day, str(unbalanced), now)
    if refused is not None:
        raise refused
    assert last is not None
    return last


def _days_without(bank: Bank, last: StoredRoot | None, open_day: date) -> Iterator[date]:
    """Give the closed days that follow the last root, the oldest first; without any root the last closed day."""
    calendars = bank.calendars
    closed = calendars.settlement_on_or_before(open_day - open_day.resolution)
    day = closed if last is None else calendars.next_settlement_day(last.day)
    while day <= closed:
        yield day
        day = calendars.next_settlement_day(day)


async def _announce(bank: Bank, root: StoredRoot) -> None:
    """Raise the event of every partner."""
    for row in await bank.pool.fetch(_PARTNERS):
        key = command_id(f"daily-root:{root.day}", row["partner_id"])
        await bank.engine.submit(
            AnnounceRoot(caller="daily-root", key=key, customers=(row["own_customer_id"],), day=root.day, root=root.jws)
        )
