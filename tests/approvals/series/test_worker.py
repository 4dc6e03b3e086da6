"""Series over HTTP: approved once, run once for each day, stopped by what stops a transfer."""

import asyncio
from uuid import UUID

from tests.support.approvals import REQUESTS, ask_for_two, decide, on_us, path_of, wire, wire_counterparty
from tests.support.world import EVERYTHING

from billfold.approvals.series.worker import run_due
from billfold.verify.runner import verify_bank

WEEKLY = "FREQ=WEEKLY;COUNT=3"


async def series(desk, approver, body, **schedule):
    """Return a series that was requested and approved."""
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
        (each["event_type"].removeprefix("transfers.series."), each["payload"].get("run_on", each["payload"].get("state")))
        for each in events
        if each["payload"].get("series_id") == made["id"]
    ]


async def state(desk, made, wanted):
    return (await desk.patch(f"{path_of(made)}schedule/", {"state": wanted}))["schedule"]["state"]


async def verified(bank):
    async with bank.pool.acquire() as conn:
        return (await verify_bank(conn, market=bank.market, vault=bank.vault)).findings


async def test_a_series_pays_on_each_of_its_days_and_ends(customer_desk, manager, world, funded, payroll_pocket):
    print(await customer_desk.bank.now())
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
    print(await events_of(customer_desk, made))
    shown = await customer_desk.get(path_of(made))
    assert (shown["schedule"]["state"], shown["schedule"]["next_run_at"]) == ("ENDED", None)
    assert await world.value(payroll_pocket) >= 3_000_00
    assert not await verified(customer_desk.bank)
