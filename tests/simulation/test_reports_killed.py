"""Workers die while they make reports and monthly statements: others finish each of them once."""

import asyncio
import os
import time
from random import Random

import pytest
from tests.reports.requests.test_routes import ALL, content, report_request
from tests.simulation.dying_report_makers import dying_report_makers

KILLS = int(os.environ.get("BILLFOLD_REPORT_KILLS", "4"))
SEED = int(os.environ.get("BILLFOLD_KILLS_SEED", "7"))
STEPS = (20, 90)
"""After how many steps workers die: opening the bank and claiming a report takes fewer than the first."""
PATIENCE_SECONDS = 60.0
CUSTOMERS = 3
_STATEMENTS = "SELECT count(*) FROM statement"
_UNFINISHED = """
SELECT (SELECT count(*) FROM report_request WHERE status IN ('PENDING', 'PROCESSING'))
     + (SELECT 1 - count(*) FROM statement_run)
"""
_LEFT_BEHIND = "SELECT count(*) FROM report_format WHERE status = 'PROCESSING' OR attempts > 1"


@pytest.fixture
def makers(bank, bank_dsn):
    started = dying_report_makers(bank_dsn, bank.settings.files_dir)
    yield started
    started.close()


async def test_reports_and_statements_are_made_once_when_workers_are_killed(partner_desk, makers):
    desk, random = partner_desk, Random(SEED)
    pockets = [await desk.funded(100_000_00) for _ in range(CUSTOMERS)]
    await desk.until("2025-07-02T10:00-04:00")
    makers.start()
    await until(desk, f"SELECT ({_STATEMENTS}) > 0")
    makers.kill()
    await asyncio.to_thread(makers.wait)
    assert await desk.bank.pool.fetchval(_STATEMENTS) < 2 * CUSTOMERS, "the worker died after the last statement"
    days = {"pocket_ids": [pockets[0].id], "date": "2025-06-30"}
    trades = {"pocket_ids": [pockets[0].id], "date_from": "2025-06-01", "date_to": "2025-06-30"}
    shown = [
        await desk.post(ALL, report_request(type_, formats, **parameters), status=202)
        for type_, formats, parameters in (
            ("BANK_STATEMENT_REPORT", ["CAMT053", "OFX"], days),
            ("POSITION_SUMMARY_REPORT", ["PDF"], days),
            ("TRADE_REPORT", ["CSV"], trades),
        )
    ]
    for _ in range(KILLS):
        makers.start(random.randint(*STEPS))
        await asyncio.to_thread(makers.wait)
    assert await desk.bank.pool.fetchval(_LEFT_BEHIND) > 0, "no worker died while it wrote a report"
    makers.start()
    await until(desk, f"SELECT ({_UNFINISHED}) = 0")
    await must_be_made_once(desk, pockets, shown)


async def until(desk, reached):
    """Wait until a query returns true."""
    late = time.monotonic() + PATIENCE_SECONDS
    while not await desk.bank.pool.fetchval(reached):
        assert time.monotonic() < late, reached
        await asyncio.sleep(0.01)


async def must_be_made_once(desk, pockets, shown):
    """Each report can be downloaded and was announced once; each Pocket has its two statements."""
    for each in shown:
        done = await desk.get(f"{ALL}{each['id']}/")
        assert (done["status"], done["progress"]) == ("COMPLETED", 100)
        for output_format in done["output_formats"]:
            assert await content(desk, f"/api/v1/reports/{done['report_id']}", output_format)
    events = [each["event"] for each in await desk.pages("/api/v1/events/", limit=100)]
    ready = [each["payload"]["report_request_id"] for each in events if each["event_type"] == "reports.completed"]
    assert sorted(ready) == sorted(each["id"] for each in shown)
    for pocket in pockets:
        listed = (await desk.get(f"/api/v1/customers/{pocket.customer}/statements/"))["items"]
        assert sorted((each["key"], each["type"]) for each in listed) == [("2025-06", "BANK"), ("2025-06", "BROKERAGE")]
        for each in listed:
            assert (await desk.client.http.get(each["pdf_download_url"])).content.startswith(b"%PDF-")
