"""Transfers as they are stored, by this release and by those that stored the request itself."""

import msgspec
from tests.interfaces.partner_api.conftest import desk, desks
from tests.interfaces.partner_api.test_transfers import PATH, account, asked, payee
from tests.whole_bank import bank

from billfold.engine.pending import carry_out_pending
from billfold.interfaces.partner_api.transfers import CreateTransfer
from billfold.kit import ids

__all__ = ["bank", "desk", "desks"]

_STORE = "UPDATE transfer SET request = $2::text::json WHERE transfer_id = $1::text::uuid"


async def store_request(desk, made, body):
    """Store the request as earlier releases did."""
    request = msgspec.json.encode(msgspec.convert(body, CreateTransfer)).decode()
    await desk.bank.pool.execute(_STORE, made["id"], request)


async def test_a_row_of_an_earlier_release_is_shown_and_repeated_as_before(desk):
    pocket = await desk.funded(10_000_00)
    other = await desk.pocket(pocket.customer)
    body = {
        "type": "INTERNAL_REALLOCATION", "from_account": account(pocket),
        "to_account": account(other), "amount": asked(100_00), "transfer_id": str(ids.new()),
        "description": "Reserve", "end_to_end_identification": "E2E-2",
        "transfer_type": "SECURITY_TRANSFER",
    }  # fmt: skip
    made = await desk.post(PATH, body)
    await store_request(desk, made, body)
    assert await desk.get(f"{PATH}{made['id']}/") == made
    assert await desk.post(PATH, body) == made
    another = body | {"amount": asked(200_00)}
    await desk.refused("POST", PATH, another, status=409, code="duplicate-id")


async def test_a_row_of_an_earlier_release_that_waits_is_carried_out(desk):
    pocket, target = await desk.funded(10_000_00), await desk.pocket()
    body = {
        "type": "PEER_TO_PEER", "from_account": account(pocket), "amount": asked(700_00),
        "counterparty_id": await payee(desk, pocket, target), "async_mode": True,
        "description": "late",
    }  # fmt: skip
    made = await desk.post(PATH, body)
    await store_request(desk, made, body)
    await carry_out_pending(desk.bank)
    await desk.bank.background.close()
    shown = await desk.get(f"{PATH}{made['id']}/")
    assert (shown["status"], shown["transfer"]["description"]) == ("COMPLETED", "late")
    assert shown["transfer"]["counterparty_id"] == body["counterparty_id"]
    (received,) = (await desk.get(f"{target.path}transactions/"))["items"]
    assert (received["amount"]["value"], received["description"]) == (700_00, "late")
