"""What was approved is carried out, once, whoever is killed meanwhile."""

import asyncio
from dataclasses import replace
from uuid import UUID

from tests.interfaces.customer_api.approving import (
    REQUESTS,
    counterparty,
    decide,
    funded,
    manager,
    on_us,
    other,
    status_of,
    wire,
    wire_counterparty,
)
from tests.interfaces.customer_api.conftest import app, desk, desks, world
from tests.whole_bank import bank

from billfold.domain import agenda, requests
from billfold.domain.agenda import Appointment
from billfold.engine.approved import carry_out_request
from billfold.engine.verify import verify_bank

__all__ = ["app", "bank", "desk", "desks", "funded", "manager", "other", "world"]


async def test_a_wire_leaves_when_it_is_approved(desk, manager, world, funded):
    linked = await wire_counterparty(desk)
    body = wire(funded, 2_000_00, linked, description="Invoice 77")
    made = await desk.post(REQUESTS, body)
    assert made["transfer"]["counterparty_name"] == "Contoso"
    done = await decide(manager, made)
    shown = done["transfer"]
    assert (done["status"], shown["execution_status"]) == ("APPROVED", "PROCESSING")
    (transaction,) = shown["transaction_ids"]
    booked = await desk.get(f"/api/v2/transactions/{transaction}/")
    assert (booked["type"], booked["wire_id"]) == ("WIRE", made["id"])
    pool = desk.bank.pool
    assert await pool.fetchval("SELECT count(*) FROM wire_message WHERE wire_id = $1::uuid",
                               made["id"]) == 1  # fmt: skip


async def test_a_wire_needs_a_counterparty_of_its_kind_that_is_verified(desk, world, funded):
    on_us_one = await counterparty(world, desk.team.customer, await world.pocket())
    pending = await wire_counterparty(desk, verification="incoming_wire")
    for to, code in (
        (on_us_one, "counterparty-type-mismatch"), (pending, "counterparty-not-verified"),
    ):  # fmt: skip
        await desk.bank.pool.execute("DELETE FROM rate_window")
        await desk.refused("POST", REQUESTS, wire(funded, 1_00, to), status=422, code=code)


async def test_usdc_is_approved_and_waits_for_its_rail(desk, manager, world, funded):
    wallet = await wire_counterparty(desk, kind="crypto_wallet_address")
    body = wire(funded, 2_000_00, wallet)
    body["transfer"]["type"] = "USDC"
    done = await decide(manager, await desk.post(REQUESTS, body))
    assert (done["status"], done["transfer"]["execution_status"]) == ("APPROVED", "NOT_STARTED")


async def test_nothing_is_carried_out_where_the_sandbox_is_set_so(desk, manager, funded, other):
    made = await desk.post(REQUESTS, on_us(funded, 1_00, to=other))
    settings = desk.bank.settings
    desk.bank.settings = replace(settings, execute_transfers=False)
    done = await decide(manager, made)
    desk.bank.settings = settings
    assert (done["status"], done["transfer"]["execution_status"]) == ("APPROVED", "NOT_STARTED")


async def test_what_was_approved_is_carried_out_though_the_door_was_killed(
    desk, manager, world, funded, other
):
    made = await desk.post(REQUESTS, on_us(funded, 1_00, to=other))
    settings = desk.bank.settings
    desk.bank.settings = replace(settings, execute_transfers=False)
    await decide(manager, made)
    desk.bank.settings = settings
    await agenda.make(
        desk.bank.pool,
        [Appointment(requests.EXECUTE, UUID(made["id"]), UUID(desk.team.customer),
                     await desk.bank.now())],
    )  # fmt: skip
    assert await status_of(desk, made) == ("APPROVED", "NOT_STARTED")
    await world.later(seconds=1)
    await world.later(seconds=1)
    assert await status_of(desk, made) == ("APPROVED", "COMPLETED")


async def test_a_wire_that_is_out_stays_out_whatever_its_partner_may_by_now(
    desk, manager, world, funded
):
    made = await desk.post(REQUESTS, wire(funded, 2_000_00, await wire_counterparty(desk)))
    await decide(manager, made)
    pool, request_id = desk.bank.pool, UUID(made["id"])
    await pool.execute("UPDATE partner SET features = features || '{unverified_wires}'")
    at = await desk.bank.now()
    customer_id = UUID(desk.team.customer)
    await agenda.make(pool, [Appointment(requests.EXECUTE, request_id, customer_id, at)])
    await world.later(seconds=1)
    assert await status_of(desk, made) == ("APPROVED", "PROCESSING")
    assert await pool.fetchval("SELECT count(*) FROM wire_message") == 1


async def test_a_wire_that_cannot_be_sent_any_more_is_told_of_once(desk, manager, funded):
    linked = await wire_counterparty(desk)
    made = await desk.post(REQUESTS, wire(funded, 2_000_00, linked))
    settings = desk.bank.settings
    desk.bank.settings = replace(settings, execute_transfers=False)
    await decide(manager, made)
    desk.bank.settings = settings
    await desk.patch(f"/api/v2/counterparties/{linked}/", {"status": "UNLINKED"})
    for _ in range(2):
        await carry_out_request(desk.bank, UUID(desk.team.customer), UUID(made["id"]))
    shown = (await desk.get(f"{REQUESTS}{made['id']}/"))["transfer"]
    assert (shown["execution_status"], shown["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    events = [each["event"] for each in (await desk.get("/api/v1/events/"))["items"]]
    (told,) = [each for each in events if each["event_type"] == "transfers.wire.out.rejected"]
    assert told["payload"] == {"wire_id": made["id"], "service_account_id": funded.id}
    async with desk.bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=desk.bank.market, vault=desk.bank.vault)
    assert not report.findings


async def test_requests_approved_at_once_are_carried_out_each_by_itself(
    desk, manager, world, funded, other
):
    linked = await wire_counterparty(desk)
    bodies = [wire(funded, cents, linked) for cents in (1_00, 2_00, 3_00)]
    asked = []
    for body in (*bodies, on_us(funded, 4_00, to=other)):
        await desk.bank.pool.execute("DELETE FROM rate_window")
        asked.append(await desk.post(REQUESTS, body))
    settings = desk.bank.settings
    desk.bank.settings = replace(settings, execute_transfers=False)
    for made in asked:
        await decide(manager, made)
    desk.bank.settings = settings
    names = [(UUID(desk.team.customer), UUID(made["id"])) for made in asked]
    await asyncio.gather(*(carry_out_request(desk.bank, *name) for name in names * 2))
    assert [await status_of(desk, made) for made in asked] == [
        *[("APPROVED", "PROCESSING")] * 3, ("APPROVED", "COMPLETED")
    ]  # fmt: skip
    assert await desk.bank.pool.fetchval("SELECT count(*) FROM wire_message") == 3
