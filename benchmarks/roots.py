"""The daily root of `billfold bench documents`: of a million customers whose rows are made for it."""

from __future__ import annotations

import random
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, Final

import asyncpg
import msgspec

from benchmarks.dataset import PARTNER, Location, OpenBank, create_bank, open_bank, vacuum_and_checkpoint
from benchmarks.measurements import Figure, Log, Timing, cpu_seconds, figure, peak_memory_of_server, percentile
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.worker_processes import Worker
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.settlement.worker import close_bank_days
from billfold.platform.clock import monotonic
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.proofs import prove_customer
from billfold.reports.proofs.roots.worker import publish_root

CUSTOMERS: Final = 1_000_000
ROOT_SECONDS_MAX: Final = 60
PROOF_MS_MAX: Final = 10
_PROOFS: Final = 1_000
_BILLS: Final = 26
_DAY: Final = timedelta(days=1)
_MADE: Final = "CREATE TEMP TABLE made (n bigint, customer_id uuid, units bigint, is_late boolean)"
_NUMBERS: Final = """
INSERT INTO made
SELECT n, md5('customer ' || n)::uuid, 1 + n * 7919 % 10000, n % 10 = 0 FROM generate_series(1::bigint, $1) n
"""
_CUSTOMERS: Final = """
INSERT INTO customer (customer_id, partner_id, role, type, name, account_status, profile, opened_at)
SELECT customer_id, $1, 'customer', 'BUSINESS', 'Customer ' || n, 'OPEN', '{}', $2 FROM made
"""
_CHAINS: Final = """
INSERT INTO chain_entry (customer_id, version, entry_no, event_no, row_checksums, hash)
SELECT customer_id, v, v - 2, 1, '\\x00000000', sha256((n || ':' || v)::bytea)
  FROM made, generate_series(3, CASE WHEN is_late THEN 4 ELSE 3 END) v
"""
_HEADS: Final = """
INSERT INTO ledger_head (customer_id, version, entry_no, event_no, account_no, booked_at, business_date, chain)
SELECT customer_id, v, v - 2, 1, 6, CASE WHEN is_late THEN $2::timestamptz ELSE $1 END, $3,
       sha256((n || ':' || v)::bytea)
  FROM made, LATERAL (SELECT CASE WHEN is_late THEN 4 ELSE 3 END AS v) version
"""
_ENTRIES: Final = """
INSERT INTO journal_entry
  (customer_id, entry_no, kind, command_id, booked_at, business_date, effective_date, settles_on, postings)
SELECT customer_id, e, 'PAYMENT', gen_random_uuid(), $1, d, d, d,
       CASE e WHEN 2 THEN ARRAY[(100, 3, 2, 0, 'USD'), (100, 2, 1, 0, 'USD')] ELSE '{}' END::packed_posting[]
  FROM made, generate_series(1, CASE WHEN is_late THEN 2 ELSE 1 END) e, LATERAL (SELECT $2::date + e - 1 AS d) day
"""
_ACCOUNTS: Final = """
INSERT INTO account
  (customer_id, account_no, kind, pocket_id, asset, acquired_on, debits, credits, tax_basis, earnings_basis)
SELECT customer_id, a.no, a.kind, CASE WHEN a.no IN (1, 2, 5) THEN customer_id END,
       CASE WHEN a.no > 4 THEN ($2::text[])[1 + n % cardinality($2)] ELSE 'USD' END,
       CASE a.no WHEN 5 THEN $1::date END,
       CASE WHEN a.no IN (2, 3) THEN units ELSE 0 END,
       CASE a.no WHEN 2 THEN units + n % 10000 + CASE WHEN is_late THEN 100 ELSE 0 END
                 WHEN 5 THEN units ELSE 0 END,
       CASE a.no WHEN 5 THEN 1 ELSE 0 END, CASE a.no WHEN 5 THEN 1 ELSE 0 END
  FROM made,
       (VALUES (1, 'bank'), (2, 'cash'), (3, 'rail:wire'), (4, 'street'), (5, 'lot'), (6, 'street')) a (no, kind)
"""
_CUSTODIAN: Final = """
INSERT INTO account (customer_id, account_no, kind, asset, debits)
SELECT $1, 100 + row_number() OVER (), 'custodian', asset, sum(credits) + 1000
  FROM account WHERE kind = 'lot' GROUP BY asset
"""
_SOME: Final = "SELECT customer_id FROM customer WHERE role = 'customer' ORDER BY customer_id"


class RootWorkload:
    """Makes the rows of customers, publishes the root of their day, or proves their balances."""

    def __init__(self, opened: OpenBank, location: Location) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._location = location
        self._verb = ""

    async def prepare(self, task: tuple[str, Any]) -> Any:
        """Make the rows of so many customers, or take what `run` is to do."""
        self._verb, argument = task
        if self._verb == "fill":
            await self._fill(argument)

    async def run(self) -> Any:
        """Publish the root; or prove customers one after the other, and return the milliseconds of each."""
        if self._verb == "publish":
            started = monotonic()
            await publish_root(self._bank)
            return Timing(1, started, monotonic())
        return await self._prove()

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    async def _prove(self) -> tuple[list[float], list[float]]:
        everyone = [row["customer_id"] for row in await self._bank.pool.fetch(_SOME)]
        proofs, backings = [], []
        for customer_id in random.Random(1).choices(everyone, k=_PROOFS):
            started = monotonic()
            root = await store.get_root(self._bank.pool)
            msgspec.json.encode(await prove_customer(self._bank.pool, self._bank, root, customer_id))
            proofs.append(1000 * (monotonic() - started))
            started = monotonic()
            msgspec.json.encode({"root": (await store.get_root(self._bank.pool)).jws})
            backings.append(1000 * (monotonic() - started))
        return proofs, backings

    async def _fill(self, customers: int) -> None:
        bank, now = self._bank, await self._bank.now()
        day = bank.calendars.business_date(now)
        late = bank.calendars.closes_at(day) + timedelta(hours=1)
        cusips = [bank.market.on_the_run(26, day - timedelta(weeks=week)).cusip for week in range(_BILLS)]
        conn = await asyncpg.connect(self._location.dsn)
        try:
            # The rows are as the engine leaves them; its triggers are for rows that it writes.
            await conn.execute("SET session_replication_role = replica")
            await conn.execute(_MADE)
            for statement, *values in (
                (_NUMBERS, customers),
                (_CUSTOMERS, PARTNER, now),
                (_CHAINS,),
                (_HEADS, now, late, day),
                (_ENTRIES, now, day),
                (_ACCOUNTS, day, cusips),
            ):
                await conn.execute(statement, *values, timeout=None)
            await conn.execute(_CUSTODIAN, bank_customer_id(bank.seed), timeout=None)
        finally:
            await conn.close()
        await close_bank_days(bank, now + _DAY)
        await vacuum_and_checkpoint(bank.pool)


def bench_roots(database: Database, sizes: Sizes, log: Log) -> tuple[list[Figure], dict[str, float]]:
    """Publish the root of a day and prove balances; return how long that takes, and in how much memory."""
    location = database.location("roots")
    with ExitStack() as stack:
        log(f"making the rows of {sizes.root_customers:,} customers")
        filler = Worker(open_empty_roots, location=location)
        stack.callback(filler.close)
        filler.prepare(("fill", sizes.root_customers))
        filler.close()
        publisher = Worker(open_filled_roots, location=location)
        stack.callback(publisher.close)
        log("publishing the daily root")
        before = cpu_seconds(publisher.pid, database.pid)
        timing = publisher.run(("publish", None))
        spent = cpu_seconds(publisher.pid, database.pid) - before
        peaks = {"publisher": publisher.peak_memory_mib(), **peak_memory_of_server(database.pid)}
        log("proving balances")
        proofs, backings = publisher.run(("prove", None))
    name, share = f"daily root of {CUSTOMERS:,} customers", CUSTOMERS / sizes.root_customers
    seconds = (timing.ended - timing.started) * share
    return [
        figure(name, "seconds", [seconds], at_most=ROOT_SECONDS_MAX),
        figure(f"{name}, of both processes", "CPU seconds", [spent * share]),
        figure("one customer's proof", "ms", proofs, at_most=PROOF_MS_MAX),
        figure("one customer's proof, 99th percentile", "ms", [percentile(proofs, 99)], at_most=PROOF_MS_MAX),
        figure("proof of backing", "ms", backings, at_most=PROOF_MS_MAX),
        figure("proof of backing, 99th percentile", "ms", [percentile(backings, 99)], at_most=PROOF_MS_MAX),
    ], {f"root: {each}": mib for each, mib in peaks.items()}


async def open_empty_roots(location: Location) -> RootWorkload:
    """Found the bank of an empty database."""
    return RootWorkload(await create_bank(location), location)


async def open_filled_roots(location: Location) -> RootWorkload:
    """Open the bank that was filled."""
    return RootWorkload(await open_bank(location), location)
