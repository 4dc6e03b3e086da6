"""Reversals of on-us transfers: by right within a customer, by request between customers, never more than was paid."""

import asyncio
from datetime import timedelta

from tests.payments.on_us.test_routes import PATH, account, payee, reallocation, requested_amount
from tests.support.applications import run_jobs
from tests.support.approvals import REQUESTS, decide, status_of
from tests.support.browser import first_match
from tests.support.whole_bank import expect_clean
from tests.support.world import UNKNOWN

from billfold.platform import ids

ASKED = "/api/v1/reversal-requests/"


def back(transfer, pocket, cents):
    """The body of a member's request to pay a transfer back."""
    fields = {"origin_pocket_id": pocket.id, "amount": requested_amount(cents)}
    details = {"type": "REVERSAL", "transfer_id": transfer}
    return {"transfer": {"id": str(ids.new()), "type": "ON_US", "details": details, **fields}, "reviewers": []}


async def paid(world, pocket, target, cents, of=None):
    linked = await payee(world, pocket, target, of=of)
    body = {"type": "PEER_TO_PEER", "from_account": account(pocket), "amount": requested_amount(cents)}
    return (await world.post(PATH, body | {"counterparty_id": linked}))["id"]


async def test_a_transfer_within_a_customer_is_reversed_at_once_and_never_beyond_its_amount(world, other_partner):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    made = (await world.post(PATH, reallocation(pocket, other, 1_000_00)))["id"]
    path = f"{PATH}{made}/reverse/"
    part = await world.post(path, {"amount_usdc": 300_00}, key=(key := str(ids.new())))
    assert await world.post(path, {"amount_usdc": 300_00}, key=key) == part
    assert (part["status"], part["reverses_id"], part["transfer"]["amount"]["value"]) == ("COMPLETED", made, 300_00)
    await world.refused("POST", path, {"amount_usdc": 700_01}, status=422, code="transfer-not-reversible")
    together = await asyncio.gather(*(world.send("POST", path, {}) for _ in range(3)))
    assert sorted(each.status_code for each in together) == [201, 422, 422]
    (rest,) = (each.json() for each in together if each.status_code == 201)
    shown = await world.get(f"{PATH}{made}/")
    assert (set(shown["reversed_by"]), rest["transfer"]["amount"]["value"]) == ({part["id"], rest["id"]}, 700_00)
    await world.refused("POST", path, {}, status=422, code="transfer-not-reversible")
    await world.refused("POST", f"{PATH}{rest['id']}/reverse/", {}, status=422, code="transfer-not-reversible")
    await other_partner.refused("POST", path, {}, status=404, code="not-found")
    (line,) = [each for each in (await world.get(f"{pocket.path}transactions/"))["items"] if each.get("reverses_id")][
        :1
    ]
    assert (line["title"], line["reverses_id"]) == ("Transfer reversed", made)
    bills = (await world.post(PATH, reallocation(pocket, other, 500_00, transfer_type="SECURITY_TRANSFER")))["id"]
    await world.refused("POST", f"{PATH}{bills}/reverse/", {}, status=422, code="transfer-not-reversible")
    await expect_clean(world.bank)


async def answered(console, payee, answer):
    """Answer a request on the page of the transaction, and return what the page said."""
    browser = await console(payee)
    await browser.go(f"{browser.home}/notifications")
    asked = first_match(rf'href="({browser.home}/reversal-requests/[^"]+)">[^<]* requests ', browser.page.text)
    await browser.go(browser.home)
    assert asked in browser.page.text, "it is to do"
    await browser.go(asked)
    found = browser.page.headers["location"]
    (line,) = (await payee.get("/api/v2/transactions/", {"type[]": "ON_US"}))["items"]
    await browser.go(page := f"{browser.home}/transactions/{line['id']}")
    assert found == page
    said = browser.text
    await payee.bank.pool.execute("DELETE FROM rate_limit_window")
    assert (await browser.send(f"{page}/undo", answer=answer)).status_code == 303
    return said


async def requested(desk, transfer, pocket, cents=400_00, *, status=201, code=None):
    """Request to pay a transfer back; members may do so once a second."""
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    found = (await desk.ask("POST", REQUESTS, back(transfer, pocket, cents), status=status)).json()
    assert found.get("code") == code
    return found


async def make_older(bank, transfer, age):
    at = await bank.pool.fetchval("SELECT created_at FROM transfer WHERE transfer_id = $1", transfer)
    await bank.pool.execute("UPDATE transfer SET created_at = $2 WHERE transfer_id = $1", transfer, at - age)


async def test_a_payee_pays_back_by_a_transfer_request_under_the_rules_of_its_team(
    world, customer_desks, console, bank
):
    pocket, target = await world.funded(10_000_00), await world.pocket()
    made = await paid(world, pocket, target, 1_000_00)
    path = f"{PATH}{made}/reversal-requests/"
    payer, admin = await customer_desks(pocket.customer), await customer_desks(target.customer)
    asked = await payer.post(path, {"amount_usdc": 400_00, "reason": "Paid twice"})
    assert (asked["side"], asked["status"], asked["amount"]["value"]) == ("REQUESTER", "REQUESTED", 400_00)
    one = f"{ASKED}{asked['id']}/"
    assert await admin.get(one) == asked | {"side": "PAYEE"}
    second = await customer_desks(target.customer)
    await requested(admin, UNKNOWN, target, status=404, code="not-found")
    await requested(admin, made, await world.pocket(target.customer), status=404, code="not-found")
    await requested(admin, made, target, 399_99, status=409, code="reversal-not-open")
    # What was asked in time is answered until the request expires.
    await make_older(bank, made, timedelta(days=61))
    assert "$400.00 back Paid twice" in await answered(console, admin, "pay")
    (request,) = (await admin.get(REQUESTS))["items"]
    known = request["transfer"]["counterparty_name"], request["status"], (await payer.get(one))["status"]
    assert known == ("Northwind", "PENDING", "REQUESTED")
    reader = await console(second)
    for page in ("approvals", f"approvals/transfers/{request['id']}", f"transfer-requests/{request['id']}"):
        await reader.go(f"{reader.home}/{page}")
        assert "Northwind" in reader.text
    assert "eversal" in reader.text
    await decide(second, request)
    await make_older(bank, made, timedelta(days=-61))
    assert await status_of(admin, request) == ("APPROVED", "COMPLETED")
    ended = await payer.get(one)
    assert (ended["status"], ended["reversed_by"]) == ("ACCEPTED", request["id"])
    assert (await world.get(f"{PATH}{made}/"))["reversed_by"] == [request["id"]]
    # Twice is refused, by the members and by the partner.
    await requested(admin, made, target, status=409, code="reversal-not-open")
    await world.refused("POST", f"{one}accept/", status=409, code="reversal-not-open")
    await expect_clean(bank)


async def test_a_reversal_request_is_answered_by_its_payee_alone_and_expires(
    world, other_partner, customer_desks, bank, console
):
    pocket, target = await world.funded(10_000_00), await world.pocket()
    made = await paid(world, pocket, target, 1_000_00)
    path = f"{PATH}{made}/reversal-requests/"
    payer, admin = await customer_desks(pocket.customer), await customer_desks(target.customer)
    stranger = await customer_desks(await world.customer("Contoso"))
    await world.refused("POST", f"{PATH}{made}/reverse/", {}, status=422, code="transfer-not-reversible")
    for each in (admin, other_partner):
        await each.refused("POST", path, {}, status=404, code="not-found")
    asked = await payer.post(path, {})
    await payer.refused("POST", path, {}, status=409, code="reversal-open")
    one = f"{ASKED}{asked['id']}/"
    wrong = [
        (stranger, "decline"),
        (stranger, "cancel"),
        (payer, "decline"),
        (admin, "cancel"),
        (other_partner, "accept"),
    ]
    for desk, verb in wrong:
        await desk.refused("POST", f"{one}{verb}/", status=404, code="not-found")
    await answered(console, admin, "decline")
    assert (await admin.get(one))["status"] == "DECLINED"
    await admin.refused("POST", f"{one}decline/", status=409, code="reversal-not-open")
    await payer.post(path, {"amount_usdc": 1})
    await world.later(days=20)
    await run_jobs(bank)
    asker = await console(payer, role="INITIATOR")
    (line,) = (await payer.get("/api/v2/transactions/", {"type[]": "ON_US"}))["items"]
    await asker.go(page := f"{asker.home}/transactions/{line['id']}")
    assert (await asker.send(f"{page}/undo", reason="Paid twice")).status_code == 303
    (third, *_) = (await world.get(ASKED, {"customer_id": pocket.customer}))["items"]
    assert (third["amount"]["value"], third["reason"]) == (1_000_00, "Paid twice")
    statuses = [each["status"] for each in (await payer.get(ASKED))["items"]]
    assert statuses == ["REQUESTED", "EXPIRED", "DECLINED"]
    assert (await payer.post(f"{ASKED}{third['id']}/cancel/", b"", status=200))["status"] == "CANCELLED"
    await payer.refused("POST", path, {}, status=422, code="transfer-not-reversible")
    assert [len((await payer.get(ASKED, {"side": side}))["items"]) for side in ("REQUESTER", "PAYEE")] == [3, 0]
    await expect_clean(bank)


async def test_what_a_payee_cannot_pay_back_stays_requested_and_its_payer_learns_nothing_of_it(world, other_partner):
    pocket, target = await world.funded(10_000_00), await other_partner.pocket()
    made = await paid(world, pocket, target, 1_000_00, of=other_partner)
    asked = await world.post(f"{PATH}{made}/reversal-requests/", {})
    own = await other_partner.facilitation()
    body = {"type": "PARTNER_CUSTOMER_DEFUNDING", "from_account": account(target), "to_account": account(own)}
    await other_partner.post(PATH, body | {"target": "Spent", "amount": {"type": "FULL_WITHDRAWAL"}})
    one = f"{ASKED}{asked['id']}/"
    assert (await other_partner.post(f"{one}accept/", b""))["reason"] == "INSUFFICIENT_FUNDS"
    assert (await world.get(one))["status"] == "REQUESTED"
    raised = (
        "SELECT kind, payload::text FROM event WHERE kind LIKE '%reversal%' OR kind LIKE '%on-us.rejected' ORDER BY 1"
    )
    told = await world.bank.pool.fetch(raised)
    assert [row["kind"] for row in told] == ["transfers.on-us.rejected", "transfers.on-us.reversal.updated"]
    assert not any(pocket.id in row["payload"] for row in told if "reversal" in row["kind"])
    heard = "SELECT count(*) FROM event WHERE customer_id = $1 AND kind <> ALL('{transfers.on-us.success}')"
    before = await world.bank.pool.fetchval(heard, pocket.key[0])
    assert (await world.post(f"{one}cancel/", b"", status=200))["status"] == "CANCELLED"
    assert await world.bank.pool.fetchval(heard, pocket.key[0]) == before + 1
    await other_partner.refused("POST", f"{one}accept/", status=409, code="reversal-not-open")
    await expect_clean(world.bank)
