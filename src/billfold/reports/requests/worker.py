"""Makes reports: claims one format at a time, writes it, and finishes it once, even if several workers tried.

Any number of workers may run. The claim of a crashed worker expires; a report that cannot be made fails
without affecting others. Temporary errors, such as a full disk, are retried a few times.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import BinaryIO, Final

import asyncpg
import structlog

from billfold.events.notifications.notify import notify
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import run_job
from billfold.ledger.types import ScheduledJob
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.reports import downloads, rules
from billfold.reports.downloads import KeptFile
from billfold.reports.entries.reader import read_current
from billfold.reports.entries.store import position_of
from billfold.reports.proofs import signatures, signed_files
from billfold.reports.requests import store, types
from billfold.reports.requests.renderers import RENDERERS, file_name_of
from billfold.reports.requests.store import Claim, ClaimLost

log = structlog.get_logger(__name__)

CLAIM_LASTS: Final = timedelta(seconds=15)
ATTEMPTS_MAX: Final = 6
"""Number of attempts at a format before it fails."""
PARALLEL: Final = 3
"""Number of reports one process makes at once: a long one of one tenant delays no other tenant."""
_RENEWED_PER_CLAIM: Final = 5
_PAUSE: Final = timedelta(seconds=2)
"""Pause after the first attempt; it doubles each time."""


async def make_reports(bank: Bank) -> int:
    """Make the next report in turn; return how many were made."""
    wall = wall_now()
    claim = await store.claim_format(bank.pool, ids.new(), wall=wall, until=wall + CLAIM_LASTS)
    if claim is None:
        return 0
    try:
        await _make_format(bank, claim)
    except ClaimLost:
        log.warning("report_claim_lost", report_id=str(claim.report_id), output_format=claim.output_format)
    return 1


async def purge_reports(bank: Bank) -> int:
    """Delete expired reports; return how many. Their files are deleted with other unreferenced files."""
    return await store.purge_expired(bank.pool, await bank.now())


async def run_finished_job(bank: Bank, job: ScheduledJob) -> None:
    """Raise the event of a batch of formats."""
    batch = await store.find_batch(bank.pool, job.object_id)
    if batch is None or batch.is_open:
        return
    await bank.engine.submit(
        rules.FinishReport(
            caller="report",
            key=job.object_id,
            customers=(batch.customer_id,),
            report_request_id=batch.report_request_id,
            report_id=None if batch.has_failed else batch.report_id,
        )
    )


async def _make_format(bank: Bank, claim: Claim) -> None:
    now = await bank.now()
    await store.begin(bank.pool, claim, now)
    if claim.attempts > ATTEMPTS_MAX:
        await _finish_format(bank, claim, None, types.FailureReason.INTERRUPTED)
        return
    try:
        kept = await _write_file(bank, claim)
    except Exception as error:  # noqa: BLE001 - one bad request never stops the others
        await _fail_format(bank, claim, error)
        return
    try:
        await _finish_format(bank, claim, kept, None)
    except ClaimLost:
        await downloads.discard(bank, kept.parts)
        raise


async def _write_file(bank: Bank, claim: Claim) -> KeptFile:
    """Write a format to a temporary file, and store it in parts."""
    request = await store.get_claimed(bank.pool, claim.report_id)
    pocket_ids = await types.pockets_of(bank, request)
    position = await position_of(bank.pool, request.customer_id, await types.last_entry_shown(bank, request))
    async with _hold_claim(bank, claim) as report_progress:
        source = types.ReportSource(bank, request, pocket_ids, position, report_progress, figures=[])
        return await read_current(
            bank, lambda reading: _write_source(bank, claim, source._replace(bank=reading, figures=[]))
        )


async def _write_source(bank: Bank, claim: Claim, source: types.ReportSource) -> KeptFile:
    """Write a report that is read through the bank of the source; `bank` signs and stores it."""
    request = source.request
    with tempfile.TemporaryFile() as output:
        await RENDERERS[request.type, claim.output_format](source, output)
        return await downloads.keep_file(
            bank,
            (claim.customer_id, ids.new()),
            output,
            proof=await sign_report(source._replace(bank=bank), claim.output_format, output),
            name=file_name_of(request, claim.output_format),
            media_type=types.FORMATS[claim.output_format].media_type,
            at=request.created_at,
        )


async def _fail_format(bank: Bank, claim: Claim, error: Exception) -> None:
    """Schedule another attempt after a temporary error, or fail the format."""
    facts = {"report_id": str(claim.report_id), "output_format": claim.output_format, "attempt": claim.attempts}
    # A deadlock or a serialization failure (class 40) says nothing about the data.
    passes = is_shortage(error) or isinstance(error, asyncpg.TransactionRollbackError)
    if passes and claim.attempts < ATTEMPTS_MAX:
        log.warning("report_delayed", error=error_summary(error), **facts)
        await store.retry_later(bank.pool, claim, wall_now() + _PAUSE * 2 ** (claim.attempts - 1))
        return
    log.error("report_failed", exc_info=None if passes else error, error=error_summary(error), **facts)
    reason = types.FailureReason.STORAGE_UNAVAILABLE if passes else types.FailureReason.RENDERING_FAILED
    await _finish_format(bank, claim, None, reason)


async def _finish_format(bank: Bank, claim: Claim, kept: KeptFile | None, failure: types.FailureReason | None) -> None:
    """Finish a format, and with the last of a batch notify the requester. Raises ClaimLost."""
    now = await bank.now()
    job = ScheduledJob(types.FINISHED_JOB, claim.batch_id, claim.customer_id, now)
    async with bank.pool.acquire() as conn, conn.transaction():
        if kept is not None:
            await downloads.add_file(conn, kept)
        file_id = None if kept is None else kept.file.file_id
        outcome = await store.finish(conn, claim, file_id=file_id, failure=failure, now=now)
        if outcome is not None:
            await scheduler.schedule(conn, [job])
        if outcome == types.ReportRequestStatus.COMPLETED:
            await _notify(conn, bank, await store.get_claimed(conn, claim.report_id))
    if outcome is not None:
        await run_job(bank, job)


async def _notify(conn: Connection, bank: Bank, request: types.ReportRequest) -> None:
    await notify(
        conn,
        bank.vault,
        request.customer_id,
        kind="REPORT_READY",
        title="A report is ready",
        description=f"The {request.type.replace('_', ' ').lower()} can be downloaded.",
        metadata={"report_request_id": request.report_request_id, "report_id": request.report_id},
        now=wall_now(),
    )


@asynccontextmanager
async def _hold_claim(bank: Bank, claim: Claim) -> AsyncIterator[Callable[[int], None]]:
    """Hold a claim, and yield a function that takes the progress in percent."""
    done = 0

    def report_progress(percent: int) -> None:
        nonlocal done
        done = max(0, min(percent, 99))

    async def renew() -> None:
        while True:
            await asyncio.sleep(CLAIM_LASTS.total_seconds() / _RENEWED_PER_CLAIM)
            with suppress(Exception):  # the work itself runs into the error, too
                await store.renew(bank.pool, claim, until=wall_now() + CLAIM_LASTS, progress=done)

    renewing = asyncio.create_task(renew())
    try:
        yield report_progress
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing


_HOLD_THEIR_PROOF: Final = frozenset(
    {types.ReportFormat.CAMT052, types.ReportFormat.CAMT053, types.ReportFormat.CAMT054}
)


async def sign_report(source: types.ReportSource, output_format: types.ReportFormat, output: BinaryIO) -> str | None:
    """Sign a report as it was written; return its proof file, or None if the proof is in it."""
    if output_format == types.ReportFormat.PDF:
        return None
    bank, manifest = source.bank, await _manifest(source, output_format)
    key = await signatures.get_document_key(bank.pool, bank.vault, manifest.at)
    if output_format in _HOLD_THEIR_PROOF:
        await asyncio.to_thread(signed_files.append_to, output, manifest, key)
        return None
    return (await asyncio.to_thread(signed_files.side_file, output, manifest, key)).decode()


async def _manifest(source: types.ReportSource, output_format: types.ReportFormat) -> signatures.Manifest:
    bank, request = source.bank, source.request
    entity = await types.entity_of(bank, request)
    parameters = request.parameters
    days = [each for each in (parameters.date, parameters.date_from, parameters.date_to) if each is not None]
    return signatures.Manifest(
        bank=bank.settings.bank_name,
        document=f"{request.type} {' to '.join(map(str, days))}, {output_format}",
        customer_id=request.customer_id,
        customer=entity.name,
        pockets=tuple(signatures.NamedPocket(each, entity.pockets[each]) for each in source.pocket_ids),
        at=request.shown_at,
        position=source.position,
        figures=tuple(source.figures),
    )
