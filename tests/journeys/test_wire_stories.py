"""Wires over HTTP and files: they wait, settle, come back, are rejected, find no account."""

import asyncio

import pytest
from tests.support import payees

from billfold.payments.clearing.store import balances
from billfold.payments.clearing.worker import close_bank_days
from billfold.platform import ids
from billfold.wiring.providers import rail_files_folder

FRIDAY_EVENING = "2025-08-29T18:30:00-04:00"
LABOR_DAY_NOON = "2025-09-01T12:00:00-04:00"
TUESDAY_AT_EIGHT = "2025-09-02T08:00:00-04:00"
WIRES, SANDBOX = "/api/v1/wires/", "/api/v1/sandbox/"


class Sender:
    """A customer with money, whose partner may send wires."""

    def __init__(self, desk, pocket):
        self.desk, self.pocket = desk, pocket
        self.outbox = rail_files_folder(desk.bank.settings) / "wire" / "outbox"

    async def send(self, counterparty, cents):
        """Send a wire to an account that is verified; return its id and where the sandbox moves it."""
        desk, customer = self.desk, self.pocket.customer
        linked = await desk.post(f"/api/v2/customers/{customer}/counterparties/", counterparty)
        verified = {"counterparty_id": linked["id"], "status": "APPROVED"}
        await self.sandbox("counterparty-verification/", **verified)
        body = {"counterparty_id": linked["id"], "amount_usdc": cents}
        made = await desk.post(f"/api/v1/service-accounts/{self.pocket.id}/wires/", body)
        assert made["status"] == "PENDING"
        return made["id"], f"wires/{made['id']}/"

    async def sandbox(self, path, **body):
        await self.desk.ask("POST", f"{SANDBOX}{path}", body, status=202)

    async def wire(self, wire_id):
        return await self.desk.get(f"{WIRES}{wire_id}/")

    async def incoming(self):
        return (await self.desk.get(WIRES, {"direction": "INCOMING"}))["items"]

    async def transactions(self):
        shown = await self.desk.get(f"{self.pocket.path}transactions/")
        return [each for each in shown["items"] if each["type"] == "WIRE"]

    def last_file(self):
        """Return the text of the last file that was transmitted."""
        return max(self.outbox.iterdir()).read_text()


@pytest.fixture
async def sender(bank, partner_desks):
    """A sender; a few days after the story every rail must be at zero."""
    desk = await partner_desks("acme", features=("wires",))
    yield Sender(desk, await desk.funded(500_000_00))
    await desk.days(3)
    await close_bank_days(bank, await bank.now())
    assert not any((await balances(bank.pool)).values())


async def test_a_wire_of_a_friday_evening_is_sent_after_the_holiday_and_returned_once(sender):
    desk = sender.desk
    before = await desk.value(sender.pocket)
    await desk.until(FRIDAY_EVENING)
    wire_id, path = await sender.send(payees.wire(), 40_000_00)
    booked = (await sender.transactions())[0]
    assert (booked["status"], booked["amount"]["value"]) == ("BOOKED", 40_000_00)
    assert not sender.outbox.exists()

    await desk.until(LABOR_DAY_NOON)
    assert (await sender.wire(wire_id))["status"] == "PENDING"
    await desk.until(TUESDAY_AT_EIGHT)
    gone = await sender.wire(wire_id)
    assert (gone["status"], gone["imad"][:8]) == ("PROCESSING", "20250902")
    assert "<IntrBkSttlmDt>2025-09-02</IntrBkSttlmDt>" in sender.last_file()
    await desk.later(seconds=5)
    settled = await sender.wire(wire_id)
    assert (settled["status"], settled["time_settled"]) == ("COMPLETED", "2025-09-02T12:00:05Z")
    assert (await sender.transactions())[0]["status"] == "SETTLED"

    await desk.days(1)
    await sender.sandbox(f"{path}return/", reason="AC04")
    await desk.refused("POST", f"{SANDBOX}{path}return/", {"reason": "AC04"}, status=409, code="wire-already-returned")
    back = (await sender.incoming())[0]
    assert (back["wire_type"], back["original_wire_id"]) == ("RETURN", wire_id)
    assert (back["status"], back["amount"]["value"]) == ("COMPLETED", 40_000_00)
    assert (await sender.wire(wire_id))["status"] == "COMPLETED"
    shown = (await sender.transactions())[0]
    assert (shown["wire_type"], shown["wire_id"]) == ("RETURN", back["id"])
    assert await desk.value(sender.pocket) > before


async def test_concurrent_requests_with_one_wire_id_create_one_wire_and_return_the_same_response(sender):
    desk, pocket = sender.desk, sender.pocket
    linked = await desk.post(f"/api/v2/customers/{pocket.customer}/counterparties/", payees.wire())
    await sender.sandbox("counterparty-verification/", counterparty_id=linked["id"], status="APPROVED")
    path, body = f"/api/v1/service-accounts/{pocket.id}/wires/", {"counterparty_id": linked["id"]}
    body["wire_id"], cents = str(ids.new()), 300_000_00  # twice is more than there is
    spellings = {"amount_usdc": cents}, {"amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": cents}}
    answers = await asyncio.gather(*(desk.client.post(path, body | spellings[nth % 2]) for nth in range(20)))
    assert [each.status_code for each in answers] == [201] * 20
    assert len({each.text for each in answers}) == 1
    assert [each["direction"] for each in await sender.transactions()] == ["DEBIT", "CREDIT"]
    another = body | {"amount_usdc": cents + 1}
    await desk.refused("POST", path, another, status=409, code="duplicate-id")


async def test_an_international_wire_is_rejected_by_the_correspondent(sender):
    desk = sender.desk
    wire_id, path = await sender.send(payees.abroad(), 1_000_00)
    await sender.sandbox(f"{path}submit/")
    sent = sender.last_file()
    assert desk.bank.settings.correspondent_routing_number in sent
    assert "COBADEFFXXX" in sent
    await sender.sandbox(f"{path}reject/", reason="AC03")
    rejected = await sender.wire(wire_id)
    assert (rejected["status"], rejected["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    assert rejected["time_settled"] is None
    back, out, _ = await sender.transactions()
    assert (back["wire_type"], out["wire_type"]) == ("REVERSAL", "PAYMENT")
    assert back["wire_id"] == out["wire_id"] == wire_id
    await desk.refused("POST", f"{SANDBOX}{path}return/", {"reason": "AC04"}, status=409, code="wire-not-completed")


async def test_wires_to_a_closed_portal_or_an_unknown_account_are_returned(sender):
    desk, pocket = sender.desk, sender.pocket
    portal = await desk.get(f"{pocket.path}portals/{pocket.portal}/")
    await desk.ask("POST", f"/api/v1/service-accounts/{pocket.id}/portals/{pocket.portal}/close/", b"{}", status=204)
    for account_number in (portal["account_number"], "999999999999"):
        await sender.sandbox("wire/", account_number=account_number, amount_usdc=7_00, sender_name="Acme")
    await desk.later(minutes=1)
    assert ("REJECTED", 7_00) in {(each["status"], each["amount"]["value"]) for each in await sender.incoming()}
    sent = "".join(path.read_text() for path in sender.outbox.iterdir())
    assert "<Cd>AC04</Cd>" in sent
    assert "<Cd>AC01</Cd>" in sent


async def test_a_wire_is_cancelled_while_it_waits_and_its_fee_comes_back(sender):
    desk = sender.desk
    await desk.until(FRIDAY_EVENING)
    before = await desk.value(sender.pocket)
    wire_id, _ = await sender.send(payees.wire(), 40_000_00)
    cancelled = await desk.post(f"{WIRES}{wire_id}/cancel/", {}, status=200)
    assert (cancelled["status"], cancelled["reason"]) == ("REJECTED", "CANCELED")
    await desk.refused("POST", f"{WIRES}{wire_id}/cancel/", {}, status=409, code="wire-not-pending")
    assert [each["title"] for each in (await sender.transactions())[:2]] == ["Wire reversed", "Wire sent"]
    assert before - 40_00 < await desk.value(sender.pocket) <= before
    await desk.until(TUESDAY_AT_EIGHT)
    assert not sender.outbox.exists()
