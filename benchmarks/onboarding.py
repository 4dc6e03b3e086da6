"""`billfold bench onboarding`: persons become customers over HTTPS.

Each application is created and submitted by a signed request of its own; a worker next to the server checks the
person, screens the name and creates the customer. The baseline is bare transfers.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import msgspec

from benchmarks.bank_workload import BankWorkload
from benchmarks.baseline import BARE
from benchmarks.load_generator import Call, Credentials, LoadTask
from benchmarks.measurements import Result, Timing, figure, seconds_of
from benchmarks.server import Server
from benchmarks.session import Session
from benchmarks.worker_processes import Worker, WorkloadError
from billfold.ledger.scheduler import run_scheduled_jobs
from billfold.onboarding.agreements.texts import shipped_texts
from billfold.platform import ids
from billfold.platform.clock import monotonic

CONNECTIONS = 64
_PATH = "/api/v1/applications/"
_APPROVED = "SELECT count(*) FROM application WHERE status = 'APPROVED'"


class Onboarding(BankWorkload):
    """The worker of the bank."""

    async def approve(self, expected: int) -> Timing:
        """Do what is due until so many persons are customers."""
        started = monotonic()
        while await self.fetch(_APPROVED) < expected:
            done = await run_scheduled_jobs(self._bank, await self._bank.now())
            if done.failed:
                raise WorkloadError(str(done.failed))
            await asyncio.sleep(0.01)
        return Timing(expected, started, monotonic())


class Applicants:
    """Persons, each another one, and the partner that lets them apply."""

    def __init__(self, bank: Worker, server: Server, loader: Worker, credentials: Credentials) -> None:
        self._bank, self._server, self._loader, self._credentials = bank, server, loader, credentials
        self._people = 0

    def per_second(self, count: int) -> float:
        """Return how many became customers per second, from the first request to the last approval."""
        people = {ids.new(): nth for nth in range(self._people, self._people + count)}
        self._people += count
        bodies = [msgspec.json.encode(person(nth, each)).decode() for each, nth in people.items()]
        begun = self._send([Call("POST", _PATH, body=each) for each in bodies])
        self._bank.start("approve", self._people)
        submitted = self._send([Call("POST", f"{_PATH}{each}/apply/") for each in people])
        approved: Timing = self._bank.finish()
        return count / (seconds_of([begun]) + seconds_of([submitted, approved]))

    def _send(self, calls: list[Call]) -> Timing:
        task = LoadTask(calls=calls, port=self._server.port, credentials=self._credentials, connections=CONNECTIONS)
        timing: Timing = self._loader.call("send", task).timing
        return timing


def bench_onboarding(session: Session) -> Result:
    """Run the comparison and return its figures."""
    sizes, bare, location = session.sizes, session.baseline(), session.database.location("onboarding")
    bank = session.bank(location, Onboarding)
    credentials = bank.call("partner")
    server = session.server(location)
    loader = session.load_generator(server)
    applicants = Applicants(bank, server, loader, credentials)
    transfers, applied = list[float](), list[float]()
    for number in range(1, sizes.runs + 1):
        session.log(f"run {number}: {BARE}")
        transfers.append(bare.call("per_second", sizes.bare_transfers))
        session.log(f"run {number}: {sizes.applications:,} applications")
        applied.append(applicants.per_second(sizes.applications))
    base = figure(BARE, "per second", transfers)
    return Result(
        name="onboarding",
        setting={"applications per run": sizes.applications, "connections": CONNECTIONS},
        figures=[base, figure("created to approved", "per second", applied, against=base)],
        peak_memory_mib=session.peaks(server=server.peak_of_worker(), worker=bank.peak_memory_mib()),
    )


def person(nth: int, application_id: UUID | None) -> dict[str, Any]:
    """Return a person who differs from every other in name and number."""
    return {
        **({} if application_id is None else {"id": str(application_id)}),
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


def _letters(nth: int) -> str:
    return "Hill" + "".join(chr(ord("a") + int(digit)) for digit in str(nth))
