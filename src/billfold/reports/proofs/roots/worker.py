"""The root of a day is made once the bank has closed it; a job that is run twice makes it once."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from datetime import date
from typing import TYPE_CHECKING

import asyncpg
import structlog

from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.platform.ids import command_id
from billfold.reports.proofs.document_keys import get_document_key
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.build import BuiltTrees, build
from billfold.reports.proofs.roots.commands import AnnounceRoot
from billfold.reports.proofs.roots.store import secret_place
from billfold.reports.proofs.roots.types import DailyRoot, StoredRoot, Unbalanced
from billfold.reports.proofs.signatures import ROOT, sign

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.data_keys.types import DataKey
    from billfold.ledger.bank import Bank
    from billfold.ledger.jobs.types import ScheduledJob
    from billfold.platform.database.pool import Connection
    from billfold.reports.proofs.types import DocumentKey

log = structlog.get_logger(__name__)

_SECRET_BYTES = 32
_OPEN_DAY = "SELECT business_date FROM ledger_head WHERE customer_id = $1"
_PARTNERS = "SELECT partner_id, own_customer_id FROM partner"


async def make_daily_root(bank: Bank, job: ScheduledJob) -> None:
    """Publish the root of the last day that the bank has closed, unless it is. What does not balance is refused."""
    del job
    try:
        root = await publish_root(bank)
    except Unbalanced as unbalanced:
        log.error("daily_root_refused", reason=str(unbalanced))  # noqa: TRY400 - the sentence says it
        return
    await _announce(bank, root)


async def publish_root(bank: Bank) -> StoredRoot:
    """Return the root of the last closed day, made now if there is none. Raises Unbalanced, and records it."""
    open_day: date = await bank.pool.fetchval(_OPEN_DAY, bank_customer_id(bank.seed))
    day, now = bank.calendars.settlement_on_or_before(open_day - date.resolution), await bank.now()
    key, data_key = (
        await get_document_key(bank.pool, bank.vault, now),
        await bank.data_keys.of(bank.pool, bank_customer_id(bank.seed)),
    )
    if (known := await store.find_root(bank.pool, day)) is not None:
        return known
    try:
        async with bank.pool.acquire() as conn:
            return await _make(conn, bank, day, now=now, keys=(key, data_key))
    except Unbalanced as unbalanced:
        await store.record_refusal(bank.pool, day, str(unbalanced), now)
        raise
    except asyncpg.UniqueViolationError:  # another worker was quicker
        return await store.get_root(bank.pool, day)


async def _make(
    conn: Connection, bank: Bank, day: date, *, now: datetime, keys: tuple[DocumentKey, DataKey]
) -> StoredRoot:
    secret = secrets.token_bytes(_SECRET_BYTES)
    async with conn.transaction(isolation="repeatable_read"):
        last = await store.find_root(conn)
        states, available = await store.read_states(conn), await store.read_bills(conn, day)
        trees = await asyncio.to_thread(build, states, available, secret)
        payload = DailyRoot(
            bank=bank.settings.bank_name,
            number=1 if last is None else last.number + 1,
            day=day,
            taken_at=now,
            previous="" if last is None else hashlib.sha256(last.jws.encode()).hexdigest(),
            customers=trees.customers,
            bills=trees.bills,
        )
        sealed = keys[1].seal(secret, secret_place(day))
        root = StoredRoot(payload.number, day, sign(payload, keys[0], ROOT), sealed)
        await store.insert_root(conn, root, now)
        await _keep_pages(conn, root.number, trees)
    return root


async def _keep_pages(conn: Connection, number: int, trees: BuiltTrees) -> None:
    await store.insert_pages(conn, number, store.CUSTOMERS, pages=trees.customer_pages, leaves=trees.leaves)
    for cusip, pages in trees.bill_pages.items():
        await store.insert_pages(conn, number, cusip, pages=pages)


async def _announce(bank: Bank, root: StoredRoot) -> None:
    """Raise the event of every partner."""
    for row in await bank.pool.fetch(_PARTNERS):
        key = command_id(f"daily-root:{root.day}", row["partner_id"])
        await bank.engine.submit(
            AnnounceRoot(caller="daily-root", key=key, customers=(row["own_customer_id"],), day=root.day, root=root.jws)
        )
