"""Trade confirmations at both APIs: what Rule 10b-10 wants, once, and for purchases and sales only."""

import io

from pypdf import PdfReader
from tests.support.world import UNKNOWN


def text_of(pdf):
    return " ".join(" ".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages).split())


async def trades_of(desk, pocket):
    return {each["activity"]: each for each in (await desk.get(f"{pocket.path}trades/"))["items"]}


async def test_purchases_and_sales_have_a_confirmation_but_maturities_do_not(
    customer_world, customer_desk, other_customer
):
    partner = customer_world
    pocket = await partner.funded(100_000_00, customer_desk.team.customer)
    await partner.days(1)
    bill = (await trades_of(partner, pocket))["BUY"]
    away = {"type": "PARTNER_CUSTOMER_DEFUNDING", "target": "Payroll"}
    await partner.transfer(pocket, await partner.facilitation(1_000_00), 10_000_00, **away)
    sold = (await trades_of(partner, pocket))["SELL"]
    for trade, words in ((bill, "You bought US Treasury bills"), (sold, "You sold US Treasury bills")):
        path = f"/api/v1/service-accounts/{pocket.id}/trades/{trade['id']}/confirmation/"
        first, again = [await partner.client.http.get((await partner.get(path))["url"]) for _ in range(2)]
        moved = await customer_desk.ask("GET", path.replace("service-accounts", "accounts"), status=307)
        third = await customer_desk.http.get(moved.headers["location"])
        assert first.content == again.content == third.content
        text, notional = text_of(first.content), trade["notional"]["value"]
        par, principal = f"${trade['quantity'] * 100:,}.00", f"${notional // 100:,}.{notional % 100:02d}"
        rate = f"{float(trade['yield_to_maturity']) * 100:.3f} %"
        for shown in (
            words,
            trade["cusip"],
            trade["price"],
            par,
            principal,
            rate,
            "acted as your agent",
            "not solicited",
        ):
            assert shown in text, (shown, text)
        assert f"{trade['cusip']}-{bill['book_date'].replace('-', '')}" in text
    await partner.days(21)
    matured = (await trades_of(partner, pocket))["MATURITY"]
    for trade_id in (matured["id"], UNKNOWN):
        path = f"trades/{trade_id}/confirmation/"
        await partner.refused("GET", f"/api/v1/service-accounts/{pocket.id}/{path}", status=404, code="not-found")
        await customer_desk.refused("GET", f"/api/v1/accounts/{pocket.id}/{path}", status=404, code="not-found")
    foreign = f"/api/v1/accounts/{pocket.id}/trades/{sold['id']}/confirmation/"
    await other_customer.refused("GET", foreign, status=404, code="not-found")


async def test_the_bank_acts_as_principal_outside_market_hours(customer_world, customer_desk):
    partner = customer_world
    pocket = await partner.funded(100_000_00, customer_desk.team.customer)
    place = await partner.facilitation(1_000_00)
    away = {"type": "PARTNER_CUSTOMER_DEFUNDING", "target": "Payroll"}
    for at, capacity, words in (
        ("2025-06-03T10:00-04:00", "AGENT", "the bank acted as your agent. The name of the other party"),
        ("2025-06-03T23:00-04:00", "PRINCIPAL", "the bank acted as principal, for its own account"),
        ("2025-06-04T16:59:40-04:00", "AGENT", "the bank acted as your agent"),
        ("2025-06-04T17:00-04:00", "PRINCIPAL", "the bank acted as principal"),
        ("2025-06-07T12:00-04:00", "PRINCIPAL", "the bank acted as principal"),
    ):
        await partner.until(at)
        await partner.transfer(pocket, place, 10_000_00, **away)
        (sold, *_) = (await partner.get(f"{pocket.path}trades/"))["items"]
        path = f"trades/{sold['id']}/confirmation/"
        made = await partner.get(f"/api/v1/service-accounts/{pocket.id}/{path}")
        assert (sold["activity"], made["capacity"]) == ("SELL", capacity), at
        moved = await customer_desk.ask("GET", f"/api/v1/accounts/{pocket.id}/{path}", status=307)
        for url in (made["url"], moved.headers["location"]):
            text = text_of((await partner.client.http.get(url)).content)
            assert words in text, text
            assert f"Capacity of the bank {capacity.capitalize()}" in text, text
            assert ("agent" in text) is (capacity == "AGENT"), text
            assert "mark-up and mark-down: none" in text
