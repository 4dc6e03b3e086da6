"""`billfold bench onboarding`: persons become customers over HTTPS, and files are uploaded.

Each application is created and submitted by a signed request of its own; a worker beside the server checks the
person, screens the name and creates the customer. Beside it stand bare transfers, and beside uploads a bare file.
"""

from __future__ import annotations

import asyncio
import io
import os
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pikepdf

from benchmarks.baseline import baseline_process
from benchmarks.dataset import Location, OpenBank, create_bank, create_customers, customer_of, vacuum_and_checkpoint
from benchmarks.load_generator import CONNECTIONS, Call, Credentials, LoadTask, load_process
from benchmarks.measurements import Log, Result, Timing, figure, peak_memory_of_server, rate, seconds_of
from benchmarks.partner_setup import create_partner
from benchmarks.server import Server
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.transfers import BARE
from benchmarks.worker_processes import Worker, WorkloadError
from billfold.ledger.jobs.scheduler import run_scheduled_jobs
from billfold.onboarding.agreements.texts import shipped_texts
from billfold.platform import ids
from billfold.platform.clock import monotonic

MIN_UPLOADS_RATIO = 0.02

_PATH = "/api/v1/applications/"
_FILE_BYTES = 10_000_000
_AT_A_TIME = 4
_MEGABYTE = 1_000_000
_APPROVED = "SELECT count(*) FROM application WHERE status = 'APPROVED'"


class Onboarding:
    """The worker of the bank, and the partner's uploads."""

    def __init__(self, opened: OpenBank, state_dir: Path) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._expected = 0
        self._file = _a_pdf()
        self._state_dir = state_dir

    async def prepare(self, task: tuple[str, Any]) -> Any:
        """Make the partner and one customer, say how many will apply, upload files, or write them bare."""
        verb, what = task
        if verb == "partner":
            credentials: Credentials = await create_partner(self._bank)
            await create_customers(self._bank, range(1))
            await vacuum_and_checkpoint(self._bank.pool)
            return credentials
        if verb == "await":
            self._expected = await self._bank.pool.fetchval(_APPROVED) + what
            return None
        if verb == "upload":
            return await self._upload(*what)
        return await asyncio.to_thread(self._write, what)

    async def run(self) -> list[Timing]:
        """Do what is due until everybody who applies is a customer."""
        started = monotonic()
        before = await self._bank.pool.fetchval(_APPROVED)
        while await self._bank.pool.fetchval(_APPROVED) < self._expected:
            done = await run_scheduled_jobs(self._bank, await self._bank.now())
            if done.failed:
                raise WorkloadError(str(done.failed))
            await asyncio.sleep(0.01)
        return [Timing(self._expected - before, started, monotonic())]

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    async def _upload(self, port: int, ca: str, credentials: Credentials, number: int) -> Timing:
        path = f"/api/v1/customers/{customer_of(0)}/documents/OTHER/file/"
        headers = {"authorization": f"Bearer {credentials.token}", "host": credentials.host}
        turn = asyncio.Semaphore(_AT_A_TIME)

        async def send(http: httpx.AsyncClient) -> None:
            key = {"x-service-idempotency": str(ids.new()), "content-type": "application/pdf"}
            async with turn:
                answer = await http.post(path, content=self._file, headers=headers | key)
            if answer.status_code != httpx.codes.CREATED:
                raise WorkloadError(answer.text)

        tls = httpx.create_ssl_context(verify=ca, trust_env=False)
        async with httpx.AsyncClient(base_url=f"https://localhost:{port}", verify=tls, timeout=120) as http:
            started = monotonic()
            await asyncio.gather(*(send(http) for _ in range(number)))
            return Timing(number * len(self._file), started, monotonic())

    def _write(self, number: int) -> Timing:
        """Write files of the same size, each on the disk before the next."""
        path = self._state_dir / "bare-file"
        started = monotonic()
        for _ in range(number):
            with path.open("wb") as file:
                file.write(self._file)
                file.flush()
                os.fsync(file.fileno())
        ended = monotonic()
        path.unlink()
        return Timing(number * len(self._file), started, ended)


async def open_onboarding(location: Location) -> Onboarding:
    """Found the bank of an empty database."""
    return Onboarding(await create_bank(location), location.state_dir)


class Comparison:
    """The server, the worker, the load generator and the baseline."""

    def __init__(self, database: Database, sizes: Sizes, log: Log, stack: ExitStack) -> None:
        self._sizes, self._log = sizes, log
        self._bare = baseline_process(database.empty_database("bare"), sizes.customers)
        stack.callback(self._bare.close)
        location = database.location("onboarding")
        self.worker = Worker(open_onboarding, location=location)
        stack.callback(self.worker.close)
        self._credentials: Credentials = self.worker.prepare(("partner", None))
        self.server = Server(location, workers=1)
        stack.callback(self.server.close)
        self.server.open()
        self._loader = load_process(self.server.ca)
        stack.callback(self._loader.close)
        self._people = 0

    def round(self, number: int) -> tuple[float, float, float, float]:
        """Return bare transfers and applications per second, and MB per second of bare files and of uploads."""
        self._log(f"run {number}: {BARE}")
        bare = rate(self._bare.run(self._sizes.bare_transfers))
        self._log(f"run {number}: {self._sizes.applications:,} applications")
        applied = self._apply(self._sizes.applications)
        self._log(f"run {number}: {self._sizes.files} uploads")
        written: Timing = self.worker.prepare(("write", self._sizes.files))
        place = (self.server.port, str(self.server.ca), self._credentials, self._sizes.files)
        sent: Timing = self.worker.prepare(("upload", place))
        return bare, applied, rate([written]) / _MEGABYTE, rate([sent]) / _MEGABYTE

    def _apply(self, count: int) -> float:
        """Return how many became customers per second, from the first request to the last approval."""
        people = [ids.new() for _ in range(count)]
        first = self._people
        self._people += count
        created = [Call("POST", _PATH, body=_body(first + nth, each)) for nth, each in enumerate(people)]
        begun = self._send(created)
        self.worker.prepare(("await", count))
        self.worker.start()
        submitted = self._send([Call("POST", f"{_PATH}{each}/apply/") for each in people])
        approved: list[Timing] = self.worker.finish()
        return count / (seconds_of([begun]) + seconds_of([submitted, *approved]))

    def _send(self, calls: list[Call]) -> Timing:
        task = LoadTask(
            calls=calls, port=self.server.port, credentials=self._credentials, connections=min(CONNECTIONS, 64)
        )
        timing: Timing = self._loader.run(task).timing
        return timing


def bench_onboarding(database: Database, sizes: Sizes, log: Log) -> Result:
    """Run the comparison and return its figures."""
    with ExitStack() as stack:
        comparison = Comparison(database, sizes, log, stack)
        rounds = [comparison.round(number) for number in range(1, sizes.runs + 1)]
        bare, applied, written, sent = (list(each) for each in zip(*rounds, strict=True))
        transfers, files = figure(BARE, "per second", bare), figure("a bare file", "MB/s", written)
        return Result(
            name="onboarding",
            setting={
                "applications per run": sizes.applications,
                "files per run": f"{sizes.files} of 10 MB, {_AT_A_TIME} at a time",
            },
            figures=[
                transfers,
                figure("created to approved", "per second", applied, against=transfers),
                files,
                figure("uploads", "MB/s", sent, against=files, at_least=MIN_UPLOADS_RATIO),
            ],
            peak_memory_mib={
                "server": comparison.server.peak_of_worker(),
                "worker": comparison.worker.peak_memory_mib(),
                **peak_memory_of_server(database.pid),
            },
        )


def _body(nth: int, application_id: UUID) -> str:
    """Return a person who differs from every other in name and number."""
    fields = {
        "id": str(application_id),
        "name": {"first_name": "Grace", "last_name": _letters(nth)},
        "email": f"grace{nth}@hill.example",
        "phone_number": "+12125550111",
        "date_of_birth": "1990-07-15",
        "address": {
            "street_address": "1 Main Street",
            "city": "New York",
            "state": "NY",
            "postal_code": "10001",
            "country": "US",
        },
        "identification_number": f"219-{1 + nth // 9999 % 99:02d}-{1 + nth % 9999:04d}",
        "identification_type": "SSN",
        "investment_profile": {
            "employment_status": "EMPLOYED",
            "occupation": "Engineer",
            "income": "BETWEEN_100K_AND_250K",
            "net_worth": "BETWEEN_200K_AND_1M",
        },
        "agreement_consent": {"version": shipped_texts().version, "timestamp": "2025-06-02T12:59:00Z"},
    }
    return msgspec.json.encode(fields).decode()


def _letters(nth: int) -> str:
    return "Hill" + "".join(chr(ord("a") + int(digit)) for digit in str(nth))


def _a_pdf() -> bytes:
    """Return a page with a picture of noise, which no program can pack."""
    out = io.BytesIO()
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        noise = Random(7).randbytes(_FILE_BYTES)
        pdf.pages[0].Contents = pikepdf.Stream(pdf, noise, Filter=pikepdf.Name.JPXDecode)
        pdf.save(out, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return out.getvalue()
