"""Wires told over HTTP and files: they wait, settle, bounce, are rejected, find nobody."""

import pytest
from tests.journeys.two_partners import Town
from tests.support.apps import lend_partner_app, take_back
from tests.support.partner_client import PartnerClient, new_partner

from billfold.wiring.providers import rail_files_folder

HOME = {
    "type": "wire",
    "routing_number": "121182904",
    "identifier": "5647772655",
    "counterparty_name": {"type": "business", "business_name": "Beta LLC"},
    "address": {"street_address": "1 Main St", "city": "Reno", "postal_code": "89501", "state": "NV", "country": "US"},
    "verification": {"type": "incoming_wire"},
}
ABROAD = {
    **HOME,
    "type": "international_wire",
    "routing_number": "COBADEFFXXX",
    "identifier_code": "SWIFT_BIC",
    "identifier": "DE89370400440532013000",
    "identifier_type": "IBAN",
}


FRIDAY_EVENING = "2025-08-29T18:30:00-04:00"
LABOR_DAY_NOON = "2025-09-01T12:00:00-04:00"
TUESDAY_AT_EIGHT = "2025-09-02T08:00:00-04:00"


class Sender:
    """A customer of the town with money and people abroad and at home to pay."""

    def __init__(self, town, customer, pocket):
        self.town, self.customer, self.pocket = town, customer, pocket
        self.path = f"/api/v1/service-accounts/{pocket}/wires/"

    async def payee(self, asked):
        """Link a counterparty whose account is proven; return its id."""
        path = f"/api/v2/customers/{self.customer}/counterparties/"
        linked = await self.town.post(path, asked)
        decided = {"counterparty_id": linked["id"], "status": "APPROVED"}
        await self.town.post("/api/v1/sandbox/counterparty-verification/", decided, status=202)
        return linked["id"]

    async def send(self, payee, cents):
        made = await self.town.post(self.path, {"counterparty_id": payee, "amount_usdc": cents})
        assert made["status"] == "PENDING"
        return made["id"]

    async def wire(self, wire_id):
        return await self.town.get(f"/api/v1/wires/{wire_id}/")

    async def transactions(self):
        shown = await self.town.get(f"/api/v2/pockets/{self.pocket}/transactions/")
        return [each for each in shown["items"] if each["type"] == "WIRE"]

    def last_file(self):
        """What the last file says that we handed over."""
        return max(self.folder("outbox").iterdir()).read_text()

    def folder(self, name):
        return rail_files_folder(self.town.bank.settings) / "wire" / name


@pytest.fixture
async def sender(bank):
    """A sender of a town whose partner may send wires."""
    app = lend_partner_app(bank)
    client = PartnerClient(app, await new_partner(bank, features=("wires",)))
    town = Town(bank, app, client, foreigner=None)
    customer = await town.customer()
    pocket = await town.pocket(customer)
    await town.wire(pocket, 500_000_00)
    yield Sender(town, customer, pocket)
    await client.close()
    await take_back(app)


async def test_a_wire_of_a_friday_evening_goes_when_the_holiday_is_over(sender):
    town, beta = sender.town, await sender.payee(HOME)
    await town.advance(until=FRIDAY_EVENING)
    wire_id = await sender.send(beta, 40_000_00)
    booked = (await sender.transactions())[0]
    assert (booked["status"], booked["amount"]["value"]) == ("BOOKED", 40_000_00)
    assert not sender.folder("outbox").exists()

    await town.advance(until=LABOR_DAY_NOON)
    assert (await sender.wire(wire_id))["status"] == "PENDING"
    await town.advance(until=TUESDAY_AT_EIGHT)
    gone = await sender.wire(wire_id)
    assert (gone["status"], gone["imad"][:8]) == ("PROCESSING", "20250902")
    assert "<IntrBkSttlmDt>2025-09-02</IntrBkSttlmDt>" in sender.last_file()
    await town.advance(seconds=5)
    settled = await sender.wire(wire_id)
    assert (settled["status"], settled["time_settled"]) == ("COMPLETED", "2025-09-02T12:00:05Z")
    assert (await sender.transactions())[0]["status"] == "SETTLED"
    await town.expect_settled()


async def test_a_wire_bounces_a_day_later_once(sender):
    town, beta = sender.town, await sender.payee(HOME)
    before = await town.value(sender.pocket)
    wire_id = await sender.send(beta, 40_000_00)
    await town.advance(seconds=60)
    await town.advance(business_days=1)

    bounce = f"/api/v1/sandbox/wires/{wire_id}/return/"
    await town.post(bounce, {"reason": "AC04"}, status=202)
    again = await town.post(bounce, {"reason": "AC04"}, status=409)
    assert again["code"] == "wire-already-returned"
    back = (await town.get("/api/v1/wires/", query="direction=INCOMING"))["items"][0]
    assert (back["wire_type"], back["original_wire_id"]) == ("RETURN", wire_id)
    assert (back["status"], back["amount"]["value"]) == ("COMPLETED", 40_000_00)
    assert (await sender.wire(wire_id))["status"] == "COMPLETED"
    shown = (await sender.transactions())[0]
    assert (shown["wire_type"], shown["wire_id"]) == ("RETURN", back["id"])
    assert abs(await town.value(sender.pocket) - before) < 200_00
    await town.expect_settled()


async def test_a_wire_comes_back_less_what_a_bank_on_its_way_kept(sender):
    town, abroad = sender.town, await sender.payee(ABROAD)
    wire_id = await sender.send(abroad, 1_000_00)
    await town.advance(seconds=60)
    bounce = f"/api/v1/sandbox/wires/{wire_id}/return/"
    wrong = await town.post(bounce, {"charges_usdc": 1_000_00}, status=422)
    assert wrong["detail"][0]["loc"] == ["body", "charges_usdc"]
    await town.post(bounce, {"reason": "AC04", "charges_usdc": 25_00}, status=202)
    back = (await town.get("/api/v1/wires/", query="direction=INCOMING"))["items"][0]
    assert (back["wire_type"], back["amount"]["value"]) == ("RETURN", 975_00)
    assert back["description"].endswith(", less $25.00 in charges")
    await town.expect_settled()


async def test_a_wire_abroad_is_rejected_by_the_correspondent(sender):
    town, abroad = sender.town, await sender.payee(ABROAD)
    wire_id = await sender.send(abroad, 1_000_00)
    path = f"/api/v1/sandbox/wires/{wire_id}/"
    await town.post(f"{path}submit/", {}, status=202)
    sent = sender.last_file()
    assert town.bank.settings.correspondent_routing_number in sent
    assert "COBADEFFXXX" in sent
    await town.post(f"{path}reject/", {"reason": "AC03"}, status=202)
    rejected = await sender.wire(wire_id)
    assert (rejected["status"], rejected["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    assert rejected["time_settled"] is None
    back, out, _ = await sender.transactions()
    assert (back["wire_type"], out["wire_type"]) == ("REVERSAL", "PAYMENT")
    assert back["wire_id"] == out["wire_id"] == wire_id
    late = await town.post(f"{path}return/", {"reason": "AC04"}, status=409)
    assert late["code"] == "wire-not-completed"
    await town.expect_settled()


async def test_an_amount_that_ends_in_01_is_rejected_by_the_bank_of_whoever_is_paid(sender):
    wire_id = await sender.send(await sender.payee(ABROAD), 1_000_01)
    await sender.town.advance(seconds=60)
    assert (await sender.wire(wire_id))["reason"] == "ACCOUNT_UNAVAILABLE"
    await sender.town.expect_settled()


async def test_a_wire_for_a_closed_portal_goes_back(sender):
    town, pocket = sender.town, sender.pocket
    portal = (await town.get(f"/api/v2/pockets/{pocket}/portals/"))["items"][0]
    await town.post(f"/api/v1/service-accounts/{pocket}/portals/{portal['id']}/close/", status=204)
    late = {"account_number": portal["account_number"], "amount_usdc": 7_00, "sender_name": "Acme"}
    await town.post("/api/v1/sandbox/wire/", late, status=202)
    await town.advance(seconds=60)
    came = (await town.get("/api/v1/wires/", query="direction=INCOMING"))["items"]
    assert ("REJECTED", 7_00) in {(each["status"], each["amount"]["value"]) for each in came}
    assert "<Cd>AC04</Cd>" in sender.last_file()
    await town.expect_settled()


async def test_a_wire_for_an_unknown_account_is_returned(sender):
    stray = {"account_number": "999999999999", "amount_usdc": 7_00, "sender_name": "Acme"}
    await sender.town.post("/api/v1/sandbox/wire/", stray, status=202)
    await sender.town.advance(seconds=60)
    await sender.town.expect_settled()
