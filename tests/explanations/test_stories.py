"""Statuses, refusals, settlement dates, fees, holds and limits explained over HTTP, and to whom not."""

from dataclasses import replace
from datetime import date
from uuid import UUID

import pytest
from tests.accounts.explain.test_routes import all_parts, explain, rows_of
from tests.accounts.holds.test_routes import linked
from tests.approvals.test_execute_transfers import not_executed
from tests.payments.on_us.test_routes import PATH as ON_US
from tests.payments.on_us.test_routes import reallocation
from tests.support import payees
from tests.support.approvals import decide, on_us, put_cap
from tests.support.closures import Closures
from tests.support.world import UNKNOWN, token_for

from billfold.approvals.execute_transfers import execute_request
from billfold.approvals.series.rules import SKIPPED
from billfold.approvals.series.worker import RUN_REASONS
from billfold.explanations import store
from billfold.explanations.refusals import REASONS


@pytest.fixture
async def desk(partner_desks):
    return await partner_desks("acme", features=("wires",))


def part(explained, label):
    """Return the only part with this label, at any depth."""
    (found,) = [each for each in all_parts(explained) if each["label"] == label]
    return found


def labels(explained):
    return [each["label"] for each in explained["steps"]]


def amounts(explained):
    return {each["symbol"]: int(each["value"]) for each in explained["inputs"] if each["unit"] == "CENTS"}


async def test_a_rejected_transfer_is_explained_by_what_was_needed_and_what_the_pocket_could_pay(desk, other_partner):
    pocket = await desk.funded(10_000_00)
    there = await desk.pocket(pocket.customer)
    await desk.days(20)
    await desk.post(f"{pocket.path}holds/", {"amount_usdc": 4_000_00, "reason": "Deposit"})
    await desk.later(seconds=1)
    rejected = await desk.post(ON_US, reallocation(pocket, there, 7_000_00))
    await desk.later(seconds=1)
    path = f"{ON_US}{rejected['id']}/"
    await desk.wire(pocket, 50_000_00)  # what came later does not count
    found = await explain(desk, path)
    assert found["value"] == "REJECTED"
    assert labels(found) == ["Created", "Rejected", "Reason"]
    missing, available = part(found, "Missing"), part(found, "Available then")
    assert amounts(missing) == {"N": 7_000_00, "E": 0}
    assert missing["amount"]["value"] == 7_000_00 - available["amount"]["value"] > 0
    assert amounts(available)["H"] == 4_000_00
    assert rows_of(found, "HOLD")[0]["label"] == "Deposit"

    # It is what the rule compares: a cent more than that is refused, and all of it is paid.
    payee = await desk.pocket()
    to = await linked_pocket(desk, pocket, payee)
    probe = {
        "type": "PEER_TO_PEER",
        "from_account": {"id": pocket.id, "type": "SERVICE_ACCOUNT"},
        "counterparty_id": to,
    }
    refused = await desk.post(ON_US, {**probe, "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 900_000_00}})
    payable = part(await explain(desk, f"{ON_US}{refused['id']}/"), "Available then")["amount"]["value"]
    for cents, status in ((payable + 1, "REJECTED"), (payable, "COMPLETED")):
        amount = {"type": "REQUESTED_AMOUNT", "amount_usdc": cents}
        made = await desk.post(ON_US, {**probe, "amount": amount})
        assert made["status"] == status
        assert (await explain(desk, f"{ON_US}{made['id']}/"))["value"] == status
    for foreign in (path, f"{pocket.path}status/"):
        await other_partner.ask("GET", f"{foreign}explain/", status=404)
    await desk.ask("GET", f"{ON_US}{UNKNOWN}/explain/", status=404)


async def linked_pocket(desk, pocket, payee):
    portal = (await desk.get(f"/api/v2/pockets/{payee.id}/portals/"))["items"][0]
    name = {"type": "business", "business_name": "Northwind"}
    body = {"type": "on_us", "counterparty_name": name, "account_number": portal["network_address"]}
    return (await desk.post(f"/api/v2/customers/{pocket.customer}/counterparties/", body))["id"]


async def test_settlement_dates_statuses_and_holds_of_payments_are_explained_by_calendar_days(desk):
    pocket = await desk.funded(900_000_00, weeks=13)
    await desk.until("2025-06-18T17:30:00-04:00")  # Juneteenth follows, then a Friday
    wire = {"counterparty_id": await linked(desk, pocket, payees.wire()), "amount_usdc": 3_000_00}
    sent = await desk.post(f"/api/v1/service-accounts/{pocket.id}/wires/", wire)
    found = await explain(desk, f"/api/v1/wires/{sent['id']}/")
    assert (found["value"], labels(found)) == ("PENDING", ["Created", "Leaves"])
    settles = part(found, "Settlement date")
    assert settles["value"] == "2025-06-20"
    assert [each["label"] for each in settles["inputs"][1:]] == [
        "Wednesday, June 18: accepted at 17:30 New York time, after the cut-off",
        "Thursday, June 19: Juneteenth National Independence Day",
    ]

    account = await linked(desk, pocket, payees.ach())
    entries = f"/api/v1/service-accounts/{pocket.id}/ach-originating/"
    made = {}
    for direction, cents in (("CREDIT", 40_000_00), ("DEBIT", 100_00)):
        body = {"counterparty_id": account, "amount_usdc": cents, "direction": direction}
        made[direction] = await desk.post(entries, body, status=200)
    credit = await explain(desk, f"{entries}{made['CREDIT']['id']}/")
    assert (credit["value"], labels(credit)[-1]) == ("APPROVED", "Leaves")
    assert part(credit, "Settlement date")["value"] == made["CREDIT"]["effective_date"] == "2025-06-24"
    (booked,) = (await desk.get(f"{pocket.path}transactions/", {"type[]": "ACH"}))["items"]
    unsent = await explain(desk, f"{pocket.path}transactions/{booked['id']}/")
    assert (unsent["value"], unsent["parts"]) == ("BOOKED", [])  # no day is known before it is sent
    debit = await explain(desk, f"{entries}{made['DEBIT']['id']}/")
    assert part(debit, "Settlement date")["value"] == made["DEBIT"]["effective_date"] == "2025-06-20"
    assert part(debit, "End of the hold")["value"] == "2025-06-27"

    await desk.wire(pocket, 5_000_00)
    await check_dates_after_a_closure(desk, pocket, wire=f"/api/v1/wires/{sent['id']}/")


async def check_dates_after_a_closure(desk, pocket, wire):
    """Declare a day closed on which a trade and a wire were to settle, and check both, and all transactions."""
    trade = (await desk.get(f"{pocket.path}trades/"))["items"][0]
    one = f"{pocket.path}trades/{trade['id']}/"
    agreed = part(await explain(desk, one), "Settlement date")["value"]
    for day in (20, 23):
        await Closures(desk).declare(date(2025, 6, day))
    moved = part(await explain(desk, one), "Settlement date")
    assert agreed < moved["value"]
    assert any("Declared by the bank" in each["label"] for each in moved["inputs"])
    assert part(await explain(desk, wire), "Settlement date")["value"] == "2025-06-24"
    await desk.until("2025-06-25T10:00:00-04:00")
    assert (await explain(desk, one))["value"] == "SETTLED"
    for each in (await desk.get(f"{pocket.path}transactions/"))["items"]:
        shown = await explain(desk, f"{pocket.path}transactions/{each['id']}/")
        assert shown["value"] == each["status"]
        if each["time_settled"]:
            assert part(shown, "Settlement date")["value"] >= each["time_booked"][:10]


async def test_each_charged_fee_is_explained_by_its_days_and_each_hold_by_its_captures(desk, monkeypatch):
    pocket = await desk.funded(700_000_00, weeks=52)
    other = await desk.pocket(pocket.customer, weeks=13)
    await desk.days(9)
    await desk.transfer(pocket, other, 120_000_01)
    hold = await desk.post(f"{pocket.path}holds/", {"amount_usdc": 3_000_00, "reason": "Rent"})
    await desk.later(minutes=1)
    await desk.post(ON_US, reallocation(pocket, other, 1_000_00, hold_id=hold["id"]))
    await desk.later(minutes=1)
    one = f"{pocket.path}holds/{hold['id']}/"
    kept = await explain(desk, one)
    assert (kept["value"], labels(kept)) == ("ACTIVE", ["Placed: Rent", "Captured by a payment", "Ends"])
    assert part(kept, "Still kept")["amount"] == (await desk.get(one))["held"]
    await desk.post(f"{one}release/", {}, status=200)
    ended = await explain(desk, one)
    assert (ended["value"], part(ended, "Still kept")["value"]) == ("RELEASED", "0")

    await desk.days(60)
    await desk.post(ON_US, reallocation(other, pocket, None, amount={"type": "FULL_WITHDRAWAL"}, amount_usdc=None))
    charged = 0
    for each in (pocket, other):
        for fee in (await desk.get(f"{each.path}transactions/", {"type[]": "FEE", "limit": 50}))["items"]:
            shown = part(await explain(desk, f"{each.path}transactions/{fee['id']}/"), "Fee charged")
            assert shown["amount"] == fee["amount"]
            assert 0 <= int(shown["inputs"][0]["value"]) < 3_650_000
            assert shown["parts"]
            charged += 1
    assert charged >= 5
    await check_ended_holds(desk, pocket, other, one, monkeypatch)


async def check_ended_holds(desk, pocket, other, one, monkeypatch):
    """Check holds of which not all changes are read, and that are captured and released at one instant."""
    for limit in (0, 1, 30):
        with monkeypatch.context() as patched:
            patched.setattr(store, "_FORMER", store._FORMER.replace("LIMIT 30", f"LIMIT {limit}"))
            found = part(await explain(desk, one), "Still kept")
        assert [int(each["value"]) for each in found["inputs"]] == [3_000_00, 1_000_00, 2_000_00]
    at_once = await desk.post(f"{pocket.path}holds/", {"amount_usdc": 3_000_00, "reason": "Rent"})
    one = f"{pocket.path}holds/{at_once['id']}/"
    await desk.post(ON_US, reallocation(pocket, other, 1_000_00, hold_id=at_once["id"]))
    await desk.post(f"{one}release/", {}, status=200)
    assert part(await explain(desk, one), "Still kept")["value"] == "0"


async def test_requests_counterparties_and_limits_are_explained_to_members_by_their_rights(
    customer_desk, customer_desks, other_customer, manager, world, funded, payroll_pocket
):
    customer = customer_desk.team.customer
    await put_cap(customer_desk.bank, UUID(customer), 20_000_00)
    viewer = await customer_desks(customer, role="VIEWER")
    asked = await customer_desk.post("/api/v1/transfer-requests/", on_us(funded, 8_000_00, to=payroll_pocket))
    one = f"/api/v1/transfer-requests/{asked['id']}/"
    pending = await explain(viewer, one)
    assert (pending["value"], labels(pending)[-1]) == ("PENDING", "Expires")
    assert part(pending, "Approvals missing")["value"] == "1"
    limits = await explain(viewer, "/api/v1/limits/")
    cap = next(each for each in limits["parts"] if each["label"].startswith("approval_rule."))
    assert amounts(cap) == {"L": 20_000_00, "u": 8_000_00}
    assert [each["id"] for each in rows_of(cap, "TRANSFER_REQUEST")] == [asked["id"]]

    with not_executed(customer_desk.bank):
        await decide(manager, asked)
    await customer_desk.post(f"{funded.path}holds/", {"amount_usdc": 2_000_00, "reason": "Rent"})
    await world.later(seconds=1)
    await execute_request(customer_desk.bank, UUID(customer), UUID(asked["id"]))
    refused = await explain(viewer, one)
    assert (refused["value"], part(refused, "Approvals missing")["value"]) == ("APPROVED", "0")
    assert "INSUFFICIENT" not in str(refused["words"])
    assert amounts(part(refused, "Available then"))["H"] == 2_000_00
    assert rows_of(await explain(viewer, "/api/v1/limits/"), "TRANSFER_REQUEST") == []  # its transfer was rejected
    # With the scopes of payments alone, the figures of the Pocket are not told.
    narrow = await customer_desks(customer, role="VIEWER", client_id="narrow", scopes=("transfers.read",))
    told = await explain(narrow, one)
    assert [each["label"] for each in told["parts"]] == ["Approvals missing"]
    await narrow.refused("GET", f"{funded.path}status/explain/", status=403, code="forbidden")
    await other_customer.ask("GET", f"{one}explain/", status=404)
    await check_actors(customer_desk, narrow, world, asked)
    for path in (f"/api/v2/pockets/{funded.id}/status/", f"/api/v1/transfers/on-us/{asked['id']}/"):
        await other_customer.ask("GET", f"{path}explain/", status=404)

    await check_counterparty(customer_desk, viewer, other_customer)


async def check_actors(customer_desk, narrow, world, asked):
    """Check that a transfer says who requested and approved it, but to its partner no name."""
    one = f"/api/v1/transfers/on-us/{asked['id']}/"
    by = asked["requested_by"]
    done = part(await explain(customer_desk, one), "Who did it")["steps"]
    assert done[0]["label"] == f"Created by {by['first_name']} {by['last_name']}"
    assert len({each["label"].partition(" by ")[0] for each in done}) > 1, done
    told = part(await explain(world, one), "Who did it")["steps"]
    assert {each["label"].partition(" by ")[2] for each in told} <= {"the customer", "the bank, by itself"}
    assert by["last_name"] not in str(told)
    assert "Who did it" not in {each["label"] for each in all_parts(await explain(narrow, one))}


async def check_counterparty(customer_desk, viewer, other_customer):
    """Check that a new counterparty says what it waits for, and to whom."""
    made = await customer_desk.post("/api/v2/counterparties/", payees.wire())
    shown = await explain(viewer, f"/api/v2/counterparties/{made['id']}/")
    assert (shown["value"], labels(shown)[-1]) == ("PENDING", "Expires")
    await other_customer.ask("GET", f"/api/v2/counterparties/{made['id']}/explain/", status=404)


async def test_declined_card_payments_are_explained_but_no_rule_against_fraud(cardholder, monkeypatch):
    desk, one = cardholder.desk, f"{cardholder.account}/cards/{cardholder.card}/"
    await desk.ask("PUT", f"{one}limits/", {"daily": 50_00, "categories": {}}, status=200)
    for cents in (30_00, 20_01):
        await cardholder.authorize(cents)
    await desk.later(minutes=1)
    await cardholder.set_status(cardholder.card, "OFFLINE")
    found = await explain(desk, one)
    assert labels(found["parts"].pop()) == ["Created by acme", "Limited by acme", "Updated by acme"]
    assert (found["value"], labels(found)) == ("OFFLINE", ["Created", "Offline"])
    (declined,) = found["parts"]
    assert declined["value"] == "CARD_LIMIT"
    left = part(declined, "Left of the limit of that day")
    assert amounts(left) == {"L": 50_00, "s": 30_00}
    assert left["amount"]["value"] == 20_00
    monkeypatch.setattr(store, "_SPENDING_ON_DAY", store._SPENDING_ON_DAY.replace("LIMIT 30", "LIMIT 0"))
    busy = part((await explain(desk, one))["parts"][0], "Left of the limit of that day")
    assert (amounts(busy), busy["inputs"][-1]["label"]) == ({"L": 50_00, "s": 30_00}, "By payments that are not listed")
    await cardholder.set_status(cardholder.card, "ONLINE")
    await cardholder.authorize(10_04)  # what the sandbox suspects of fraud
    text = str((await explain(desk, one))["parts"][0]).lower()
    assert "the bank gives no further reason" in text
    assert "fraud" not in text


async def test_requests_that_were_refused_outright_are_explained_by_their_figures_then(
    customer_desk, customer_desks, other_customer, world, funded, payroll_pocket
):
    customer = customer_desk.team.customer
    hold = {"amount_usdc": 90_000_000_00, "reason": "Rent"}
    key = "rent for June"
    answer = await customer_desk.send("POST", f"{funded.path}holds/", hold, key=key)
    assert answer.status_code == 422, answer.text
    await put_cap(customer_desk.bank, UUID(customer), 20_00)
    over = await customer_desk.send(
        "POST", "/api/v1/transfer-requests/", on_us(funded, 8_000_00, to=payroll_pocket), key=UNKNOWN
    )
    assert over.json()["code"] == "amount-not-allowed", over.text
    await world.later(minutes=1)
    await world.wire(funded, 90_000_000_00)  # what came later does not count
    await customer_desk.app.request_log.write()
    log = "/api/v2/request-log/"
    ((entry,), (capped,)) = [
        (await customer_desk.get(log, {"idempotency_key": each}))["items"] for each in (key, str(UNKNOWN))
    ]
    one = f"{log}{entry['trace_id']}/"
    found = await explain(customer_desk, one)
    assert (found["value"], labels(found)) == ("insufficient-funds", ["Requested", "Reason", "Refused"])
    missing, available = part(found, "Missing"), part(found, "Available then")
    assert amounts(missing) == {"N": 90_000_000_00, "E": 0}
    assert available["amount"]["formatted"] in found["steps"][1]["value"]
    by_rule = await explain(customer_desk, f"{log}{capped['trace_id']}/")
    told = {each["label"]: each["value"] for each in by_rule["steps"]}
    assert told["Daily cap"] == "$20.00"
    assert "per business day" in told["Reason"]
    await check_readers(customer_desk, customer_desks, other_customer, one, available)


async def check_readers(customer_desk, customer_desks, other_customer, one, available):
    """Check who sees the figures of a refused request."""
    customer = customer_desk.team.customer
    # Of another member's request only those see figures who may read what it was about.
    viewer = await customer_desks(customer, role="VIEWER")
    assert part(await explain(viewer, one), "Available then") == available
    narrow = await customer_desks(customer, role="VIEWER", client_id="narrow", scopes=("team.read",))
    assert labels(await explain(narrow, one)) == ["Requested", "Refused"]
    # Nor does an application of who requested it that may not read Pockets.
    own = replace(customer_desk.team, client_id="narrow", scopes=("team.read",))
    narrow.token = await token_for(customer_desk.bank, own)
    assert labels(await explain(narrow, one)) == ["Requested", "Refused"]
    blind = await customer_desks(customer, role="VIEWER", client_id="blind", scopes=("pockets.read",))
    await blind.refused("GET", f"{one}explain/", status=403, code="forbidden")
    await other_customer.refused("GET", f"{one}explain/", status=404, code="not-found")


def test_every_reason_of_a_request_or_run_that_failed_is_explained():
    assert {*RUN_REASONS.values(), *SKIPPED, "INVALID_TRANSFER"} <= REASONS.keys()
