"""Batches of partners: rows of many customers each by itself, of one all or none, the same row once."""

import asyncio
from uuid import UUID, uuid4

import pytest
from tests.support.approvals import counterparty
from tests.support.world import new_key

from billfold.batches import store
from billfold.batches.types import RUN_BATCH
from billfold.ledger.scheduler import run_job, run_scheduled_jobs, schedule
from billfold.ledger.types import ScheduledJob
from billfold.platform.errors import Unavailable
from billfold.verify.runner import verify_bank

BATCHES = "/api/v1/batches/"


def batch(*rows, mode="INDEPENDENT"):
    return {"kind": "TRANSFERS", "mode": mode, "rows": list(rows)}


def within(origin, to, cents, **fields):
    row = {"type": "INTERNAL_REALLOCATION", "from_pocket_id": origin.id, "to_pocket_id": to.id, "amount_usdc": cents}
    return row | fields


async def rows_of(world, made):
    """Return the rows of a batch: state, and the code of the problem."""
    found = (await world.get(f"{BATCHES}{made['id']}/rows/", {"limit": 100}))["items"]
    return [(each["state"], each["problem"] and each["problem"]["code"]) for each in found]


async def carried_out(world, made):
    await world.later(seconds=1)
    return await world.get(f"{BATCHES}{made['id']}/")


async def test_rows_of_many_customers_are_carried_out_and_the_same_row_once(world):
    one, other = await world.funded(1_000_00), await world.funded(1_000_00)
    to = await world.pocket(one.customer)
    payee = await counterparty(world, other.customer, to)
    rows = [
        within(one, to, 100_00, idempotency_key="a"),
        {"type": "PEER_TO_PEER", "from_pocket_id": other.id, "counterparty_id": payee, "amount_usdc": 50_00},
        within(one, to, 5_000_00, idempotency_key="b"),
        {"type": "WIRE", "from_pocket_id": other.id, "counterparty_id": payee, "amount_usdc": 50_00},
    ]
    key = new_key()
    answers = await asyncio.gather(*(world.send("POST", BATCHES, batch(*rows), key=key) for _ in range(3)))
    assert {each.status_code for each in answers} <= {201, 409}
    made = (await world.ask("POST", BATCHES, batch(*rows), status=201, key=key)).json()
    assert len((await world.get(BATCHES))["items"]) == 1
    await world.refused("POST", BATCHES, batch(rows[0]), key=key, status=422, code="idempotency-key-reused")
    done = await carried_out(world, made)
    assert (done["status"], done["rows"], done["approval"]) == (
        "COMPLETED",
        {"total": 4, "waiting": 0, "completed": 2, "failed": 2},
        None,
    )
    assert [state for state, _ in await rows_of(world, made)] == ["COMPLETED", "COMPLETED", "FAILED", "FAILED"]
    first = (await world.get(f"{BATCHES}{made['id']}/rows/"))["items"][0]
    assert (await world.get(f"/api/v1/transfers/on-us/{first['transfer_id']}/"))["status"] == "COMPLETED"
    events = [each["event"] for each in (await world.get("/api/v1/events/"))["items"]]
    assert {"batch_id": made["id"], "completed": 2, "failed": 2} in [each["payload"] for each in events]
    for mode in ("INDEPENDENT", "ATOMIC"):
        again = await world.post(BATCHES, batch(rows[0], mode=mode))
        await carried_out(world, again)
        assert await rows_of(world, again) == [("COMPLETED", None)]
        again = await world.post(BATCHES, batch(rows[2], mode=mode))
        await carried_out(world, again)
        assert await rows_of(world, again) == [("FAILED", "insufficient-funds")]
    changed = await world.post(BATCHES, batch(rows[0] | {"amount_usdc": 1}))
    await carried_out(world, changed)
    assert await rows_of(world, changed) == [("FAILED", "idempotency-key-reused")]
    assert 148_00 < await world.value(to) < 152_00
    async with world.bank.pool.acquire() as conn:
        assert not (await verify_bank(conn, market=world.bank.market, vault=world.bank.vault)).findings


async def test_row_700_without_funds_moves_nothing_and_others_are_not_kept_waiting(world):
    origin = await world.funded(900_00)
    to, elsewhere = await world.pocket(origin.customer), await world.funded(10_00)
    rows = [within(origin, to, 1_00) for _ in range(1000)]
    rows[699] = within(origin, to, 500_00)
    made = await world.post(BATCHES, batch(*rows, mode="ATOMIC"))
    running = asyncio.create_task(carried_out(world, made))
    done = await running
    assert (done["status"], done["rows"]["failed"]) == ("FAILED", 1000)
    assert await world.value(to) == 0
    page = await world.get(f"{BATCHES}{made['id']}/rows/", {"limit": 100, "order": "desc"})
    assert page["items"][0]["number"] == 1000
    kept = batch(*[within(origin, to, 50) for _ in range(1000)], mode="ATOMIC")
    done = await carried_out(world, await world.post(BATCHES, kept))
    assert (done["status"], done["rows"]["completed"]) == ("COMPLETED", 1000)
    assert 499_00 < await world.value(to) < 501_00
    mixed = batch(within(origin, to, 1), within(elsewhere, to, 1), mode="ATOMIC")
    await world.invalid("POST", BATCHES, mixed, loc="body.rows.1.from_pocket_id")
    lacking = await world.send("POST", BATCHES, batch({"type": "INTERNAL_REALLOCATION"}))
    assert [each["loc"][-1] for each in lacking.json()["detail"]] == ["from_pocket_id", "amount_usdc"]
    async with world.bank.pool.acquire() as conn:
        assert not (await verify_bank(conn, market=world.bank.market, vault=world.bank.vault)).findings


async def test_rows_that_ran_before_an_interruption_keep_their_answers(world, monkeypatch):
    origin = await world.funded(1_000_00)
    to = await world.pocket(origin.customer)
    payee = await counterparty(world, origin.customer, to)
    peer = {"type": "PEER_TO_PEER", "from_pocket_id": origin.id, "counterparty_id": payee}
    made = await world.post(BATCHES, batch(peer | {"amount_usdc": 5_000_00}, peer | {"amount_usdc": 50_00}))
    bank, stored = world.bank, await world.bank.pool.fetchrow("SELECT customer_id, request_id FROM batch")
    job = ScheduledJob(RUN_BATCH, stored["request_id"], stored["customer_id"], at=await bank.now())

    async def stop(*_):
        raise ConnectionError

    with monkeypatch.context() as stopped:
        stopped.setattr(store, "record_results", stop)
        with pytest.raises(ConnectionError):
            await run_job(bank, job)
    await world.send("DELETE", f"/api/v2/customers/{origin.customer}/counterparties/{payee}/")
    assert (await carried_out(world, made))["rows"]["completed"] == 1
    assert await rows_of(world, made) == [("FAILED", "insufficient-funds"), ("COMPLETED", None)]


async def test_a_fault_of_the_bank_in_one_row_takes_no_results_of_others_and_open_rows_are_limited(world, monkeypatch):
    origin = await world.funded(1_000_00)
    to = await world.pocket(origin.customer)
    made = await world.post(BATCHES, batch(*[within(origin, to, 1_00)] * 3))
    bank, stored = world.bank, await world.bank.pool.fetchrow("SELECT customer_id, request_id FROM batch")
    job = ScheduledJob(RUN_BATCH, stored["request_id"], stored["customer_id"], at=await bank.now())
    submit_all = world.bank.engine.submit_all

    async def fail_first(commands):
        return [Unavailable("The database is unavailable."), *await submit_all(commands[1:])]

    with monkeypatch.context() as failing:
        failing.setattr(world.bank.engine, "submit_all", fail_first)
        with pytest.raises(Unavailable):
            await run_job(bank, job)
    assert [state for state, _ in await rows_of(world, made)] == ["WAITING", "COMPLETED", "COMPLETED"]
    assert (await carried_out(world, made))["rows"]["completed"] == 3
    assert 2_00 < await world.value(to) <= 3_00
    monkeypatch.setattr(store, "OPEN_ROWS_MAX", 3)
    await world.post(BATCHES, batch(*[within(origin, to, 1)] * 2))
    more = batch(*[within(origin, to, 1)] * 2)
    await world.refused("POST", BATCHES, more, status=429, code="rate-limited")
    await world.later(seconds=1)
    await world.post(BATCHES, more)


async def test_more_batches_than_the_pool_has_connections_end_at_once(world):
    origin = await world.funded(100_00)
    to = await world.pocket(origin.customer)
    count = 2 * world.bank.pool.get_max_size()
    made = [await world.post(BATCHES, batch(within(origin, to, 1_00))) for _ in range(count)]
    async with asyncio.timeout(30):
        await world.later(seconds=1)
    assert {(await world.get(f"{BATCHES}{each['id']}/"))["status"] for each in made} == {"COMPLETED"}


async def test_the_job_of_a_batch_that_cannot_be_read_stays(world):
    origin, now = await world.funded(1_00), await world.bank.now()
    job = ScheduledJob(RUN_BATCH, uuid4(), origin.key[0], at=now)
    await schedule(world.bank.pool, [job])
    assert list((await run_scheduled_jobs(world.bank, now)).failed) == [job]
    assert await world.bank.pool.fetchval("SELECT count(*) FROM scheduled_job WHERE object_id = $1", job.object_id) == 1


async def test_batches_of_another_partner_do_not_exist(world, other_partner):
    foreign = await other_partner.funded(100_00)
    own = await world.funded(100_00)
    await world.invalid("POST", BATCHES, batch(within(foreign, own, 1)), loc="body.rows.0.from_pocket_id")
    made = await world.post(BATCHES, batch(within(own, await world.pocket(own.customer), 1)))
    for path in (f"{BATCHES}{made['id']}/", f"{BATCHES}{made['id']}/rows/", f"{BATCHES}{UUID(int=1)}/"):
        await other_partner.refused("GET", path, status=404, code="not-found")
    assert (await other_partner.get(BATCHES))["items"] == []
    await world.refused("POST", BATCHES, b"[" * 20_000_000, status=413, code="payload-too-large")
