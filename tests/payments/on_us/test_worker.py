"""Execution of recorded on-us transfers by a worker."""

from uuid import UUID

from tests.payments.on_us.test_routes import PATH, payee, requested_amount, wait_for_transfer

from billfold.payments.on_us import store
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.on_us.worker import execute_all_pending
from billfold.platform import ids


async def test_an_accepted_transfer_is_executed_by_a_worker(world):
    pocket, target = await world.funded(10_000_00), await world.pocket()
    counterparty = await payee(world, pocket, target)
    body = {
        "type": "PEER_TO_PEER",
        "from_account": {"id": pocket.id},
        "amount": requested_amount(700_00),
        "counterparty_id": counterparty,
        "async_mode": True,
        "description": "late",
        "end_to_end_identification": "E2E-9",
    }
    made = await world.post(PATH, body)
    row = await store.get_transfer(world.bank.pool, UUID(pocket.customer), UUID(made["id"]))
    assert row.payee_id == UUID(target.customer)
    assert row.order.description == "late"
    await execute_all_pending(world.bank)
    await execute_all_pending(world.bank)
    assert (await wait_for_transfer(world, made["id"]))["status"] == "COMPLETED"
    (received,) = (await world.get(f"{target.path}transactions/"))["items"]
    assert (received["amount"]["value"], received["description"]) == (700_00, "late")
    assert received["end_to_end_identification"] == "E2E-9"
    assert received["counterparty"]["pocket_id"] == pocket.id
    assert await store.list_pending(world.bank.pool) == []


async def test_closing_a_pocket_with_a_pending_transfer_is_refused(world):
    pocket = await world.funded(10_000_00)
    other, empty = (await world.pocket(pocket.customer), await world.pocket(pocket.customer))
    waiting = TransferOnUs(
        caller="test",
        key=ids.new(),
        customers=(UUID(pocket.customer),),
        transfer_id=None,
        type="INTERNAL_REALLOCATION",
        from_pocket_id=UUID(other.id),
        to_pocket_id=UUID(empty.id),
        amount=100_00,
        partner_id=world.partner.partner_id,
        later=True,
    )
    await world.bank.engine.submit(waiting)
    path = f"/api/v2/customers/{empty.customer}/pockets/{empty.id}/"
    closing = {"status": "CLOSED", "closure_reason": "INACTIVITY"}
    await world.refused("PATCH", path, closing, status=422, code="pocket-not-empty")
