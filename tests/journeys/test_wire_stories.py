"""Wires told over HTTP and files: they wait, settle, bounce, are rejected, find nobody."""

import pytest
from tests.support.commands import ADDRESS

from billfold.wiring.providers import rail_files_folder

HOME = {
    "type": "wire",
    "routing_number": "121182904",
    "identifier": "5647772655",
    "counterparty_name": {"type": "business", "business_name": "Beta LLC"},
    "address": ADDRESS,
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
    """A customer of the partner with money and people abroad and at home to pay."""

    def __init__(self, partner, pocket):
        self.partner, self.pocket = partner, pocket
        self.path = f"/api/v1/service-accounts/{pocket.id}/wires/"

    async def payee(self, asked):
        """Link a counterparty whose account is proven; return its id."""
        path = f"/api/v2/customers/{self.pocket.customer}/counterparties/"
        linked = await self.partner.post(path, asked)
        decided = {"counterparty_id": linked["id"], "status": "APPROVED"}
        await self.partner.post("/api/v1/sandbox/counterparty-verification/", decided, status=202)
        return linked["id"]

    async def send(self, payee, cents):
        made = await self.partner.post(self.path, {"counterparty_id": payee, "amount_usdc": cents})
        assert made["status"] == "PENDING"
        return made["id"]

    async def wire(self, wire_id):
        return await self.partner.get(f"/api/v1/wires/{wire_id}/")

    async def transactions(self):
        shown = await self.partner.get(f"{self.pocket.path}transactions/")
        return [each for each in shown["items"] if each["type"] == "WIRE"]

    def last_file(self):
        """What the last file says that we handed over."""
        return max(self.folder("outbox").iterdir()).read_text()

    def folder(self, name):
        return rail_files_folder(self.partner.bank.settings) / "wire" / name


@pytest.fixture
async def sender(partner):
    return Sender(partner, await partner.funded(500_000_00))


async def test_a_wire_of_a_friday_evening_goes_when_the_holiday_is_over(sender):
    partner, beta = sender.partner, await sender.payee(HOME)
    await partner.until(FRIDAY_EVENING)
    wire_id = await sender.send(beta, 40_000_00)
    booked = (await sender.transactions())[0]
    assert (booked["status"], booked["amount"]["value"]) == ("BOOKED", 40_000_00)
    assert not sender.folder("outbox").exists()

    await partner.until(LABOR_DAY_NOON)
    assert (await sender.wire(wire_id))["status"] == "PENDING"
    await partner.until(TUESDAY_AT_EIGHT)
    gone = await sender.wire(wire_id)
    assert (gone["status"], gone["imad"][:8]) == ("PROCESSING", "20250902")
    assert "<IntrBkSttlmDt>2025-09-02</IntrBkSttlmDt>" in sender.last_file()
    await partner.later(seconds=5)
    settled = await sender.wire(wire_id)
    assert (settled["status"], settled["time_settled"]) == ("COMPLETED", "2025-09-02T12:00:05Z")
    assert (await sender.transactions())[0]["status"] == "SETTLED"
    await partner.expect_settled()


async def test_a_wire_bounces_a_day_later_once(sender):
    partner, beta = sender.partner, await sender.payee(HOME)
    before = await partner.value(sender.pocket)
    wire_id = await sender.send(beta, 40_000_00)
    await partner.later(seconds=60)
    await partner.days(1)

    bounce = f"/api/v1/sandbox/wires/{wire_id}/return/"
    await partner.post(bounce, {"reason": "AC04"}, status=202)
    again = await partner.post(bounce, {"reason": "AC04"}, status=409)
    assert again["code"] == "wire-already-returned"
    back = (await partner.get("/api/v1/wires/", {"direction": "INCOMING"}))["items"][0]
    assert (back["wire_type"], back["original_wire_id"]) == ("RETURN", wire_id)
    assert (back["status"], back["amount"]["value"]) == ("COMPLETED", 40_000_00)
    assert (await sender.wire(wire_id))["status"] == "COMPLETED"
    shown = (await sender.transactions())[0]
    assert (shown["wire_type"], shown["wire_id"]) == ("RETURN", back["id"])
    assert abs(await partner.value(sender.pocket) - before) < 200_00
    await partner.expect_settled()


async def test_a_wire_comes_back_less_what_a_bank_on_its_way_kept(sender):
    partner, abroad = sender.partner, await sender.payee(ABROAD)
    wire_id = await sender.send(abroad, 1_000_00)
    await partner.later(seconds=60)
    bounce = f"/api/v1/sandbox/wires/{wire_id}/return/"
    wrong = await partner.post(bounce, {"charges_usdc": 1_000_00}, status=422)
    assert wrong["detail"][0]["loc"] == ["body", "charges_usdc"]
    await partner.post(bounce, {"reason": "AC04", "charges_usdc": 25_00}, status=202)
    back = (await partner.get("/api/v1/wires/", {"direction": "INCOMING"}))["items"][0]
    assert (back["wire_type"], back["amount"]["value"]) == ("RETURN", 975_00)
    assert back["description"].endswith(", less $25.00 in charges")
    await partner.expect_settled()


async def test_a_wire_abroad_is_rejected_by_the_correspondent(sender):
    partner, abroad = sender.partner, await sender.payee(ABROAD)
    wire_id = await sender.send(abroad, 1_000_00)
    path = f"/api/v1/sandbox/wires/{wire_id}/"
    await partner.post(f"{path}submit/", {}, status=202)
    sent = sender.last_file()
    assert partner.bank.settings.correspondent_routing_number in sent
    assert "COBADEFFXXX" in sent
    await partner.post(f"{path}reject/", {"reason": "AC03"}, status=202)
    rejected = await sender.wire(wire_id)
    assert (rejected["status"], rejected["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    assert rejected["time_settled"] is None
    back, out, _ = await sender.transactions()
    assert (back["wire_type"], out["wire_type"]) == ("REVERSAL", "PAYMENT")
    assert back["wire_id"] == out["wire_id"] == wire_id
    late = await partner.post(f"{path}return/", {"reason": "AC04"}, status=409)
    assert late["code"] == "wire-not-completed"
    await partner.expect_settled()


async def test_an_amount_that_ends_in_01_is_rejected_by_the_bank_of_whoever_is_paid(sender):
    wire_id = await sender.send(await sender.payee(ABROAD), 1_000_01)
    await sender.partner.later(seconds=60)
    assert (await sender.wire(wire_id))["reason"] == "ACCOUNT_UNAVAILABLE"
    await sender.partner.expect_settled()


async def test_a_wire_for_a_closed_portal_goes_back(sender):
    partner, pocket = sender.partner, sender.pocket
    portal = (await partner.get(f"{pocket.path}portals/"))["items"][0]
    await partner.post(f"/api/v1/service-accounts/{pocket.id}/portals/{portal['id']}/close/", {}, status=204)
    late = {"account_number": portal["account_number"], "amount_usdc": 7_00, "sender_name": "Acme"}
    await partner.post("/api/v1/sandbox/wire/", late, status=202)
    await partner.later(seconds=60)
    came = (await partner.get("/api/v1/wires/", {"direction": "INCOMING"}))["items"]
    assert ("REJECTED", 7_00) in {(each["status"], each["amount"]["value"]) for each in came}
    assert "<Cd>AC04</Cd>" in sender.last_file()
    await partner.expect_settled()


async def test_a_wire_for_an_unknown_account_is_returned(sender):
    stray = {"account_number": "999999999999", "amount_usdc": 7_00, "sender_name": "Acme"}
    await sender.partner.post("/api/v1/sandbox/wire/", stray, status=202)
    await sender.partner.later(seconds=60)
    await sender.partner.expect_settled()
