"""A wire through the engine: what is drafted is what the tables take, and the bank stays proved."""

from uuid import UUID

import pytest

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.payments.wires.commands import CompleteWire, RejectWire, SendWire, SubmitWire
from billfold.payments.wires.store.wires import get_wire
from billfold.platform import ids
from billfold.platform.errors import Refused
from billfold.verify.runner import verify_bank

IMAD = "20250602BLFDQGV1000001"


async def link(bank, customer_id):
    """Give a customer a verified counterparty; return its id."""
    command = AddCounterparty(
        caller="test",
        key=ids.new(),
        customers=(customer_id,),
        type="wire",
        counterparty_name={"type": "business", "business_name": "Beta LLC"},
        details={
            "routing_number": "121182904",
            "identifier": "5647772655",
            "address": {
                "street_address": "1 Main St",
                "city": "Reno",
                "postal_code": "89501",
                "state": "NV",
                "country": "US",
            },
        },
        verification="pre_verified",
    )
    return UUID((await bank.engine.submit(command)).outcome["counterparty_id"])


@pytest.fixture
async def holder(bank, new_holder):
    holder = await new_holder()
    await holder.deposit(100_000_00)
    holder.counterparty_id = await link(bank, holder.customer_id)
    return holder


async def do(holder, kind, references, **fields):
    command = kind(caller="test", key=ids.new(), customers=(holder.customer_id,), references=(references,), **fields)
    return (await holder.bank.engine.submit(command)).outcome


async def send(holder, cents, wire_id=None):
    return await do(
        holder,
        SendWire,
        holder.counterparty_id,
        wire_id=wire_id,
        pocket_id=holder.pocket_id,
        amount=cents,
        counterparty_id=holder.counterparty_id,
    )


async def test_wires_settle_and_are_returned_and_verify_is_clean(bank, holder):
    first, second = [UUID((await send(holder, 1_000_00))["wire_id"]) for _ in range(2)]
    for wire_id in (first, second):
        await do(holder, SubmitWire, wire_id, wire_id=wire_id, imad=IMAD)
    await do(holder, CompleteWire, first, wire_id=first)
    await do(holder, RejectWire, second, wire_id=second, code="RR04")

    settled = await get_wire(bank.pool, holder.customer_id, first)
    rejected = await get_wire(bank.pool, holder.customer_id, second)
    assert (settled.status, settled.imad) == ("COMPLETED", IMAD)
    assert (rejected.status, rejected.reason) == ("REJECTED", "SANCTION_SCREEN_FAILED")
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market)
    assert report.is_clean, report.findings


async def test_an_id_belongs_to_one_wire(holder):
    wire_id = ids.new()
    await send(holder, 1_000_00, wire_id)

    with pytest.raises(Refused) as refused:
        await send(holder, 2_000_00, wire_id)

    assert refused.value.code == "duplicate-id"
