"""A sandbox step is complete when it is answered, also while a worker does the same work."""

import asyncio
from uuid import UUID

import pytest
from tests.support.fedwire import link
from tests.support.whole_bank import EngineCommands, close_bank, expect_clean, open_bank

from billfold.payments.ach.commands import OriginateAch
from billfold.payments.wires.commands import SendWire
from billfold.platform.dates import et_instant
from billfold.platform.ids import command_id, derive
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.wiring.scheduled_jobs import file_receivers
from billfold.wiring.worker import Worker

BILL = "912797PT8"
ROUNDS = 6


@pytest.fixture
async def busy_worker(bank, bank_dsn):
    """A worker of another process that never rests."""
    folders = {name: getattr(bank.settings, name) for name in ("state_dir", "rails_dir", "files_dir")}
    other, stop = await open_bank(bank_dsn, **folders), asyncio.Event()
    running = asyncio.create_task(Worker(other, *file_receivers(), pause_seconds=0).run(stop))
    yield
    stop.set()
    await running
    await close_bank(other)


@pytest.fixture
def simulate(client):
    async def post(path, body):
        answer = await client.post(f"/api/v1/sandbox/{path}/", body)
        assert (answer.status_code, answer.content) == (202, b""), answer.text

    return post


async def test_a_sandbox_wire_step_is_complete_when_answered(bank, client, pocket, simulate, busy_worker):
    customer_id, pocket_id = UUID(pocket["customer_id"]), UUID(pocket["pocket_id"])

    async def states():
        rows = await bank.pool.fetch("SELECT wire_type, status FROM wire WHERE customer_id = $1", customer_id)
        return [tuple(row) for row in rows]

    for arrived in range(1, ROUNDS + 1):
        await simulate("wire", {"portal_id": pocket["portal_id"], "amount_usdc": 100_00, "sender_name": "Acme"})
        assert await states() == [("PAYMENT", "COMPLETED")] * arrived
    counterparty_id = await link(bank, customer_id)
    for endings in (("submit", "acknowledge", "return"), ("submit", "reject")) * (ROUNDS // 2):
        outcome = await EngineCommands(bank).submit(
            SendWire,
            customer_id,
            references=(counterparty_id,),
            wire_id=None,
            pocket_id=pocket_id,
            amount=50_00,
            counterparty_id=counterparty_id,
        )
        for ending in endings:
            await simulate(f"wires/{outcome['wire_id']}/{ending}", {})
            status = await bank.pool.fetchval("SELECT status FROM wire WHERE wire_id = $1", UUID(outcome["wire_id"]))
            expected = {"submit": "PROCESSING", "reject": "REJECTED"}.get(ending, "COMPLETED")
            assert status == expected
    assert (await states()).count(("RETURN", "COMPLETED")) == ROUNDS // 2
    await expect_clean(bank)


async def test_a_sandbox_security_delivery_is_complete_when_answered(bank, pocket, simulate, busy_worker):
    transfer = {"account_id": pocket["pocket_id"], "cusip": BILL, "quantity": 50, "cost_usdc": 4_950_00}
    await simulate("security-transfer", transfer | {"direction": "IN"})
    await ClockStepper(bank).set_to(et_instant((await bank.now()).date(), 17))
    await ClockStepper(bank).advance_business_days(1)
    leaving = {"account_id": pocket["pocket_id"], "cusip": BILL, "quantity": 1, "direction": "OUT"}
    for number in range(1, ROUNDS + 1):
        await simulate("security-transfer", leaving | {"counterparty_name": "REFUSE" if number % 2 else "Harbor"})
        assert await bank.pool.fetchval("SELECT count(*) FROM security_transfer WHERE status = 'PENDING'") == 0
    await expect_clean(bank)


async def test_a_sandbox_ach_step_is_complete_when_answered(bank, pocket, simulate, busy_worker):
    customer_id, commands = UUID(pocket["customer_id"]), EngineCommands(bank)
    counterparty_id = UUID((await commands.add_counterparty(customer_id, "ach"))["counterparty_id"])
    arriving = {"portal_id": pocket["portal_id"], "amount_usdc": 100_00}
    for number in range(1, ROUNDS + 1):
        await simulate("ach/entries", arriving | {"direction": "CREDIT"})
        assert await bank.pool.fetchval("SELECT count(*) FROM transaction WHERE type = 'ACH'") == number
    for number in range(ROUNDS):
        outcome = await commands.submit(
            OriginateAch,
            customer_id,
            references=(counterparty_id,),
            ach_id=derive(bank.seed, command_id("an entry", str(number)), 0),
            pocket_id=UUID(pocket["pocket_id"]),
            counterparty_id=counterparty_id,
            direction="CREDIT",
            sec_code="PPD",
            description="PAYROLL",
            amount=10_00,
            lines=("INVOICE 7",),
        )
        for path, body, status in (
            ("ach/submit", {}, "IN_TRANSIT"),
            (f"ach/{outcome['ach_id']}", {"move": "return", "code": "R02"}, "FAILED"),
        ):
            await simulate(path, body)
            entry = await bank.pool.fetchval("SELECT status FROM ach_entry WHERE ach_id = $1", UUID(outcome["ach_id"]))
            assert entry == status
    await expect_clean(bank)
