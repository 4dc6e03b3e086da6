"""Reports are made once, in spite of failing workers, renderers and disks, and without waiting for other reports."""

import asyncio
import errno

import asyncpg
import pytest
from tests.reports.requests.test_routes import ALL, TRADES, content, report_request

from billfold.reports.requests import renderers, worker
from billfold.reports.requests.types import ReportFormat, ReportType
from billfold.reports.requests.worker import ATTEMPTS_MAX, make_reports

ABANDONED = "UPDATE report_format SET claimed_until = now() - interval '1 s' WHERE owner_id IS NOT NULL"
DUE = "UPDATE report_format SET due_at = now() - interval '1 s'"


@pytest.fixture
def rendering(monkeypatch):
    """Replace the renderer of the CSV of trade reports."""

    def replace(renderer):
        key = ReportType.TRADE_REPORT, ReportFormat.CSV
        monkeypatch.setattr(worker, "RENDERERS", {**renderers.RENDERERS, key: renderer})

    return replace


def parts_of(bank):
    return [path for path in bank.settings.files_dir.rglob("*") if path.is_file()]


async def kinds_of(desk):
    events = (await desk.get("/api/v1/events/"))["items"]
    return [each["event"]["event_type"] for each in events if each["event"]["event_type"].startswith("reports.")]


async def test_a_report_of_a_killed_worker_is_completed_once_by_a_second_worker(customer_desk, rendering):
    bank, begun = customer_desk.bank, asyncio.Event()
    real = renderers.RENDERERS[ReportType.TRADE_REPORT, ReportFormat.CSV]

    async def hangs(source, output):
        await real(source, output)
        source.report_progress(40)
        begun.set()
        await asyncio.Event().wait()

    rendering(hangs)
    shown = await customer_desk.post(ALL, report_request(**TRADES), status=202)
    first = asyncio.create_task(make_reports(bank))
    await begun.wait()
    assert (await customer_desk.get(f"{ALL}{shown['id']}/"))["status"] == "PROCESSING"
    assert await make_reports(bank) == 0
    first.cancel()
    await asyncio.wait([first])
    assert await make_reports(bank) == 0
    await bank.pool.execute(ABANDONED)

    # A third one has the claim of the second by the time that this is done, and is the one that finishes.
    async def overtaken(source, output):
        await real(source, output)
        rendering(real)
        await bank.pool.execute(ABANDONED)
        assert await make_reports(bank) == 1

    rendering(overtaken)
    assert await make_reports(bank) == 1
    done = await customer_desk.get(f"{ALL}{shown['id']}/")
    assert done["status"] == "COMPLETED"
    assert (await content(customer_desk, f"/api/v1/report/{done['report_id']}")).startswith("cusip,")
    assert await kinds_of(customer_desk) == ["reports.completed"]
    assert len(parts_of(bank)) == 1
    assert [await make_reports(bank) for _ in range(2)] == [0, 0]


async def test_a_failed_renderer_fails_only_its_own_report(customer_desk, rendering):
    async def fails(source, output):
        output.write(b"half of")
        raise ZeroDivisionError

    rendering(fails)
    broken = await customer_desk.post(ALL, report_request(formats=["CSV", "TMS_CSV"], **TRADES), status=202)
    other = await customer_desk.post(ALL, report_request(formats=["TMS_CSV"], **TRADES), status=202)
    assert [await make_reports(customer_desk.bank) for _ in range(4)] == [1, 1, 1, 0]
    shown = await customer_desk.get(f"{ALL}{broken['id']}/")
    assert (shown["status"], shown["failure_reason"], shown["report_id"]) == ("FAILED", "RENDERING_FAILED", None)
    assert (await customer_desk.get(f"{ALL}{other['id']}/"))["status"] == "COMPLETED"
    assert sorted(await kinds_of(customer_desk)) == ["reports.completed", "reports.failed"]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), asyncpg.SerializationError("could not serialize")]
)
async def test_a_report_that_meets_a_temporary_error_is_retried_and_then_fails(customer_desk, rendering, error):
    bank, attempts = customer_desk.bank, 0

    async def full(source, output):
        nonlocal attempts
        attempts += 1
        raise error

    rendering(full)
    shown = await customer_desk.post(ALL, report_request(**TRADES), status=202)
    assert [await make_reports(bank) for _ in range(2)] == [1, 0]
    assert (await customer_desk.get(f"{ALL}{shown['id']}/"))["status"] == "PROCESSING"
    for _ in range(ATTEMPTS_MAX):
        await bank.pool.execute(DUE)
        await make_reports(bank)
    done = await customer_desk.get(f"{ALL}{shown['id']}/")
    assert (done["status"], done["failure_reason"], attempts) == ("FAILED", "STORAGE_UNAVAILABLE", ATTEMPTS_MAX)

    rendering(renderers.RENDERERS[ReportType.TRADE_REPORT, ReportFormat.CSV])
    shown = await customer_desk.post(ALL, report_request(**TRADES), status=202)
    await bank.pool.execute("UPDATE report_format SET attempts = $1 WHERE status = 'PENDING'", ATTEMPTS_MAX)
    assert await make_reports(bank) == 1
    assert (await customer_desk.get(f"{ALL}{shown['id']}/"))["failure_reason"] == "INTERRUPTED"


async def test_pending_reports_are_limited_per_customer_and_processed_fairly(customer_world, customer_desk):
    bank, own = customer_desk.bank, customer_world.partner.own_customer_id
    for _ in range(50):
        await customer_desk.post(ALL, report_request(formats=["CSV", "TMS_CSV"], **TRADES), status=202)
    refused = await customer_desk.ask("POST", ALL, report_request(**TRADES), status=429)
    assert (refused.json()["code"], refused.headers["retry-after"]) == ("too-many-reports", "10")
    late = await customer_world.post(ALL, report_request(customer_id=str(own), **TRADES), status=202)
    await make_reports(bank)
    await make_reports(bank)
    assert (await customer_world.get(f"{ALL}{late['id']}/"))["status"] == "COMPLETED"
    await customer_desk.post(ALL, report_request(**TRADES), status=202)
