"""`billfold bench payments`: wires from their approval to the queued message, and ACH at size.

Every customer has one wire approved per pass. It is executed as in a server: the request is
read, bills are sold, the money is the rail's and the message waits, in one commit; then the
scheduled job is completed. At last a window and a file of many ACH entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

import msgspec

from benchmarks.ach_files import AchPayments, ach_figures
from benchmarks.bank_workload import check_sums
from benchmarks.baseline import BARE, CONNECTIONS
from benchmarks.dataset import customer_of, pocket_of
from benchmarks.measurements import Figure, Result, Timing, figure, rate
from benchmarks.session import Session
from benchmarks.worker_processes import Worker, run_together
from billfold.approvals.execute_transfers import execute_request
from billfold.approvals.rules import REQUEST_LIFETIME, hash_of, text_of
from billfold.approvals.transfer_orders import RequestContent, WireOrder
from billfold.approvals.types import EXECUTE_TRANSFER_REQUEST, ApprovalRequirement
from billfold.ledger import scheduler
from billfold.ledger.types import ScheduledJob
from billfold.payments.on_us.schemas import RequestedAmount
from billfold.platform.clock import monotonic
from billfold.platform.ids import command_id

MIN_RATIO = 0.4
_MAX_PAYERS = 2_000
"""Customers who send a wire in a pass. All of them leave before the next, which takes longer."""
_CENTS = 1_234_50
_QUEUED = """
SELECT (SELECT count(*) FROM wire_message)
     - (SELECT count(*) FROM scheduled_job WHERE kind = 'request.execute')
"""
_APPROVED = """
INSERT INTO transfer_request (customer_id, request_id, type, pocket_id, counterparty_id, amount,
                              content, content_hash, asked, member_id, client_id, reviewers, terms,
                              business_date, status, created_at, updated_at, expires_at)
SELECT r.customer_id, r.request_id, 'WIRE', r.pocket_id, r.counterparty_id, $5, r.content::json,
       r.content_hash, r.content_hash, r.customer_id, 'bench', '{}', $8::json, $9, 'APPROVED',
       $10, $10, $11
  FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $6::text[], $7::bytea[])
    AS r(customer_id, request_id, pocket_id, counterparty_id, content, content_hash)
"""
_Payee: TypeAlias = tuple[int, UUID]
"""The number of a customer, and a counterparty it may pay."""


class PaymentWorkload(AchPayments):
    """One engine that executes approved wires."""

    _approved: Sequence[tuple[UUID, UUID]] = ()

    async def approve_wires(self, name: str, payees: Sequence[_Payee]) -> None:
        """Write down one approved wire of each customer for `run`, with its job, as the last approval leaves them."""
        now = await self._bank.now()
        wires = [(customer_of(nth), command_id(f"wire:{name}", str(nth))) for nth, _ in payees]
        contents = [
            text_of(msgspec.to_builtins(_content(request_id, pocket_of(nth), payee)))
            for (nth, payee), (_, request_id) in zip(payees, wires, strict=True)
        ]
        async with self._bank.pool.acquire() as conn, conn.transaction():
            await conn.execute(
                _APPROVED,
                [customer_id for customer_id, _ in wires],
                [request_id for _, request_id in wires],
                [pocket_of(nth) for nth, _ in payees],
                [payee for _, payee in payees],
                _CENTS,
                contents,
                [hash_of(content) for content in contents],
                text_of(ApprovalRequirement()),
                self._bank.calendars.business_date(now),
                now,
                now + REQUEST_LIFETIME,
            )
            await scheduler.schedule(
                conn, [ScheduledJob(EXECUTE_TRANSFER_REQUEST, wire, customer, at=now) for customer, wire in wires]
            )
        self._approved = wires
        self._forget_books()

    async def run(self) -> Timing:
        """Execute the approved wires, all at once."""
        started = monotonic()
        await asyncio.gather(*(execute_request(self._bank, *wire) for wire in self._approved))
        return Timing(len(self._approved), started, monotonic())


def bench_payments(session: Session) -> Result:
    """Run the comparison and return its figures."""
    sizes, bare, location = session.sizes, session.baseline(), session.database.location("payments")
    engines = [session.bank(location, PaymentWorkload)]
    session.log(f"creating {sizes.customers:,} customers with a counterparty each")
    engines[0].call("create", sizes.customers)
    payees = list(enumerate(engines[0].call("payees", "wire")))[:_MAX_PAYERS]
    engines.append(session.bank(location, PaymentWorkload, first=False))
    variants = {"1 process": engines[:1], "2 processes": engines}
    bares: list[float] = []
    wires: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(1, sizes.runs + 1):
        session.log(f"run {number}: {BARE}")
        bares.append(bare.call("per_second", sizes.bare_transfers))
        for name, variant in variants.items():
            session.log(f"run {number}: wires, {name}")
            wires[name].append(_pass(f"{number}, {name}", variant, payees))
    peaks = session.peaks(bare=bare.peak_memory_mib(), engine=max(each.peak_memory_mib() for each in engines))
    session.log(f"{sizes.ach_entries:,} ACH entries wait")
    engines[0].call("await_clearing", sizes.ach_entries)
    ach, memory = ach_figures(session, location)
    session.log("folding the log against the balances")
    check_sums(location)
    return Result(
        name="payments",
        setting={
            "customers": sizes.customers,
            "wires per run": len(payees),
            "ACH entries": sizes.ach_entries,
            "bare transfers per run": sizes.bare_transfers,
            "bare connections": CONNECTIONS,
        },
        figures=_figures(bares, wires) + ach,
        peak_memory_mib=peaks | memory,
    )


def _figures(bares: list[float], wires: dict[str, list[float]]) -> list[Figure]:
    """The baseline, then every way; the limit binds the best one."""
    base = figure(BARE, "per second", bares)
    best = max(wires, key=lambda name: sum(wires[name]))
    queued = [
        figure(f"wires queued, {name}", "per second", rates, against=base, at_least=MIN_RATIO if name == best else None)
        for name, rates in wires.items()
    ]
    return [base, *queued]


def _pass(name: str, engines: list[Worker], payees: list[_Payee]) -> float:
    """Let everybody send one wire, shared out over these engines; return wires per second."""
    engines[0].call("morning")
    before: int = engines[0].call("fetch", _QUEUED)
    for nth, engine in enumerate(engines):
        engine.call("approve_wires", name, payees[nth :: len(engines)])
    timings = run_together(engines, "run")
    queued: int = engines[0].call("fetch", _QUEUED) - before
    assert queued == sum(timing.done for timing in timings), "messages are missing"
    return rate(timings)


def _content(request_id: UUID, pocket_id: UUID, payee: UUID) -> RequestContent:
    """Return what was approved."""
    return RequestContent(
        transfer=WireOrder(
            id=request_id,
            origin_pocket_id=pocket_id,
            counterparty_id=payee,
            amount=RequestedAmount(amount_usdc=_CENTS),
            description="Invoice",
        ),
        payee={
            "type": "wire",
            "counterparty_name": {"type": "business", "business_name": "Beta LLC"},
            "details": {"routing_number": "121182904", "identifier": "5647772655"},
            "target_pocket_id": None,
        },
    )
