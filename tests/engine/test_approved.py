"""What was approved is carried out, once, whoever is killed meanwhile."""

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
