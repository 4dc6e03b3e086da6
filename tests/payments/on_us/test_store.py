"""Transfers as they are stored, by this release and by those that stored the request itself."""

import msgspec
from tests.payments.on_us.test_routes import PATH, reallocation, requested

from billfold.payments.on_us.schemas import CreateTransfer
from billfold.platform import ids

_STORE = "UPDATE transfer SET request = $2::text::json WHERE transfer_id = $1::text::uuid"


async def store_request(world, made, body):
    """Store the request as earlier releases did."""
    request = msgspec.json.encode(msgspec.convert(body, CreateTransfer)).decode()
    await world.bank.pool.execute(_STORE, made["id"], request)


async def test_a_row_of_an_earlier_release_is_shown_and_repeated_as_before(world):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    texts = {"description": "Reserve", "end_to_end_identification": "E2E-2", "transfer_type": "SECURITY_TRANSFER"}
    body = reallocation(pocket, other, transfer_id=str(ids.new()), **texts)
    made = await world.post(PATH, body)
    await store_request(world, made, body)
    assert await world.get(f"{PATH}{made['id']}/") == made
    assert await world.post(PATH, body) == made
    another = body | {"amount": requested(200_00)}
    await world.refused("POST", PATH, another, status=409, code="duplicate-id")
