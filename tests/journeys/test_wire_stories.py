"""Wires told over HTTP and files: one settles and bounces, one is rejected, one finds nobody."""

import pytest
from tests.interfaces.apps import lend_partner_app, take_back
from tests.interfaces.partner_client import PartnerClient, new_partner
from tests.journeys.town import Town, bank

from billfold.engine.verify import verify_bank
from billfold.wiring.exchanging import rails_folder

__all__ = ["bank"]

HOME = {
    "type": "wire", "routing_number": "121182904", "identifier": "5647772655",
    "counterparty_name": {"type": "business", "business_name": "Beta LLC"},
    "address": {"street_address": "1 Main St", "city": "Reno", "postal_code": "89501",
                "state": "NV", "country": "US"},
    "verification": {"type": "incoming_wire"},
}  # fmt: skip
ABROAD = {
    **HOME, "type": "international_wire", "routing_number": "COBADEFFXXX",
    "identifier_code": "SWIFT_BIC", "identifier": "DE89370400440532013000",
    "identifier_type": "IBAN",
}  # fmt: skip


CLOCK = "/api/v1/sandbox/clock/advance/"


async def expect_proved(town):
    """Recompute the whole bank."""
    async with town.bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=town.bank.market)
    assert report.is_clean, report.findings


@pytest.fixture
async def told(bank):
    """A town whose partner may send wires."""
    app = lend_partner_app(bank)
    client = PartnerClient(app, await new_partner(bank, features=("wires",)))
    yield Town(bank, app, client, None)
    await client.close()
    await take_back(app)


async def verified(town, customer, asked):
    """Link a counterparty whose account is proven; return its id."""
    linked = await town.post(f"/api/v2/customers/{customer}/counterparties/", asked)
    decided = {"counterparty_id": linked["id"], "status": "APPROVED"}
    await town.post("/api/v1/sandbox/counterparty-verification/", decided, status=202)
    return linked["id"]


async def test_wires_leave_bounce_and_are_rejected(told):
    town = told
    customer = await town.customer()
    pocket = await town.pocket(customer)
    await town.wire(pocket, 500_000_00)
    beta, abroad = [await verified(town, customer, asked) for asked in (HOME, ABROAD)]
    path = f"/api/v1/service-accounts/{pocket}/wires/"

    wire = await town.post(path, {"counterparty_id": beta, "amount_usdc": 40_000_00})
    refused = await town.post(path, {"counterparty_id": abroad, "amount_usdc": 1_000_01})
    assert (wire["status"], refused["status"]) == ("PENDING", "PENDING")
    await town.post(CLOCK, {"seconds": 60}, status=200)
    wire = await town.get(f"/api/v1/wires/{wire['id']}/")
    refused = await town.get(f"/api/v1/wires/{refused['id']}/")
    assert wire["status"] == "COMPLETED"
    assert (refused["status"], refused["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")

    await town.post(CLOCK, {"business_days": 1}, status=200)
    bounce = f"/api/v1/sandbox/wires/{wire['id']}/return/"
    await town.post(bounce, {"reason": "AC04"}, status=202)
    again = await town.post(bounce, {"reason": "AC04"}, status=409)
    assert again["code"] == "wire-already-returned"
    back = (await town.get("/api/v1/wires/", query="direction=INCOMING"))["items"][0]
    assert (back["wire_type"], back["original_wire_id"]) == ("RETURN", wire["id"])
    shown = (await town.get(f"/api/v2/pockets/{pocket}/transactions/"))["items"][0]
    assert (shown["wire_type"], shown["wire_id"]) == ("RETURN", back["id"])

    await expect_proved(town)


async def test_a_wire_for_a_closed_portal_goes_back(told):
    town = told
    pocket = await town.pocket(await town.customer())
    portal = (await town.get(f"/api/v2/pockets/{pocket}/portals/"))["items"][0]
    await town.post(f"/api/v1/service-accounts/{pocket}/portals/{portal['id']}/close/", status=204)
    late = {"account_number": portal["account_number"], "amount_usdc": 7_00, "sender_name": "Acme"}
    await town.post("/api/v1/sandbox/wire/", late, status=202)
    await town.post(CLOCK, {"seconds": 60}, status=200)
    found = await town.get("/api/v1/wires/", query="direction=INCOMING")
    assert (found["items"][0]["status"], found["items"][0]["amount"]["value"]) == ("REJECTED", 700)
    last = max((rails_folder(town.bank.settings) / "wire" / "outbox").iterdir())
    assert b"<Cd>AC04</Cd>" in last.read_bytes()

    await expect_proved(town)
