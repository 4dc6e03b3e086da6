"""Money comes and goes by ACH: told over HTTP and in the files of the network alone."""

import json
from datetime import date

import pytest
from tests.support.payees import ach as an_account

from billfold.payments.ach.nacha.reader import read_file
from billfold.payments.ach.nacha.types import ReturnAddenda
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.clearing.cli import clearing_report
from billfold.payments.clearing.types import RAILS
from billfold.payments.settlement.worker import close_bank_days
from billfold.platform.clock import ClockState, wall_now, write_clock
from billfold.platform.dates import et_instant


class Bookkeeper:
    """A company that pays and collects by ACH, and reads the files."""

    def __init__(self, partner, pocket):
        self.partner, self.pocket = partner, pocket
        self.path = f"/api/v1/service-accounts/{pocket.id}/ach-originating/"
        self.folder = partner.bank.settings.rails_dir / "ach"
        self.count = 0

    async def payee(self, routing="021000021", name="Ada"):
        """Verify an account by a wire from it, and return the counterparty's id."""
        self.count += 1
        number = f"5647772{self.count:05}"
        who = {"type": "individual", "first_name": name, "last_name": f"Worker {self.count}"}
        sent = an_account(counterparty_name=who, routing_number=routing, account_number=number)
        made = await self.partner.post(f"/api/v2/customers/{self.pocket.customer}/counterparties/", sent)
        wire = {
            "portal_id": self.pocket.portal,
            "amount_usdc": 1_00,
            "sender_name": name,
            "sender_account_number": number,
            "sender_routing_number": routing,
        }
        await self.partner.post("/api/v1/sandbox/wire/", wire, status=202)
        return made["id"]

    async def pay(self, payee, cents, *, status=200, **fields):
        return await self.ask("CREDIT", payee, cents, status=status, **fields)

    async def collect(self, payee, cents, *, status=200, **fields):
        return await self.ask("DEBIT", payee, cents, status=status, **fields)

    async def ask(self, direction, payee, cents, *, status, **fields):
        body = {"counterparty_id": payee, "direction": direction, "amount_usdc": cents, **fields}
        return await self.partner.post(self.path, body, status=status)

    async def now(self, made):
        return await self.partner.get(f"{self.path}{made['id']}/")

    async def move(self, made, move, *, status=202, **fields):
        path = f"/api/v1/sandbox/ach/{made['id']}/"
        return await self.partner.post(path, {"move": move, **fields}, status=status)

    async def settled(self, **wanted):
        """How the first payment stands in a list of transactions, None when it is not there."""
        told = (await self.partner.get(f"{self.pocket.path}transactions/", wanted))["items"]
        payments = [each for each in told if each["title"] == "ACH payment"]
        return (payments[-1]["status"], payments[-1]["time_settled"]) if payments else None

    async def titles(self):
        told = await self.partner.get(f"{self.pocket.path}transactions/")
        return [each["title"] for each in told["items"] if each["type"] == "ACH"]

    def files(self):
        """Every file that we handed over, in order."""
        paths = sorted((self.folder / "sent").glob("*.ach"))
        return [read_file(path.read_bytes()) for path in paths]

    async def put(self, name, raw):
        """Let a file arrive, as its bank puts it into our folder; the worker takes it."""
        (self.folder / "inbox").mkdir(parents=True, exist_ok=True)
        (self.folder / "inbox" / name).write_bytes(raw)
        bank = self.partner.bank
        await bank.job_runners["ach.files"](bank, None)

    def report(self, name, folder="done"):
        return json.loads((self.folder / folder / f"{name}.report.json").read_text())


@pytest.fixture
async def books(partner):
    return Bookkeeper(partner, await partner.funded(50_000_000))


async def nothing_is_left(bank):
    """All has settled: the rails hold nothing."""
    await close_bank_days(bank, await bank.now())
    shown = await clearing_report(bank)
    assert [(shown.unexplained(rail), shown.explained(rail)) for rail in RAILS] == [(0, 0)] * 2
    assert {rail: cents for rail, cents in shown.held.items() if cents} == {}


async def test_a_payroll_goes_out_with_two_returns_and_a_change(partner, books):
    wages = {"sec_code": "PPD", "company_entry_description": "PAYROLL"}
    good, gone, shut, rich = [
        await books.payee(routing) for routing in ("021000021", "091000019", "011000015", "121182904")
    ]
    paid = [
        await books.pay(payee, cents, **wages)
        for payee, cents in ((good, 1_510_00), (gone, 1_420_00), (shut, 1_330_03), (rich, 30_000_00))
    ]
    assert [each["status"] for each in paid] == ["APPROVED"] * 4
    await partner.days(2)
    # At 9:00 on Wednesday the banks have answered Tuesday's file.
    states = [await books.now(each) for each in paid]
    assert [(each["status"], each["return_code"]) for each in states] == [
        ("IN_TRANSIT", None),
        ("FAILED", "R03"),
        ("FAILED", "R02"),
        ("IN_TRANSIT", None),
    ]
    small, large = (books.files()[0].batches, books.files()[1].batches if len(books.files()) > 1 else [])
    assert sum(len(batch.entries) for batch in small) == 3
    first = small[0]
    assert (first.company_entry_description, first.company_descriptive_date) == ("PAYROLL", "SD1300")
    assert first.standard_entry_class_code == "PPD"
    assert not large or large[0].entries[0].amount == 30_000_00
    # A bank says the account has another number: the next payment goes there.
    await books.move(states[0], "change", code="C01", corrected="998877")
    later = await books.pay(good, 10_00)
    await partner.days(3)
    assert [(await books.now(each))["status"] for each in (paid[0], paid[3], later)] == [
        "PROCESSED",
        "PROCESSED",
        "PROCESSED",
    ]
    accounts = {entry.dfi_account_number for file in books.files() for batch in file.batches for entry in batch.entries}
    assert "998877" in accounts
    assert await books.titles() == ["ACH payment"] + ["ACH payment returned"] * 2 + ["ACH payment"] * 4
    path = f"/api/v1/customers/{books.pocket.customer}/ach-originating/"
    failed = await partner.get(path, {"filter[status]": "FAILED", "direction": "CREDIT"})
    assert {each["id"] for each in failed["items"]} == {paid[1]["id"], paid[2]["id"]}
    await partner.days(1)
    await nothing_is_left(partner.bank)


async def test_what_is_asked_on_a_friday_evening_before_a_holiday_goes_after_it(partner, books):
    await partner.later(seconds=(88 * 24 + 10) * 3600)  # to Friday 29 August, 19:00
    payee = await books.payee()
    pulled = await books.collect(payee, 500_00)
    paid, large = await books.pay(payee, 1_000_00), await books.pay(payee, 30_000_00)
    asked = (pulled, paid, large)
    assert [each["effective_date"] for each in asked] == ["2025-09-02", "2025-09-03", "2025-09-04"]

    async def states():
        return [(await books.now(each))["status"] for each in asked]

    await partner.later(seconds=(2 * 24 + 20) * 3600)  # to Monday 15:00: Labor Day
    assert await states() == ["APPROVED"] * 3
    assert books.files() == []
    await partner.later(seconds=20 * 3600)  # to Tuesday 11:00
    assert await states() == ["IN_TRANSIT", "APPROVED", "APPROVED"]
    await partner.later(seconds=24 * 3600)
    assert await states() == ["IN_TRANSIT", "IN_TRANSIT", "APPROVED"]
    await partner.later(seconds=24 * 3600)  # to Thursday 11:00: 2:15 has passed
    assert await states() == ["PROCESSED", "IN_TRANSIT", "IN_TRANSIT"]
    marks = [
        (batch.effective_entry_date, batch.company_descriptive_date) for file in books.files() for batch in file.batches
    ]
    assert marks[:2] == [(date(2025, 9, 2), "SD1300"), (date(2025, 9, 3), "SD1300")]
    await partner.days(3)
    assert await states() == ["PROCESSED"] * 3
    assert [batch.effective_entry_date for batch in books.files()[2].batches] == [date(2025, 9, 4)]
    await nothing_is_left(partner.bank)


async def test_a_pocket_does_not_close_while_entries_of_it_are_under_way(partner, books):
    payee = await books.payee()
    customer = books.pocket.customer
    other = await partner.pocket(customer, name="Spare")
    path, one = (
        f"/api/v1/service-accounts/{other.id}/ach-originating/",
        f"/api/v2/customers/{customer}/pockets/{other.id}/",
    )
    asked = {"counterparty_id": payee, "direction": "DEBIT", "amount_usdc": 50_00}
    made = await partner.post(path, asked, status=200)
    closing = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    refused = await partner.patch(one, closing, status=422)
    assert refused["code"] == "pocket-not-empty"
    assert "ACH entry" in refused["detail"]
    await books.move(made, "cancel")
    await partner.patch(one, closing)


async def test_a_collection_settles_is_held_and_comes_back(partner, books):
    payee = await books.payee()
    made = await books.collect(payee, 700_00)
    assert (made["sec_code"], made["company_entry_description"]) == ("WEB", "Funding TX")
    await partner.later(seconds=10 * 3600)
    assert (await books.now(made))["status"] == "IN_TRANSIT"
    value = await partner.value(books.pocket)
    whole = (value // 100) * 100
    refused = await books.pay(payee, whole - 300_00, status=422)
    assert refused["code"] == "insufficient-funds"
    await books.move(made, "return", code="R10")
    assert (await books.now(made))["return_code"] == "R10"
    again = await books.move(made, "return", code="R01")
    assert again is None
    held = await partner.bank.pool.fetchval("SELECT count(*) FROM suspense_item")
    assert held == 1
    assert await books.titles() == ["ACH collection returned", "ACH collection"]
    await partner.days(2)
    reasons = [
        entry.addenda[0].return_reason_code
        for file in books.files()
        for batch in file.batches
        for entry in batch.entries
        if entry.addenda and isinstance(entry.addenda[0], ReturnAddenda)
    ]
    assert reasons == ["R67"]


async def test_a_debit_on_a_portal_is_paid_while_it_is_covered(partner, books):
    before = await partner.value(books.pocket)
    asked = {"portal_id": books.pocket.portal, "direction": "DEBIT", "company_name": "Power & Light"}
    path = "/api/v1/sandbox/ach/entries/"
    await partner.post(path, asked | {"amount_usdc": 1_000_00}, status=202)
    await partner.post(path, asked | {"amount_usdc": 900_000_00}, status=202)
    assert await books.titles() == ["ACH debit"]
    assert abs(before - await partner.value(books.pocket) - 1_000_00) < 100
    events = await partner.bank.pool.fetch("SELECT kind FROM event WHERE kind LIKE '%ach%' ORDER BY event_no")
    assert [row[0] for row in events] == ["transfers.ach.in.success", "transfers.ach.in.rejected"]
    await partner.days(1)
    back = books.files()[0].batches[0].entries[0]
    assert (back.transaction_code, back.amount, back.addenda[0].return_reason_code) == ("26", 900_000_00, "R01")


async def test_what_is_asked_wrongly_is_refused_by_its_field(partner, books):
    payee = await books.payee()
    assert (await books.pay(payee, 1_00, sec_code="CCD", company_entry_description="RENT", status=403))[
        "code"
    ] == "sec-code-not-enabled"
    for fields, field in (
        ({"sec_code": "CCD"}, "company_entry_description"),
        ({"company_entry_description": "much too long"}, "company_entry_description"),
        ({"company_entry_description": "Reversal"}, "company_entry_description"),
        ({"company_entry_description": "PURCHASE"}, "company_entry_description"),
        ({"sec_code": "TEL"}, "sec_code"),
        ({"payment_related_information": ["x" * 81]}, "payment_related_information"),
        ({"payment_related_information": ["a", "b"]}, "payment_related_information"),
        ({"amount_usdc": 0}, "amount_usdc"),
    ):
        told = await books.pay(payee, fields.pop("amount_usdc", 1_00), status=422, **fields)
        assert told["detail"][0]["loc"][:2] == ["body", field]
    waiting = await partner.post(
        f"/api/v2/customers/{books.pocket.customer}/counterparties/", an_account(account_number="4711")
    )
    assert (await books.pay(waiting["id"], 1_00, status=422))["code"] == "counterparty-not-verified"
    await partner.ask("POST", books.path, {}, status=422)
    await books.pay("8c2e6f1a-0d3b-4f7e-8a9c-5b1d2e3f4a61", 1_00, status=404)
    for query in ({"filter[status]": "GONE"}, {"direction": "UP"}, {"cursor": "x"}, {"limit": 0}):
        await partner.get(books.path, query, status=422)


async def test_a_file_that_is_cut_in_half_changes_nothing(partner, books):
    payee = await books.payee()
    made = await books.collect(payee, 100_00)
    await partner.post("/api/v1/sandbox/ach/submit/", {}, status=202)
    raw = write_file(read_file((books.folder / "outbox" / "ACH-20250602-001.ach").read_bytes()))
    await books.put("half.ach", raw[: 3 * 95])
    assert books.report("half.ach", "refused")["mistakes"][0]["reason"].startswith("ends without")
    await books.put("ours.ach", raw)
    told = books.report("ours.ach", "refused")["mistakes"][0]
    assert told["line"] == 1
    assert (await books.now(made))["status"] == "IN_TRANSIT"
    await books.move(made, "cancel", status=409)
    await books.move(made, "reverse")
    await partner.days(3)
    listed = (await partner.get(books.path))["items"]
    assert sorted((each["direction"], each["company_entry_description"]) for each in listed) == [
        ("CREDIT", "REVERSAL"),
        ("DEBIT", "Funding TX"),
    ]


async def test_what_waited_while_nothing_ran_goes_with_the_next_window_and_may_come_back(partner, books):
    paid = await books.pay(await books.payee(), 1_330_03)
    assert paid["effective_date"] == "2025-06-03"
    # As if no process had run for two weeks: the clock shows the sixteenth, nothing is done yet.
    async with partner.bank.pool.acquire() as conn:
        later = ClockState(et_instant(date(2025, 6, 16), 9), wall_now(), frozen=True)
        await write_clock(conn, later)
    assert await books.settled() == ("BOOKED", None)
    await partner.later(seconds=1)
    assert (await books.now(paid))["effective_date"] == "2025-06-16"
    assert books.files() == []
    assert await books.settled() == ("BOOKED", None)
    assert await books.settled(time_settled_to="2025-06-16T00:00:00Z") is None
    await partner.days(1)
    assert [batch.effective_entry_date for batch in books.files()[0].batches] == [date(2025, 6, 16)]
    state = await books.now(paid)
    assert (state["status"], state["return_code"]) == ("FAILED", "R02")
    await partner.days(2)
    assert await books.settled() == ("SETTLED", "2025-06-18T12:30:00Z")
    since = "2025-06-18T00:00:00Z"
    assert await books.settled(time_settled_from=since) == await books.settled()
    await nothing_is_left(partner.bank)


async def test_a_payment_is_not_settled_while_a_person_looks_at_it(partner, books):
    await partner.wire(books.pocket, 200_000_000)
    paid = await books.pay(await books.payee(), 100_000_001)
    assert paid["status"] == "PENDING"
    await partner.days(5)
    assert await books.settled() == ("BOOKED", None)
