"""ACH payments in both directions, through HTTP and files of the network only."""

import json
from datetime import date, datetime, timedelta

import pytest
from tests.support import payees
from tests.support.world import UNKNOWN

from billfold.payments.ach.nacha.reader import read_file
from billfold.payments.ach.nacha.records import ReturnAddenda
from billfold.payments.clearing.report import clearing_report
from billfold.payments.clearing.rules import RAILS
from billfold.platform.clock import ClockState, wall_now
from billfold.platform.database.business_clock import write_clock
from billfold.platform.dates import et_instant

SANDBOX = "/api/v1/sandbox/"


class Originator:
    """A company that pays and collects by ACH, and reads the files."""

    def __init__(self, desk, pocket):
        self.desk, self.pocket = desk, pocket
        self.path = f"/api/v1/service-accounts/{pocket.id}/ach-originating/"
        self.folder = desk.bank.settings.rails_dir / "ach"
        self.count = 0

    async def payee(self, routing="021000021"):
        """Verify an account by a wire from it, and return the counterparty's id."""
        self.count += 1
        number = f"5647772{self.count:05}"
        sent = payees.ach(routing_number=routing, account_number=number)
        made = await self.desk.post(f"/api/v2/customers/{self.pocket.customer}/counterparties/", sent)
        sender = {"sender_name": "Ada Stone", "sender_account_number": number, "sender_routing_number": routing}
        await self.sandbox("wire/", portal_id=self.pocket.portal, amount_usdc=1_00, **sender)
        return made["id"]

    async def sandbox(self, path, **body):
        await self.desk.ask("POST", f"{SANDBOX}{path}", body, status=202)

    async def pay(self, payee, cents, **fields):
        return await self.desk.post(self.path, entry("CREDIT", payee, cents) | fields, status=200)

    async def collect(self, payee, cents):
        return await self.desk.post(self.path, entry("DEBIT", payee, cents), status=200)

    async def statuses(self, *entries):
        return [(await self.now(each))["status"] for each in entries]

    async def now(self, made):
        return await self.desk.get(f"{self.path}{made['id']}/")

    async def move(self, made, move, **fields):
        await self.sandbox(f"ach/{made['id']}/", move=move, **fields)

    async def transactions(self, **filters):
        shown = await self.desk.get(f"{self.pocket.path}transactions/", filters)
        return [each for each in shown["items"] if each["type"] == "ACH"]

    async def titles(self):
        return [each["title"] for each in await self.transactions()]

    async def settled(self, **filters):
        """Return status and settlement of the first payment of a list, or None if it is missing."""
        payments = [each for each in await self.transactions(**filters) if each["title"] == "ACH payment"]
        return (payments[-1]["status"], payments[-1]["time_settled"]) if payments else None

    def batches(self):
        """Return the batches of every transmitted file, in order."""
        paths = sorted((self.folder / "sent").glob("*.ach"))
        return [batch for path in paths for batch in read_file(path.read_bytes()).batches]

    async def put(self, name, raw):
        """Put a file into the folder and let the worker process it; return its report if it is refused."""
        (self.folder / "inbox").mkdir(parents=True, exist_ok=True)
        (self.folder / "inbox" / name).write_bytes(raw)
        await self.desk.bank.job_runners["ach.files"](self.desk.bank, None)
        return json.loads((self.folder / "refused" / f"{name}.report.json").read_text())


def entry(direction, payee, cents):
    return {"counterparty_id": payee, "direction": direction, "amount_usdc": cents}


@pytest.fixture
async def books(partner_desk):
    return Originator(partner_desk, await partner_desk.funded(500_000_00))


async def nothing_is_left(bank):
    """Check that every entry is settled and the rails hold nothing."""
    shown = await clearing_report(bank)
    assert [(shown.unexplained(rail), shown.explained(rail)) for rail in RAILS] == [(0, 0)] * len(RAILS)
    assert not any(shown.held.values())


async def test_a_payroll_is_sent_and_gets_two_returns_and_a_notification_of_change(partner_desk, books):
    wages = {"sec_code": "PPD", "company_entry_description": "PAYROLL"}
    routings = ("021000021", "091000019", "011000015", "121182904")
    accounts = [await books.payee(routing) for routing in routings]
    amounts = (1_510_00, 1_420_00, 1_330_03, 30_000_00)
    paid = [await books.pay(payee, cents, **wages) for payee, cents in zip(accounts, amounts, strict=True)]
    assert [each["status"] for each in paid] == ["APPROVED"] * 4
    await partner_desk.days(2)
    # At 9:00 on Wednesday the banks have answered Tuesday's file.
    states = [await books.now(each) for each in paid]
    assert [(each["status"], each["return_code"]) for each in states] == [
        ("IN_TRANSIT", None),
        ("FAILED", "R03"),
        ("FAILED", "R02"),
        ("IN_TRANSIT", None),
    ]
    first = books.batches()[0]
    assert (first.standard_entry_class_code, len(first.entries)) == ("PPD", 3)
    assert (first.company_entry_description, first.company_descriptive_date) == ("PAYROLL", "SD1300")
    # A bank reports another account number: the next payment goes there.
    await books.move(paid[0], "change", code="C01", corrected="998877")
    last = await books.pay(accounts[0], 10_00)
    await partner_desk.days(3)
    assert await books.statuses(paid[0], paid[3], last) == ["PROCESSED"] * 3
    large, small = [entry for batch in books.batches() for entry in batch.entries][3:]
    assert (large.amount, small.dfi_account_number) == (30_000_00, "998877")
    assert await books.titles() == ["ACH payment"] + ["ACH payment returned"] * 2 + ["ACH payment"] * 4
    path = f"/api/v1/customers/{books.pocket.customer}/ach-originating/"
    failed = await partner_desk.get(path, {"filter[status]": "FAILED", "direction": "CREDIT"})
    assert {each["id"] for each in failed["items"]} == {paid[1]["id"], paid[2]["id"]}
    await partner_desk.days(1)
    await nothing_is_left(partner_desk.bank)


async def test_a_sent_transaction_shows_the_trace_number_of_its_entry(partner_desk, books):
    payee = await books.payee()
    paid, collected = await books.pay(payee, 10_00), await books.collect(payee, 20_00)
    assert [each["trace_number"] for each in await books.transactions()] == [None]
    await partner_desk.days(3)
    traces = {each["amount"]["value"]: each["trace_number"] for each in await books.transactions()}
    assert traces == {
        10_00: (await books.now(paid))["trace_number"],
        20_00: (await books.now(collected))["trace_number"],
    }
    assert None not in traces.values()
    (listed,) = [each for each in await books.transactions() if each["amount"]["value"] == 10_00]
    one = await partner_desk.get(f"{books.pocket.path}transactions/{listed['transaction_id']}/")
    assert one["trace_number"] == traces[10_00]
    await books.move(paid, "return", code="R10")
    (back,) = [each for each in await books.transactions() if each["title"] == "ACH payment returned"]
    assert back["trace_number"] not in {None, traces[10_00]}


async def test_an_ach_payment_is_returned_by_a_gateway_and_a_second_is_partly_corrected(partner_desk, books):
    account = await books.payee()
    paid = [await books.pay(account, cents) for cents in (10_00, 20_00)]
    await partner_desk.days(2)
    for code, corrected in (("C05", "37"), ("C06", f"{'998877':20}32"), ("C04", "VENDOR TWO"), ("C14", "IAT")):
        await books.move(paid[0], "change", code=code, corrected=corrected)
    await books.move(paid[1], "return", code="R85")
    assert [(await books.now(each))["return_code"] for each in paid] == [None, "R85"]
    path = f"{SANDBOX}ach/{paid[0]['id']}/"
    for body in (
        {"move": "return", "code": "R61"},
        {"move": "give-back", "code": "R85"},
        {"move": "change", "code": "C62", "corrected": "1"},
        {"move": "change", "code": "C03", "corrected": "not a routing number"},
        {"move": "change", "code": "C01", "corrected": "12é4"},
    ):
        await partner_desk.ask("POST", path, body, status=422)
    last = await books.pay(account, 30_00)
    await partner_desk.days(2)
    (entry,) = [each for batch in books.batches() for each in batch.entries if each.amount == 30_00]
    assert (entry.dfi_account_number, entry.transaction_code) == ("998877", "32")
    assert await books.statuses(last) == ["IN_TRANSIT"]


async def test_entries_of_a_friday_evening_before_a_holiday_are_sent_after_it(partner_desk, books):
    await partner_desk.until("2025-08-29T19:00:00-04:00")
    payee = await books.payee()
    entries = [await books.collect(payee, 500_00), *[await books.pay(payee, cents) for cents in (1_000_00, 30_000_00)]]
    assert [each["effective_date"] for each in entries] == ["2025-09-02", "2025-09-03", "2025-09-04"]
    await partner_desk.until("2025-09-01T15:00:00-04:00")  # Labor Day
    assert await books.statuses(*entries) == ["APPROVED"] * 3
    assert books.batches() == []
    for day, expected in (
        ("2025-09-02", ["IN_TRANSIT", "APPROVED", "APPROVED"]),
        ("2025-09-03", ["IN_TRANSIT", "IN_TRANSIT", "APPROVED"]),
        ("2025-09-04", ["PROCESSED", "IN_TRANSIT", "IN_TRANSIT"]),
    ):
        await partner_desk.until(f"{day}T11:00:00-04:00")
        assert await books.statuses(*entries) == expected, day
    await partner_desk.days(3)
    assert await books.statuses(*entries) == ["PROCESSED"] * 3
    marks = [(batch.effective_entry_date.day, batch.company_descriptive_date) for batch in books.batches()]
    assert marks[:2] == [(2, "SD1300"), (3, "SD1300")]
    assert marks[2][0] == 4
    await nothing_is_left(partner_desk.bank)


CENT = 1
BELOW, FROM_THERE, LIMIT = 25_000_00 - CENT, 25_000_00, 1_000_000_00
"""Entries below $25,000 go the same day; the operator takes none above its limit that way."""


@pytest.mark.parametrize(
    ("asked_at", "cents", "debit", "credit_effective"),
    [
        ("2025-06-03T10:29", BELOW, ("2025-06-03T10:30", "SD1300", "2025-06-03", "2025-06-05T08:30"), "2025-06-04"),
        ("2025-06-03T11:59", CENT, ("2025-06-03T14:45", "SD1700", "2025-06-03", "2025-06-05T08:30"), "2025-06-04"),
        ("2025-06-03T12:00", BELOW, ("2025-06-04T10:30", "SD1300", "2025-06-04", "2025-06-06T08:30"), "2025-06-05"),
        ("2025-06-03T11:59", FROM_THERE, ("2025-06-04T02:15", "", "2025-06-04", "2025-06-05T08:30"), "2025-06-05"),
        ("2025-06-03T12:00", FROM_THERE, ("2025-06-05T02:15", "", "2025-06-05", "2025-06-06T08:30"), "2025-06-06"),
        ("2025-06-03T09:00", LIMIT, ("2025-06-04T02:15", "", "2025-06-04", "2025-06-05T08:30"), "2025-06-05"),
        ("2025-06-06T12:00", LIMIT + CENT, ("2025-06-10T02:15", "", "2025-06-10", "2025-06-11T08:30"), "2025-06-11"),
    ],
)
async def test_entries_are_sent_in_the_window_for_their_size(
    partner_desk, books, asked_at, cents, debit, credit_effective
):
    sent_at, marked, effective, processed_at = debit
    await partner_desk.wire(books.pocket, 2_000_000_00)
    payee = await books.payee()
    await partner_desk.until(f"{asked_at}:00-04:00")
    entries = [await books.collect(payee, cents), await books.pay(payee, cents)]
    for each in entries:
        if each["status"] == "PENDING":
            await books.move(each, "approve")
    assert [(await books.now(each))["effective_date"] for each in entries] == [effective, credit_effective]
    before = datetime.fromisoformat(f"{sent_at}:00-04:00") - timedelta(seconds=1)
    await partner_desk.until(before)
    assert await books.statuses(*entries) == ["APPROVED"] * 2
    await partner_desk.until(f"{sent_at}:00-04:00")
    assert await books.statuses(*entries) == ["IN_TRANSIT", "APPROVED"]
    await partner_desk.until(f"{processed_at}:00-04:00")
    assert await books.statuses(*entries) == ["PROCESSED", "IN_TRANSIT"]
    await partner_desk.days(1)
    batches = [each for each in books.batches() if each.entries[0].amount == cents]
    assert [str(each.effective_entry_date) for each in batches] == [effective, credit_effective]
    assert batches[0].company_descriptive_date == marked
    assert bool(batches[1].company_descriptive_date) == (cents < FROM_THERE)


async def test_an_origination_is_cancelled_until_it_is_in_a_file_and_a_reversal_never(partner_desk, books):
    payee = await books.payee()
    before = await partner_desk.value(books.pocket)
    kept, dropped = await books.pay(payee, 10_00), await books.pay(payee, 2_000_00)
    cancel = f"{books.path}{{}}/cancel/"
    assert (await partner_desk.post(cancel.format(dropped["id"]), {}, status=200))["status"] == "CANCELLED"
    too_late = {"status": 409, "code": "ach-origination-not-pending"}
    await partner_desk.refused("POST", cancel.format(dropped["id"]), {}, **too_late)
    assert abs(before - 10_00 - await partner_desk.value(books.pocket)) < 2_00
    await partner_desk.days(2)
    await partner_desk.refused("POST", cancel.format(kept["id"]), {}, **too_late)
    await books.move(kept, "reverse")
    (reversal,) = [each for each in (await partner_desk.get(books.path))["items"] if each["status"] == "APPROVED"]
    await partner_desk.refused("POST", cancel.format(reversal["id"]), {}, **too_late)
    assert [sum(each.amount for each in batch.entries) for batch in books.batches()] == [10_00]


async def test_a_debit_is_returned_by_its_receiver_within_the_time_frame_of_its_code(partner_desk, books):
    desk, pocket = partner_desk, books.pocket
    before = await desk.value(pocket)
    for cents in (300_00, 400_00):
        await books.sandbox("ach/entries/", portal_id=pocket.portal, direction="DEBIT", amount_usdc=cents)
    second, first = [f"/api/v1/ach-debits/{each['ach_id']}/" for each in await books.transactions()]
    shown = await desk.get(first)
    assert (shown["status"], sorted(shown["returnable_until"])) == ("PROCESSED", ["R08", "R29"])
    for code, wrong in (("R10", "has_signed_statement"), ("R01", "code")):
        await desk.invalid("POST", f"{first}return/", {"code": code}, loc=f"body.{wrong}")
    not_returnable = {"status": 409, "code": "ach-entry-not-returnable"}
    signed = {"code": "R10", "has_signed_statement": True}
    await desk.refused("POST", f"{first}return/", signed, **not_returnable)  # R10 protects consumers
    back = await desk.post(f"{first}return/", {"code": "R29"}, status=200)
    assert (back["status"], back["return_code"], back["returnable_until"]) == ("FAILED", "R29", {})
    await desk.refused("POST", f"{first}return/", {"code": "R29"}, **not_returnable)
    assert abs(before - 400_00 - await desk.value(pocket)) < 2_00
    await desk.until("2025-06-04T02:30:00-04:00")  # the next window is after the opening of the second banking day
    assert (await desk.get(second))["returnable_until"] == {}
    await desk.refused("POST", f"{second}return/", {"code": "R08"}, **not_returnable)
    for filters, found in (
        ({"customer_id": pocket.customer}, [400_00, 300_00]),
        ({"pocket_id": pocket.id, "returned": "true"}, [300_00]),
        ({"customer_id": pocket.customer, "status[]": "PROCESSED", "amount_from": 400_00}, [400_00]),
        ({"customer_id": pocket.customer, "time_created_from": "2025-06-05"}, []),
    ):
        items = (await desk.get("/api/v1/ach-debits/", filters))["items"]
        assert [each["amount"]["value"] for each in items] == found
    await desk.invalid("GET", "/api/v1/ach-debits/", loc="query.customer_id")
    await desk.refused("GET", "/api/v1/ach-debits/", filters={"customer_id": UNKNOWN}, status=404, code="not-found")
    await desk.ask("GET", f"/api/v1/ach-debits/{UNKNOWN}/", status=404)
    paid = await books.pay(await books.payee(), 10_00)
    await desk.ask("GET", f"/api/v1/ach-debits/{paid['id']}/", status=404)


async def test_closing_a_pocket_with_entries_in_transit_is_refused(partner_desk, books):
    spare = Originator(partner_desk, await partner_desk.pocket(books.pocket.customer, name="Spare"))
    made = await spare.collect(await books.payee(), 50_00)
    closing = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    path = f"/api/v2/customers/{spare.pocket.customer}/pockets/{spare.pocket.id}/"
    refused = await partner_desk.refused("PATCH", path, closing, status=422, code="pocket-not-empty")
    assert "A payment of the pocket" in refused["detail"]
    await spare.move(made, "cancel")
    await partner_desk.patch(path, closing)


async def test_an_ach_collection_settles_is_held_and_is_returned(partner_desk, books):
    payee = await books.payee()
    made = await books.collect(payee, 700_00)
    assert (made["sec_code"], made["company_entry_description"]) == ("WEB", "Funding TX")
    await partner_desk.later(hours=10)
    assert await books.statuses(made) == ["IN_TRANSIT"]
    held_back = await partner_desk.value(books.pocket) // 100 * 100 - 300_00
    body = entry("CREDIT", payee, held_back)
    await partner_desk.refused("POST", books.path, body, status=422, code="insufficient-funds")
    await books.move(made, "return", code="R10")
    assert (await books.now(made))["return_code"] == "R10"
    await books.move(made, "return", code="R01")
    assert await partner_desk.bank.pool.fetchval("SELECT count(*) FROM suspense_item") == 1
    assert await books.titles() == ["ACH collection returned", "ACH collection"]
    await partner_desk.days(2)
    addenda = [each for batch in books.batches() for entry in batch.entries for each in entry.addenda[:1]]
    assert [each.return_reason_code for each in addenda if isinstance(each, ReturnAddenda)] == ["R67"]


async def test_a_pocket_shows_the_amount_owed_for_a_collection_returned_after_withdrawal(partner_desk, books):
    made = await books.collect(await books.payee(), 700_00)
    await partner_desk.days(9)
    other = await partner_desk.pocket(books.pocket.customer, name="Other")
    await partner_desk.transfer(books.pocket, other, None)
    await books.move(made, "return", code="R10")
    shown = [(await partner_desk.get(each.path))["portfolio"] for each in (books.pocket, other)]
    assert [(each["owed"]["value"], each["total_value"]["value"] > 0) for each in shown] == [
        (700_00, False),
        (0, True),
    ]
    await partner_desk.wire(books.pocket, 600_00)
    after = (await partner_desk.get(books.pocket.path))["portfolio"]
    assert (after["owed"]["value"], after["total_value"]["value"]) == (100_00, 0)
    await partner_desk.wire(books.pocket, 600_00)
    after = (await partner_desk.get(books.pocket.path))["portfolio"]
    assert after["owed"]["value"] == 0
    assert 499_00 < after["total_value"]["value"] <= 500_00


async def test_an_invalid_ach_entry_is_refused_at_its_field(partner_desk, books):
    good = entry("CREDIT", await books.payee(), 1_00)
    ccd = good | {"sec_code": "CCD", "company_entry_description": "RENT"}
    await partner_desk.refused("POST", books.path, ccd, status=403, code="sec-code-not-enabled")
    for fields, field in (
        ({"sec_code": "CCD"}, "company_entry_description"),
        ({"company_entry_description": "much too long"}, "company_entry_description"),
        ({"company_entry_description": "Reversal"}, "company_entry_description"),
        ({"company_entry_description": "PURCHASE"}, "company_entry_description"),
        ({"payment_related_information": ["x" * 81]}, "payment_related_information"),
        ({"payment_related_information": ["a", "b"]}, "payment_related_information"),
    ):
        told = await partner_desk.post(books.path, good | fields, status=422)
        assert told["detail"][0]["loc"][:2] == ["body", field]
    path = f"/api/v2/customers/{books.pocket.customer}/counterparties/"
    waiting = entry("CREDIT", (await partner_desk.post(path, payees.ach(account_number="4711")))["id"], 1_00)
    await partner_desk.refused("POST", books.path, waiting, status=422, code="counterparty-not-verified")
    await partner_desk.ask("POST", books.path, entry("CREDIT", UNKNOWN, 1_00), status=404)


async def test_an_entry_delayed_by_an_outage_is_sent_in_the_next_window_and_can_be_returned(partner_desk, books):
    paid = await books.pay(await books.payee(), 1_330_03)
    assert paid["effective_date"] == "2025-06-03"
    # As if no process had run for two weeks: the clock shows the sixteenth, nothing is done yet.
    async with partner_desk.bank.pool.acquire() as conn:
        await write_clock(conn, ClockState(et_instant(date(2025, 6, 16), 9), wall_now(), frozen=True))
    assert await books.settled() == ("BOOKED", None)
    await partner_desk.later(seconds=1)
    assert (await books.now(paid))["effective_date"] == "2025-06-16"
    assert books.batches() == []
    assert await books.settled() == ("BOOKED", None)
    assert await books.settled(time_settled_to="2025-06-16T00:00:00Z") is None
    await partner_desk.days(1)
    assert [batch.effective_entry_date for batch in books.batches()] == [date(2025, 6, 16)]
    state = await books.now(paid)
    assert (state["status"], state["return_code"]) == ("FAILED", "R02")
    await partner_desk.days(2)
    assert await books.settled() == ("SETTLED", "2025-06-18T12:30:00Z")
    assert await books.settled(time_settled_from="2025-06-18T00:00:00Z") == await books.settled()
    await nothing_is_left(partner_desk.bank)


async def test_a_payment_in_review_is_not_settled(partner_desk, books):
    await partner_desk.wire(books.pocket, 2_000_000_00)
    paid = await books.pay(await books.payee(), 1_000_000_01)
    assert paid["status"] == "PENDING"
    await partner_desk.days(5)
    assert await books.settled() == ("BOOKED", None)
