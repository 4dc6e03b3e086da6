"""Batches over HTTP: approved as one list, carried out all or none or each by itself, once."""

import asyncio
from uuid import UUID

import pytest
from tests.support.approvals import REQUESTS, counterparty, wire_counterparty
from tests.support.damage import checks_of, report_of

from billfold.accounts.customers.rules import CLOSED_JOB
from billfold.approvals import checks
from billfold.batches import carry_out, store, worker
from billfold.batches.types import RUN_BATCH
from billfold.ledger.scheduler import run_job
from billfold.ledger.types import ScheduledJob
from billfold.platform import ids
from billfold.verify.runner import verify_bank

BATCHES = "/api/v1/batches/"


def row(origin, cents, *, to=None, payee=None, type_=None, **fields):
    """Return a row that pays another Pocket, or a counterparty."""
    own = type_ or ("PEER_TO_PEER" if to is None else "INTERNAL_REALLOCATION")
    target = {"counterparty_id": payee} if to is None else {"to_pocket_id": to.id}
    return {"type": own, "from_pocket_id": origin.id, "amount_usdc": cents, **target, **fields}


def batch(*rows, mode="INDEPENDENT", **fields):
    return {"kind": "TRANSFERS", "mode": mode, "rows": list(rows), **fields}


async def asked(desk, body, **options):
    """Return a batch that was just requested, whatever was requested within the same second."""
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    return await desk.post(BATCHES, body, **options)


async def invalid(desk, body, loc):
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    await desk.invalid("POST", BATCHES, body, loc=loc)


async def decided(desk, made, status="APPROVED", *, answers=200, **fields):
    body = {"status": status, "content_hash": made["approval"]["content_hash"], **fields}
    return (await desk.ask("PATCH", f"{BATCHES}{made['id']}/status/", body, status=answers)).json()


async def rows_of(desk, made):
    """Return the rows of a batch: state, and the code of the problem."""
    found = (await desk.get(f"{BATCHES}{made['id']}/rows/", {"limit": 100}))["items"]
    return [(each["state"], each["problem"] and each["problem"]["code"]) for each in found]


async def carried_out(desk, world, made):
    """Let the worker finish a batch; return it."""
    await world.later(seconds=1)
    return await desk.get(f"{BATCHES}{made['id']}/")


async def cash_of(desk, pocket):
    return (await desk.get(f"/api/v2/pockets/{pocket.id}/"))["portfolio"]["total_value"]["value"]


async def events_of(desk, made):
    events = [each["event"] for each in (await desk.get("/api/v1/events/"))["items"]]
    return [(e["event_type"], e["payload"]) for e in events if e["payload"].get("batch_id") == made["id"]]


async def verified(bank):
    async with bank.pool.acquire() as conn:
        return (await verify_bank(conn, market=bank.market, vault=bank.vault)).findings


async def test_a_batch_is_approved_once_and_each_row_is_carried_out_or_says_why_not(
    customer_desk, manager, world, funded, payroll_pocket
):
    payee = await counterparty(world, customer_desk.team.customer, await world.pocket())
    linked = await wire_counterparty(customer_desk)
    body = batch(
        row(funded, 1_000_00, to=payroll_pocket, idempotency_key="salary-1", description="=1+1"),
        row(funded, 8_500_00, payee=payee),
        row(funded, 500_00, payee=payee, end_to_end_identification="INV-7"),
        row(funded, 250_00, payee=linked, type_="WIRE", wire_instructions="Room 4"),
        {"type": "WIRE", "from_pocket_id": funded.id, "amount_usdc": 0},
    )
    made = await asked(customer_desk, body)
    assert (made["status"], made["rows"], made["amount"]["value"]) == (
        "PENDING",
        {"total": 5, "waiting": 4, "completed": 0, "failed": 1},
        10_250_00,
    )
    assert made["approval"]["required_approvals"] == 1
    await world.later(seconds=1)
    assert (await customer_desk.get(REQUESTS))["items"] == []
    assert (await decided(manager, made))["status"] == "PROCESSING"
    done = await carried_out(customer_desk, world, made)
    assert (done["status"], done["rows"]["completed"], done["rows"]["failed"]) == ("COMPLETED", 3, 2)
    assert await rows_of(customer_desk, made) == [
        ("COMPLETED", None),
        ("FAILED", "insufficient-funds"),
        ("COMPLETED", None),
        ("COMPLETED", None),
        ("FAILED", "invalid-input"),
    ]
    shown = (await customer_desk.get(f"{BATCHES}{made['id']}/rows/"))["items"]
    request = await customer_desk.get(f"{REQUESTS}{shown[0]['transfer_id']}/")
    assert (request["batch_id"], request["transfer"]["execution_status"]) == (made["id"], "COMPLETED")
    assert len(request["transfer"]["transaction_ids"]) == 1
    assert (shown[4]["problem"]["field"], shown[0]["description"]) == ("amount_usdc", "=1+1")
    assert shown[3]["wire_instructions"] == "Room 4"
    assert await events_of(customer_desk, made) == [
        ("batches.completed", {"batch_id": made["id"], "completed": 3, "failed": 2})
    ]
    again = await asked(customer_desk, batch(body["rows"][0]))
    await decided(manager, again)
    assert (await carried_out(customer_desk, world, again))["rows"]["completed"] == 1
    assert (await customer_desk.get(f"{BATCHES}{again['id']}/rows/"))["items"][0]["transfer_id"] == shown[0][
        "transfer_id"
    ]
    assert await world.value(payroll_pocket) < 1_005_00
    other = await asked(customer_desk, batch(body["rows"][0] | {"amount_usdc": 1}, body["rows"][2]))
    assert (await rows_of(customer_desk, other))[0] == ("FAILED", "idempotency-key-reused")
    assert not await verified(customer_desk.bank)


async def test_an_atomic_batch_moves_all_rows_or_nothing(customer_desk, manager, world, funded, payroll_pocket):
    payee = await counterparty(world, customer_desk.team.customer, await world.pocket())
    linked = await wire_counterparty(customer_desk)
    rows = [row(funded, 100_00, to=payroll_pocket), row(funded, 100_00, payee=payee)] * 3
    rows.append(row(funded, 100_00, payee=linked, type_="WIRE"))
    before = await cash_of(customer_desk, funded)
    too_much = [*rows[:4], row(funded, 8_700_00, payee=payee), *rows[4:]]
    made = await asked(customer_desk, batch(*too_much, mode="ATOMIC"))
    await decided(manager, made)
    assert (await carried_out(customer_desk, world, made))["status"] == "FAILED"
    reasons = await rows_of(customer_desk, made)
    assert reasons[4] == ("FAILED", "insufficient-funds")
    assert {each for n, each in enumerate(reasons) if n != 4} == {("FAILED", "batch-refused")}
    assert await cash_of(customer_desk, funded) == before
    assert [kind for kind, _ in await events_of(customer_desk, made)] == ["batches.failed"]
    made = await asked(customer_desk, batch(*rows, mode="ATOMIC"))
    await decided(manager, made)
    assert (await carried_out(customer_desk, world, made))["status"] == "COMPLETED"
    assert set(await rows_of(customer_desk, made)) == {("COMPLETED", None)}
    assert before - await cash_of(customer_desk, funded) >= 700_00
    found = (await customer_desk.get(REQUESTS))["items"]
    assert {each["transfer"]["execution_status"] for each in found} <= {"COMPLETED", "PROCESSING"}
    assert all(each["transfer"]["transaction_ids"] for each in found)
    assert not await verified(customer_desk.bank)
    async with customer_desk.bank.pool.acquire() as conn:
        transaction = conn.transaction()
        await transaction.start()
        await conn.execute("UPDATE batch_row SET content = replace(content::text, '10000', '1')::json")
        assert {each.table for each in (await report_of(conn, checks_of(checks))).findings} == {"batch_row"}
        await transaction.rollback()


async def test_a_row_whose_id_another_request_took_fails_alone(customer_desk, manager, world, funded, payroll_pocket):
    body = batch(row(funded, 10_00, to=payroll_pocket, idempotency_key="k"), row(funded, 1_00, to=payroll_pocket))
    shown = (await customer_desk.ask("POST", f"{BATCHES}preview/", batch(body["rows"][0]), status=200)).json()
    many = customer_desk.bank.pool.get_max_size() + 1  # previews hold one connection at a time each
    previews = (customer_desk.send("POST", f"{BATCHES}preview/", body) for _ in range(many))
    async with asyncio.timeout(30):
        assert {each.status_code for each in await asyncio.gather(*previews)} == {200}
    made = await asked(customer_desk, body)
    details = {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": payroll_pocket.id}
    single = {
        "id": shown["pockets"][0]["preview"]["transfer_id"],
        "type": "ON_US",
        "origin_pocket_id": funded.id,
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 10_00},
        "details": details,
    }
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    assert (await customer_desk.post(REQUESTS, {"transfer": single, "reviewers": []}))["status"] == "PENDING"
    await decided(manager, made)
    await carried_out(customer_desk, world, made)
    assert await rows_of(customer_desk, made) == [("FAILED", "idempotency-key-reused"), ("COMPLETED", None)]
    await invalid(customer_desk, body | {"mode": "ATOMIC"}, "body.rows.0.idempotency_key")
    shown = (await customer_desk.ask("POST", f"{BATCHES}preview/", body, status=200)).json()
    assert [each["problems"][0]["code"] for each in shown["problems"]] == ["idempotency-key-reused"]
    assert shown["pockets"][0]["payments"] == 1


async def test_an_atomic_batch_of_more_rows_than_one_audit_entry_proves_is_verified(
    customer_desk, manager, world, funded, payroll_pocket
):
    made = await asked(customer_desk, batch(*[row(funded, 10, to=payroll_pocket)] * 160, mode="ATOMIC"))
    await decided(manager, made)
    assert (await carried_out(customer_desk, world, made))["rows"]["completed"] == 160
    assert not await verified(customer_desk.bank)


async def test_two_atomic_batches_of_the_same_keys_at_once_pay_once(
    customer_desk, manager, world, funded, payroll_pocket
):
    body = batch(*[row(funded, 10_00, to=payroll_pocket, idempotency_key=f"k{n}") for n in range(5)], mode="ATOMIC")
    made = [await asked(customer_desk, body) for _ in range(2)]
    for each in made:
        await decided(manager, each)
    for each in made:
        assert (await carried_out(customer_desk, world, each))["rows"]["completed"] == 5
    assert 49_00 < await world.value(payroll_pocket) <= 50_00
    assert not await verified(customer_desk.bank)
    async with customer_desk.bank.pool.acquire() as conn:
        transaction = conn.transaction()
        await transaction.start()
        await conn.execute("UPDATE batch_row SET amount = amount + 1 WHERE row_no = 1")
        assert {each.table for each in (await report_of(conn, checks_of(checks))).findings} == {"batch_row"}
        await transaction.rollback()


@pytest.mark.parametrize("mode", ["INDEPENDENT", "ATOMIC"])
async def test_a_batch_that_is_interrupted_anywhere_goes_on_and_pays_once(
    customer_desk, manager, world, funded, payroll_pocket, mode, monkeypatch
):
    monkeypatch.setattr(worker, "ROWS_PER_PART", 2)
    bank, customer, to = customer_desk.bank, customer_desk.team.customer, await world.pocket()
    payee = await counterparty(world, customer, to)
    made = await asked(customer_desk, batch(*[row(funded, 10_00, payee=payee)] * 5, mode=mode))
    await decided(manager, made)
    job = ScheduledJob(RUN_BATCH, UUID(made["id"]), UUID(customer), at=await bank.now())

    async def stop(*_, **__):
        raise ConnectionError

    with monkeypatch.context() as stopped:  # the money has moved, and its results are lost
        lost = (store, "record_results") if mode == "INDEPENDENT" else (carry_out, "_insert_requests")
        stopped.setattr(*lost, stop)
        with pytest.raises(ConnectionError):
            await run_job(bank, job)
    await world.send("DELETE", f"/api/v2/customers/{customer}/counterparties/{payee}/")
    await bank.pool.execute("UPDATE membership SET status = 'DEACTIVATED' WHERE role = 'ADMIN'")
    await asyncio.gather(*(run_job(bank, job) for _ in range(3)))
    await world.later(seconds=1)
    done = await manager.get(f"{BATCHES}{made['id']}/")
    # What the requester may no longer ask for is not paid; what was paid stays so.
    assert (done["status"], done["rows"]["completed"]) == ("COMPLETED", 2 if mode == "INDEPENDENT" else 5)
    paid = 20_00 if mode == "INDEPENDENT" else 50_00
    assert paid - 1_00 < await world.value(to) <= paid + 1_00
    assert not await verified(bank)


async def test_the_strictest_rule_decides_and_the_sum_counts_against_the_limit(
    customer_desk, customer_desks, manager, world, funded, payroll_pocket
):
    async def rule(**fields):
        made = await customer_desk.post("/api/v1/approval-rules/", fields, status=202)
        await manager.ask(
            "PATCH", f"/api/v1/authorization-requests/{made['id']}/status/", {"status": "APPROVED"}, status=200
        )

    second = await customer_desks(customer_desk.team.customer, role="MANAGER")
    await rule(name="Small", required_approvals=0, daily_cap_usdc=300_00)
    await rule(name="Large", required_approvals=2, min_amount_usdc=1_000_00)
    small = row(funded, 100_00, to=payroll_pocket)
    alone = await asked(customer_desk, batch(small, small | {"idempotency_key": "k"}))
    assert (alone["status"], alone["approval"]["required_approvals"]) == ("PROCESSING", 0)
    # The key of a row that waits does not free what it has used of the cap.
    over = await asked(customer_desk, batch(row(funded, 1, to=payroll_pocket, idempotency_key="k"), small))
    assert (over["status"], over["approval"]["required_approvals"]) == ("PENDING", 1)
    both = await asked(customer_desk, batch(small, row(funded, 1_000_00, to=payroll_pocket)))
    assert both["approval"]["required_approvals"] == 2
    assert (await decided(manager, both))["status"] == "PENDING"
    await customer_desk.refused(
        "PATCH", f"{BATCHES}{both['id']}/status/", {"status": "APPROVED"}, status=403, code="self-approval"
    )
    path, body = f"{BATCHES}{both['id']}/status/", {"status": "APPROVED"}
    answers = await asyncio.gather(*(second.send("PATCH", path, body) for _ in range(3)))
    assert sorted(each.status_code for each in answers) == [200, 409, 409]
    done = await carried_out(customer_desk, world, both)
    assert done["rows"]["completed"] == 2
    await customer_desk.refused(
        "PATCH", f"{BATCHES}{both['id']}/status/", {"status": "DENIED"}, status=403, code="self-approval"
    )
    await second.refused(
        "PATCH", f"{BATCHES}{both['id']}/status/", {"status": "DENIED"}, status=409, code="batch-not-pending"
    )
    assert not await verified(customer_desk.bank)


async def test_what_is_wrong_with_a_table_names_line_and_column_and_stops_no_other_row(
    customer_desk, manager, other_customer, world, funded, payroll_pocket
):
    foreign = await other_customer.pocket()
    head = "type\tfrom_pocket_id\tto_pocket_id\tamount_usdc\tidempotency_key\tdescription"
    own = f"INTERNAL_REALLOCATION\t{funded.id}\t{payroll_pocket.id}"
    lines = [
        head,
        f"{own}\t100\ta\t=HYPERLINK(1)",
        f"{own}\t1.50\tb\t",
        f'{own}\t100\tc\t"open',
        "",
        f"{own}\t100\ta\t",
        f"INTERNAL_REALLOCATION\t{funded.id}\t{foreign.id}\t100\td\t",
        f"{own}\t100\te\t\tmore",
    ]
    body = {"kind": "TRANSFERS", "mode": "INDEPENDENT", "csv": "\ufeff" + "\r\n".join(lines)}
    made = await asked(customer_desk, body)
    assert made["rows"] == {"total": 6, "waiting": 1, "completed": 0, "failed": 5}
    found = (await customer_desk.get(f"{BATCHES}{made['id']}/rows/"))["items"]
    problems = [each["problem"] and (each["problem"]["code"], each["problem"]["field"]) for each in found]
    assert problems == [
        None,
        ("invalid-input", "amount_usdc"),
        ("invalid-input", None),
        ("invalid-input", "idempotency_key"),
        ("not-found", "to_pocket_id"),
        ("invalid-input", None),
    ]
    assert found[1]["problem"]["detail"].startswith("line 3, column amount_usdc: must be a whole number")
    await invalid(customer_desk, body | {"mode": "ATOMIC"}, "body.csv")
    for wrong in (
        "amount_usdc\n",
        "amount_usdc,amount_usdc\n1,1",
        "sum\n1",
        "a\x00b\n1",
        f"{head}\n" + f"{own}\n" * 1001,
        ",".join(f"metadata.{each:x}" for each in range(50_000)) + "\na",
    ):
        await invalid(customer_desk, body | {"csv": wrong}, "body.csv")
    many = [row(funded, 1, to=payroll_pocket)] * 1001
    await invalid(customer_desk, batch(*many), "body.rows")
    await invalid(customer_desk, batch(row(funded, 1, to=foreign)), "body.rows.0.to_pocket_id")
    await invalid(customer_desk, batch(), "body.rows")
    await customer_desk.refused("GET", f"{BATCHES}{ids.new()}/", status=404, code="not-found")
    await other_customer.refused("GET", f"{BATCHES}{made['id']}/rows/", status=404, code="not-found")
    await other_customer.refused(
        "PATCH", f"{BATCHES}{made['id']}/status/", {"status": "APPROVED"}, status=404, code="not-found"
    )
    closed = ScheduledJob(CLOSED_JOB, UUID(customer_desk.team.customer), None, at=await world.bank.now())
    await run_job(world.bank, closed)
    assert (await customer_desk.get(f"{BATCHES}{made['id']}/"))["status"] == "CANCELLED"
