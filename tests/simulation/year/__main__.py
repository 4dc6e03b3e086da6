"""Simulate a year and compare its documents with the ledger: `python -m tests.simulation.year --customers 200`."""

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import asyncpg
import structlog
from tests.simulation.year.run import live_and_compare

from billfold.migrations import runner
from billfold.platform.database import embedded

NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
SHOWN = 20


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.year", description=__doc__)
    parser.add_argument("--customers", type=int, default=200)
    parser.add_argument("--year", type=int, default=2024, help="2024 or 2025: both are in the packaged market data")
    parser.add_argument("--seed", type=int, default=20240229, help="the same seed lives the same year")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    began = time.monotonic()

    def progress(what):
        print(f"{time.monotonic() - began:7.1f} s  {what}", flush=True)

    comparison = asyncio.run(_in_a_database(chosen, progress))
    for kind, count in comparison.agreed.items():
        print(f"{count:9,}  {kind} agree")
    for kind, *what in comparison.differences[:SHOWN]:
        print(f"{kind} differ:", *what)
    print(f"{comparison.agreed.total():,} comparisons agree, {len(comparison.differences):,} differ.")
    sys.exit(bool(comparison.differences))


async def _in_a_database(chosen, progress):
    with tempfile.TemporaryDirectory(prefix="billfold-year-") as folder:
        server = embedded.start(Path(folder) / "state", settings={**embedded.DEFAULT_SETTINGS, **NOT_DURABLE})
        try:
            dsn = await server.create_database("year")
            conn = await asyncpg.connect(dsn)
            await runner.up(conn)
            await conn.close()
            return await live_and_compare(
                dsn,
                customers=chosen.customers,
                first_day=date(chosen.year - 1, 12, 27),
                year=chosen.year,
                seed=chosen.seed,
                progress=progress,
            )
        finally:
            embedded.stop(server)


main()
