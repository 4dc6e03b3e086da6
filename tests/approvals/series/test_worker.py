"""Series over HTTP: approved once, run once for each day, stopped by what stops a transfer."""

import asyncio
from uuid import UUID

from tests.support.approvals import REQUESTS, decide, hold_roles, on_us, path_of, wire, wire_counterparty

from billfold.approvals.series.worker import run_due
from billfold.verify.runner import verify_bank

WEEKLY = "FREQ=WEEKLY;COUNT=3"


async def series(desk, approver, body, **schedule):
    """Return a series that was requested and approved."""
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    made = await desk.post(REQUESTS, body | {"schedule": schedule})
    assert made["schedule"]["state"] == "ACTIVE"
    return await decide(approver, made)


async def runs_of(desk, made):
    """Return the runs of a series, the first one first: day, execution, reason."""
    found = (await desk.get(REQUESTS, {"series_id": made["id"]}))["items"]
    return [(each["run_on"], each["transfer"]["execution_status"], each["transfer"]["reason"]) for each in found[::-1]]


async def events_of(desk, made):
    """Return the events of a series: what follows its name, and the day or state."""
    events = [each["event"] for each in (await desk.get("/api/v1/events/"))["items"]]
    return [
        (
            each["event_type"].removeprefix("transfers.series."),
            each["payload"].get("run_on", each["payload"].get("state")),
        )
        for each in events
        if each["payload"].get("series_id") == made["id"]
    ]


async def state(desk, made, wanted):
    return (await desk.patch(f"{path_of(made)}schedule/", {"state": wanted}))["schedule"]["state"]


async def verified(bank):
    async with bank.pool.acquire() as conn:
        return (await verify_bank(conn, market=bank.market, vault=bank.vault)).findings


async def test_a_series_pays_on_each_of_its_days_and_ends(customer_desk, manager, world, funded, payroll_pocket):
    made = await series(
        customer_desk, manager, on_us(funded, 1_000_00, to=payroll_pocket), start_on="2025-06-16", rule=WEEKLY
    )
    assert (made["status"], made["transfer"]["execution_status"]) == ("APPROVED", "NOT_STARTED")
    upcoming = (await customer_desk.get(f"{path_of(made)}upcoming-runs/"))["items"]
    assert [each["run_on"] for each in upcoming] == ["2025-06-16", "2025-06-23", "2025-06-30"]
    assert upcoming[0]["runs_at"] == "2025-06-16T12:00:00Z"
    await world.until("2025-06-16T11:59:00Z")
    assert await runs_of(customer_desk, made) == []
    await world.until("2025-07-01T12:00:00Z")
    assert await runs_of(customer_desk, made) == [
        ("2025-06-16", "COMPLETED", None),
        ("2025-06-23", "COMPLETED", None),
        ("2025-06-30", "COMPLETED", None),
    ]
    assert sorted(await events_of(customer_desk, made)) == [
        ("run", "2025-06-16"),
        ("run", "2025-06-23"),
        ("run", "2025-06-30"),
        ("updated", "ENDED"),
    ]
    shown = await customer_desk.get(path_of(made))
    assert (shown["schedule"]["state"], shown["schedule"]["next_run_at"]) == ("ENDED", None)
    assert await world.value(payroll_pocket) >= 3_000_00
    assert not await verified(customer_desk.bank)


async def test_a_run_that_is_refused_says_why_and_the_series_goes_on(
    customer_desk, manager, world, funded, payroll_pocket
):
    linked = await wire_counterparty(customer_desk)
    wires = await series(customer_desk, manager, wire(funded, 100_00, linked), start_on="2025-06-16", rule=WEEKLY)
    too_much = await series(customer_desk, manager, on_us(funded, 90_000_00, to=payroll_pocket), start_on="2025-06-17")
    await world.until("2025-06-18T12:00:00Z")
    await customer_desk.patch(f"/api/v2/counterparties/{linked}/", {"status": "UNLINKED"})
    await world.until("2025-06-24T12:00:00Z")
    await customer_desk.bank.pool.execute("UPDATE membership SET status = 'DEACTIVATED' WHERE role = 'ADMIN'")
    await world.until("2025-07-01T12:00:00Z")
    assert await runs_of(manager, wires) == [
        ("2025-06-16", "COMPLETED", None),
        ("2025-06-23", "REJECTED", "ACCOUNT_UNAVAILABLE"),
        ("2025-06-30", "REJECTED", "REQUESTER_NOT_ALLOWED"),
    ]
    assert await runs_of(manager, too_much) == [("2025-06-17", "REJECTED", "INSUFFICIENT_FUNDS")]
    assert {each for each in await events_of(manager, wires) if each[0] == "run.failed"} == {
        ("run.failed", "2025-06-23"),
        ("run.failed", "2025-06-30"),
    }


async def test_amounts_follow_what_the_pockets_hold(customer_desk, manager, world, funded, payroll_pocket):
    sweep = {"type": "ALL_ABOVE", "keep_usdc": 5_000_00, "at_most_usdc": 3_000_00}
    refill = {"type": "TOP_UP_TO", "target_usdc": 3_500_00, "at_most_usdc": 9_000_00}
    await series(customer_desk, manager, on_us(funded, 0, to=payroll_pocket, amount=sweep), start_on="2025-06-16")
    topped_up = await series(
        customer_desk,
        manager,
        on_us(funded, 0, to=payroll_pocket, amount=refill),
        start_on="2025-06-17",
        rule="FREQ=DAILY;COUNT=2",
    )
    await world.until("2025-06-16T12:00:00Z")
    assert 2_995_00 < await world.value(payroll_pocket) < 3_005_00
    await world.until("2025-06-18T12:00:00Z")
    assert await runs_of(customer_desk, topped_up) == [
        ("2025-06-17", "COMPLETED", None),
        ("2025-06-18", "REJECTED", "NOTHING_TO_MOVE"),
    ]
    assert ("run.skipped", "2025-06-18") in await events_of(customer_desk, topped_up)
    assert 3_500_00 <= await world.value(payroll_pocket) < 3_505_00
    body = on_us(funded, 0, to=payroll_pocket, amount=refill | {"target_usdc": 100})
    await customer_desk.refused("POST", f"{REQUESTS}preview/", body, status=422, code="nothing-to-move")


async def test_a_paused_series_leaves_days_out_and_a_cancelled_one_ends(
    customer_desk, manager, world, funded, payroll_pocket
):
    body = on_us(funded, 100_00, to=payroll_pocket)
    made = await series(customer_desk, manager, body, start_on="2025-06-16", rule="FREQ=WEEKLY")
    await manager.refused("PATCH", f"{path_of(made)}schedule/", {"state": "PAUSED"}, status=403, code="forbidden")
    assert await state(customer_desk, made, "PAUSED") == "PAUSED"
    await world.until("2025-06-17T12:00:00Z")
    assert await state(customer_desk, made, "ACTIVE") == "ACTIVE"
    await world.until("2025-06-23T12:00:00Z")
    assert await runs_of(customer_desk, made) == [
        ("2025-06-16", "REJECTED", "PAUSED"),
        ("2025-06-23", "COMPLETED", None),
    ]
    assert await state(customer_desk, made, "CANCELLED") == "CANCELLED"
    await world.until("2025-07-08T12:00:00Z")
    assert len(await runs_of(customer_desk, made)) == 2
    again = {"state": "ACTIVE"}
    await customer_desk.refused("PATCH", f"{path_of(made)}schedule/", again, status=409, code="series-not-running")


async def test_two_workers_that_were_away_make_one_run(customer_desk, manager, world, funded, payroll_pocket):
    bank = customer_desk.bank
    made = await series(
        customer_desk, manager, on_us(funded, 100_00, to=payroll_pocket), start_on="2025-06-16", rule=WEEKLY
    )
    await bank.pool.execute("DELETE FROM scheduled_job")
    await world.until("2025-06-25T12:00:00Z")
    named = (bank, UUID(customer_desk.team.customer), UUID(made["id"]))
    await asyncio.gather(*(run_due(*named) for _ in range(4)))
    await world.later(seconds=1)
    assert await runs_of(customer_desk, made) == [
        ("2025-06-16", "REJECTED", "MISSED"),
        ("2025-06-23", "COMPLETED", None),
    ]
    assert await bank.pool.fetchval("SELECT count(*) FROM transfer") == 1
    assert ("run.skipped", "2025-06-16") in await events_of(customer_desk, made)
    assert not await verified(bank)


async def test_a_run_waits_for_its_own_approval_once_the_rule_has_changed(
    customer_desk, manager, world, funded, payroll_pocket
):
    made = await series(
        customer_desk, manager, on_us(funded, 100_00, to=payroll_pocket), start_on="2025-06-16", rule=WEEKLY
    )
    await hold_roles(customer_desk.bank, UUID(customer_desk.team.customer), action="TRANSFER")
    await world.until("2025-06-16T12:00:00Z")
    ((_, execution, _),) = await runs_of(customer_desk, made)
    (run,) = (await customer_desk.get(REQUESTS, {"series_id": made["id"]}))["items"]
    assert (run["status"], execution) == ("PENDING", "NOT_STARTED")
    assert (await decide(manager, run))["transfer"]["execution_status"] == "COMPLETED"
