"""Workers that make reports and monthly statements, and kill themselves after a number of steps."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from tests.simulation.dying_workers import die_after, warm_up
from tests.simulation.forks import Workers, fork_workers
from tests.support.whole_bank import open_bank

from billfold.platform.telemetry.logs import configure_logging
from billfold.reports.requests import worker
from billfold.reports.requests.worker import make_reports
from billfold.reports.statements.worker import StatementMaker


def dying_report_makers(dsn, files_dir):
    """Return the workers of a bank whose files are in this folder."""
    return Workers(__name__, dsn, files_dir)


async def work(steps):
    """Make reports and statements like `billfold worker`, without pauses, until the process dies."""
    dsn, files_dir = sys.argv[1:]
    bank = await open_bank(dsn, files_dir=Path(files_dir))
    worker.CLAIM_LASTS = timedelta(seconds=1)  # type: ignore[misc] # what a dead worker held is free soon
    make_statements = StatementMaker()
    if steps:
        die_after(steps)
    await asyncio.gather(again_and_again(make_reports, bank), again_and_again(make_statements, bank))


async def again_and_again(task, bank):
    while True:
        if not await task(bank):
            await asyncio.sleep(0.005)


if __name__ == "__main__":
    configure_logging("WARNING")
    asyncio.run(warm_up(sys.argv[1]))
    fork_workers(work)
