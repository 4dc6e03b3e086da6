"""The server dies at many steps of an upload: half a file is never visible, and it can be sent again."""

import asyncio
from itertools import count

import pytest
from tests.simulation.dying_servers import FILE, DyingServers, open_server_bank, send
from tests.support.apps import lend_partner_app, take_back
from tests.support.small_rails import Customer
from tests.support.whole_bank import close_bank
from tests.support.world import PartnerClient, new_partner

from billfold.documents.store import fetch_opened, get_document
from billfold.platform import ids
from billfold.verify.runner import verify_bank

PROOF = "WIRE_COUNTERPARTY_VERIFICATION"


@pytest.fixture
async def anna(bank_dsn, tmp_path):
    """A customer, and the calls of the partner she belongs to."""
    bank = await open_server_bank(bank_dsn, tmp_path)
    partner = await new_partner(bank)
    customer = Customer(bank, "Anna")
    await customer.new_customer("Anna", partner_id=partner.partner_id)
    app = lend_partner_app(bank)
    client = PartnerClient(app, partner)
    yield customer, client
    await client.close()
    await take_back(app)
    await close_bank(bank)


async def test_an_upload_interrupted_by_a_dying_server_is_never_visible(anna, bank_dsn, tmp_path):
    customer, client = anna
    bank = customer.bank
    path = f"/api/v1/customers/{customer.id}/documents/{PROOF}/file/"
    servers = DyingServers(bank_dsn, tmp_path, client.partner, path=path)
    made: set[str] = set()
    try:
        for steps in count(1, 2):
            key = ids.new()
            answered = await asyncio.to_thread(servers.upload, steps, key)
            seen = await whole_documents(bank, customer.id)
            assert len(seen - made) <= 1
            # Ten seconds later, after every timeout.
            await bank.pool.execute("UPDATE idempotency_key SET lease_until = claimed_at")
            again = await send(client, path, key, step=lambda: None)
            assert again.status_code == 201, again.text
            made.add(again.json()["document_id"])
            assert await whole_documents(bank, customer.id) == made >= seen
            if answered:
                break
    finally:
        servers.close()
    assert steps > 8, "the servers die before they have done anything"
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    assert report.is_clean, report.findings


async def whole_documents(bank, customer_id):
    """Return the ids of all documents; the file of each is there as it was sent."""
    found = set()
    for row in await bank.pool.fetch("SELECT document_id FROM document"):
        document = await get_document(bank.pool, row["document_id"], customer_id)
        assert await fetch_opened(bank, document) == FILE
        found.add(str(row["document_id"]))
    return found
