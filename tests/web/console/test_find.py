"""A member finds what the role reads by a few letters, an amount or an id; nothing of another company."""

import re
from uuid import UUID

from tests.support.approvals import counterparty


async def _found(browser, text):
    page = await browser.http.get(f"{browser.home}/find", params={"q": text})
    assert page.status_code == 200, text
    return [
        (path, re.sub("<[^>]+>", "", label), heading)
        for heading, group in re.findall(r'data-found="([^"]+)">(.*?)</ul>', page.text, re.DOTALL)
        for path, label in re.findall(
            r'<a class="row hit" href="([^"]+)">.*?"what"><span>(.*?)</span>', group, re.DOTALL
        )
    ]


async def _finds_by_kind(browser, wire):
    """Try kinds, months, typos and actions in the search of a company whose only payment is a wire of June 2025."""
    for text in ("wire received", "wier", "june 2025", "250000"):
        assert wire in [path for path, _, kind in await _found(browser, text) if kind == "Transactions"], text
    assert "Trades" in {kind for *_, kind in await _found(browser, "purchases")}
    for text in ("fee", "wire may 2025", "maturty"):
        assert {kind for *_, kind in await _found(browser, text)} == set(), text
    assert (f"{browser.home}/move-money", "Pay someone", "Actions") in await _found(browser, "send")


async def test_a_member_finds_payees_pockets_people_amounts_and_ids(console, customer_desk, other_customer, world):
    browser, stranger = await console(customer_desk), await console(other_customer)
    own = await customer_desk.pocket(name="Operating reserve")
    await world.wire(own, 250_000_17)
    foreign = await other_customer.pocket(name="Payroll")
    payee = await counterparty(world, customer_desk.team.customer, foreign)
    [(path, name, kind), *_] = await _found(browser, "nrothwind")
    assert (path, kind) == (f"{browser.home}/counterparties/{payee}", "Counterparties")
    assert "Northwind" in name
    assert (f"{browser.home}/pockets/{own.id}", "Operating reserve", "Pockets") in await _found(browser, "oprating")
    [(path, name, kind)] = await _found(browser, "$250,000.17")
    assert kind == "Transactions"
    for key in (str(own.id), str(payee), path.rpartition("/")[2]):
        assert len(await _found(browser, key)) == 1, key
        assert await _found(stranger, key) == []
    for text in ("Operating reserve", "northwind", "250,000.17", "a", "%", "<b>", "\u2603" * 200):
        assert not any(browser.home in path for path, _, _ in await _found(stranger, text)), text
    for text in (str(foreign.id), "Payroll", ""):
        assert all(kind in {"Actions", "Newest transactions"} for _, _, kind in await _found(browser, text)), text
    assert (await stranger.http.get(f"{browser.home}/find?q=reserve")).status_code == 404
    await _finds_by_kind(browser, path)
    list_path = f"{browser.home}/counterparties"
    for query, is_found in (("text=nrothwind", True), ("text=nrothwind&type=wire", False), ("text=Payroll", False)):
        await browser.go(f"{list_path}?{query}")
        assert (str(payee) in browser.page.text) == is_found, query
    await stranger.go(f"{stranger.home}/counterparties?text=northwind")
    assert str(payee) not in stranger.page.text
    await browser.go(f"{list_path}/new?type=on_us")
    made = await browser.send(f"{list_path}/new", business_name="Northwnd", type="on_us", account_number="7")
    assert (made.status_code, browser.mistakes.keys()) == (422, {"account_number"})
    await browser.send(f"{list_path}/new", business_name="", type="on_us", account_number="")
    assert browser.mistakes.keys() == {"business_name", "account_number"}


async def test_a_partner_finds_customers_payments_applications_and_events_of_its_own_alone(
    bank, partner_desk, other_partner, partner_people
):
    viewer, stranger = await partner_people("acme", role="VIEWER"), await partner_people("globex", role="VIEWER")
    customer = await partner_desk.customer("Northwind Traders")
    own = await partner_desk.funded(250_000_17, customer)
    wire = await bank.pool.fetchrow("SELECT wire_id, imad, uetr FROM wire WHERE customer_id = $1", UUID(customer))
    account = await bank.pool.fetchval("SELECT account_number FROM portal WHERE portal_id = $1", UUID(own.portal))
    made = await partner_desk.post("/api/v1/business-applications/", {"name": "Fabrikam"})
    event = (await partner_desk.get("/api/v1/events/"))["items"][0]["event"]["event_id"]
    page, wired = f"{viewer.home}/customers/{customer}", str(wire["wire_id"])
    for text in (customer, own.id, own.portal, account, "NORTHW", wired, wire["imad"], wire["uetr"], "250,000.17"):
        found = await _found(viewer, str(text))
        assert {path.partition("#")[0] for path, _, _ in found} == {page}, text
        assert await _found(stranger, str(text)) == [], text
    for text, place in ((made["id"], "applications"), (event, "developer/events")):
        assert [path for path, _, _ in await _found(viewer, text)] == [f"{viewer.home}/{place}/{text}"]
        assert await _found(stranger, text) == []
    for text in ("", "%", "'", "\u2603" * 200, "orthwind", str(partner_desk.partner.partner_id)):
        assert await _found(viewer, text) == [], text
    assert (await stranger.http.get(f"{viewer.home}/find?q=Northwind")).status_code == 404
