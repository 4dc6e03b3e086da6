"""Money of cards through the Partner API: held, cleared, refunded, and visible to the customer."""

from datetime import timedelta

import asyncpg
import pytest
from tests.support.cards import FUNDED

from billfold.verify.runner import verify_bank

FUEL = {"name": "Larkmoor Fuel", "category_code": "5542"}
LINE_BREAK = {"daily": 1, "categories": {"5812\n": 0}}
HOTEL = {"name": "Hotel Vantorp", "category_code": "7011"}


async def open_purchases(cardholder):
    """Let a week begin: a meal, a pump that holds a dollar, a hotel, and a purchase that is never claimed."""
    meal = await cardholder.held(80_00)
    fuel = await cardholder.held(1_00, merchant=FUEL, is_preauthorization=True)
    hotel = await cardholder.held(300_00, merchant=HOTEL, is_preauthorization=True)
    return meal, fuel, hotel, await cardholder.held(25_00)


async def claim_purchases(cardholder, meal, fuel, hotel):
    """Let the merchants claim: a tip, a full tank, a longer stay in two parts; then a refund and a dispute."""
    more = await cardholder.simulate("increment", network_reference=hotel, amount_usdc=150_00)
    assert more["decision"] == "APPROVED"
    eaten = await cardholder.simulate("clearing", network_reference=meal, amount_usdc=96_00)
    await cardholder.simulate("clearing", network_reference=fuel, amount_usdc=62_35, merchant=FUEL)
    await cardholder.simulate("clearing", network_reference=hotel, amount_usdc=200_00, is_final=False, merchant=HOTEL)
    assert await cardholder.reserved() == 250_00 + 25_00
    await cardholder.simulate("reversal", network_reference=hotel, amount_usdc=40_00)
    await cardholder.simulate("clearing", network_reference=hotel, amount_usdc=180_00, merchant=HOTEL)
    await cardholder.simulate("refund", amount_usdc=12_35)
    disputed = {"record_id": eaten["record_id"]}
    await cardholder.simulate("chargeback", **disputed)
    await refuse_dispute(cardholder, "chargeback", **disputed, amount_usdc=1)
    await refuse_dispute(cardholder, "representment", **disputed, amount_usdc=96_01)
    await cardholder.simulate("representment", **disputed, amount_usdc=90_00)
    await refuse_dispute(cardholder, "representment", **disputed, amount_usdc=6_01)


async def refuse_dispute(cardholder, operation, **fields):
    path, body = f"/api/v1/sandbox/card-{operation}/", {"card_id": cardholder.card, **fields}
    await cardholder.desk.refused("POST", path, body, status=409, code=f"{operation}-not-possible")


async def test_a_card_statement_equals_the_ledger_after_a_week_of_use(cardholder):
    desk = cardholder.desk
    started = (await cardholder.portfolio())["total_value"]["value"]
    *claimed, forgotten = await open_purchases(cardholder)
    assert await cardholder.reserved() == 406_00
    assert await cardholder.listed() == [("DEBIT", "BOOKED", each) for each in (80_00, 1_00, 300_00, 25_00)]
    held = await cardholder.portfolio()
    assert started - 1_00 < held["total_value"]["value"] <= started
    assert held["liquidation_value_t1"]["value"] < started - 405_00
    await desk.clock.advance(timedelta(days=1))
    await claim_purchases(cardholder, *claimed)
    await desk.clock.advance(timedelta(days=6))

    cleared = [("DEBIT", 96_00), ("DEBIT", 62_35), ("DEBIT", 200_00), ("DEBIT", 180_00)]
    settled = [*cleared, ("CREDIT", 12_35), ("CREDIT", 96_00), ("DEBIT", 90_00)]
    assert await cardholder.listed() == [(direction, "SETTLED", cents) for direction, cents in settled]
    assert await cardholder.reserved() == 0
    assert await cardholder.money() == [
        *((kind, cents) for cents in (80_00, 1_00, 300_00, 25_00) for kind in ("approved", "on_hold")),
        ("on_hold", 150_00),
        ("reversed", 40_00),
        ("reversed", 30_00),
        ("reversed", 25_00),
    ]
    late = await cardholder.simulate("clearing", network_reference=forgotten, amount_usdc=25_00)
    shown = await desk.get(f"{cardholder.pocket.path}transactions/{late['transaction_id']}/")
    assert (shown["amount"]["value"], shown["issue_id"]) == (25_00, forgotten)
    (v1, *_) = (await desk.get(f"/api/v1/service-accounts/{cardholder.pocket.id}/transactions/"))["items"]
    assert (v1["details"]["card_transaction"]["card_id"], v1["status"]) == (cardholder.card, "PENDING")

    spent = sum(cents if direction == "DEBIT" else -cents for direction, cents in settled) + 25_00
    query = {"period": "range", "date_from": "2025-06-02", "date_to": "2025-06-09"}
    earned = await desk.get(f"{cardholder.pocket.path}earnings/", query)
    assert earned["end_value"]["value"] == FUNDED - spent + earned["earnings_net"]["value"]


DAMAGE = {
    "UPDATE card_authorization SET remaining = remaining + 1, approved = approved + 1 WHERE remaining > 0": None,
    "UPDATE card_authorization SET hold_entry_no = hold_entry_no - 1 WHERE remaining > 0": None,
    "UPDATE card_authorization SET cleared = cleared + 1 WHERE status = 'CLEARED'": None,
    "DELETE FROM card_authorization WHERE remaining > 0": None,
    "DELETE FROM scheduled_job WHERE kind = 'card.hold_expiry'": "card_authorization",
    "UPDATE card_payment SET settles_on = settles_on + 1": None,
    "UPDATE card_payment SET disputed = disputed + 1": None,
    "UPDATE card_limits SET daily = daily + 1": None,
    "UPDATE account SET reserved = reserved - 1 WHERE reserved > 0": "account",
    "UPDATE journal_entry SET postings[1].amount = postings[1].amount + 1 WHERE postings[1].phase = 1": "posting",
}


@pytest.mark.one_server
async def test_verify_reports_a_damaged_card_authorization(cardholder, bank_dsn):
    bank = cardholder.desk.bank
    await cardholder.desk.ask(
        "PUT", f"{cardholder.account}/cards/{cardholder.card}/limits/", {"daily": FUNDED}, status=200
    )
    await cardholder.held(20_00)
    paid = await cardholder.held(30_00)
    await cardholder.simulate("clearing", network_reference=paid, amount_usdc=30_00)
    conn = await asyncpg.connect(bank_dsn)
    for sql, table in DAMAGE.items():
        damage = conn.transaction()
        await damage.start()
        await conn.execute("SET LOCAL session_replication_role = replica")
        assert await conn.execute(sql) != "UPDATE 0", sql
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
        assert report.first is not None, sql
        assert report.first.table == (table or sql.split()[2 if sql.startswith("DELETE") else 1])
        await damage.rollback()
    await conn.close()


async def check_previewed(desk, limits):
    """Check what lower limits would refuse, after 50 at a hotel and 50 elsewhere."""
    lower = {"daily": 120_00, "categories": {"7011": 40_00}}
    shown = (await desk.ask("PUT", limits, lower, status=200, headers={"prefer": "preview"})).json()
    rows = [(each["category"], each["spent"]["value"], each["remaining"]["value"]) for each in shown["card"]["limits"]]
    assert rows == [(None, 100_00, 20_00), ("7011", 50_00, 0)]
    assert [each["amount"]["value"] for each in shown["card"]["over_limit"]] == [50_00]
    assert (await desk.get(limits))["daily"] == 100_00
    return {"headers": {"preview-id": shown["preview_id"]}}


async def check_bound(cardholder, limits):
    """Check that limits are set as they were shown to meet what is spent, or not at all: before there are any, too."""
    desk, lower = cardholder.desk, {"daily": 500_00, "categories": {"5411": 10_00}}
    outdated = {"status": 409, "code": "preview-outdated"}
    cafe = {"name": "Cafe", "category_code": "5814"}
    shown, held = (await desk.ask("PUT", limits, lower, status=200, headers={"prefer": "preview"})).json(), []
    for change in ("held", "reversed"):
        headers = {"preview-id": shown["preview_id"]}
        if change == "held":
            held.append(await cardholder.held(1_00, merchant=cafe))
        else:
            await cardholder.simulate("reversal", network_reference=held[0], amount_usdc=1_00)
        await desk.refused("PUT", limits, lower, **outdated, headers=headers)
        shown = (await desk.ask("PUT", limits, lower, status=200, headers={"prefer": "preview"})).json()
    assert [each["spent"]["value"] for each in shown["card"]["limits"]] == [0, 0]
    headers = {"preview-id": shown["preview_id"]}
    assert (await desk.ask("PUT", limits, lower, status=200, headers=headers)).json()["daily"] == 500_00
    await desk.refused("PUT", limits, lower, status=409, code="preview-used", headers=headers)


async def test_card_spending_over_a_daily_or_category_limit_is_declined(cardholder):
    desk = cardholder.desk
    limits = f"{cardholder.account}/cards/{cardholder.card}/limits/"
    assert (await desk.get(limits))["daily"] is None
    await check_bound(cardholder, limits)
    await desk.ask("PUT", limits, {"daily": 100_00, "categories": {"7011": 60_00, "5812": 0}}, status=200)
    for wrong in ({}, {"daily": -1}, {"daily": 1.5}, {"daily": 1, "categories": {"x": 1}}, {"daily": 1, "per": 2}):
        await desk.ask("PUT", limits, wrong, status=422)
    await desk.invalid("PUT", limits, LINE_BREAK, loc="body.categories....")
    await cardholder.declined("CATEGORY_BLOCKED", merchant={"name": "Inn", "category_code": "5812"})
    stay = await cardholder.held(50_00, merchant=HOTEL)
    await cardholder.declined("CATEGORY_LIMIT", 10_01, merchant=HOTEL)
    await cardholder.held(50_00)
    await cardholder.declined("CARD_LIMIT", 1)
    more = await cardholder.simulate("increment", network_reference=stay, amount_usdc=1)
    assert more["reason"] == "CARD_LIMIT"
    await check_previewed(desk, limits)
    await cardholder.simulate("reversal", network_reference=stay, amount_usdc=50_00)
    await cardholder.held(50_00)
    await desk.clock.advance(timedelta(days=1))
    stay = await cardholder.held(50_00, merchant=HOTEL)
    for cents, reason in ((10_01, "CATEGORY_LIMIT"), (10_00, None)):
        more = await cardholder.simulate("increment", network_reference=stay, amount_usdc=cents)
        assert more["reason"] == reason
    await desk.clock.advance(timedelta(days=1))
    for cents, reason in ((40_00, None), (30_00, "CATEGORY_LIMIT"), (20_00, None)):
        more = await cardholder.simulate("increment", network_reference=stay, amount_usdc=cents)
        assert more["reason"] == reason
    await cardholder.held(40_00)
    await cardholder.declined("CARD_LIMIT", 1)
    await cardholder.set_status(cardholder.card, "CLOSED")
    await desk.refused("PUT", limits, {"daily": 1}, status=412, code="already-closed")


async def test_a_cash_amount_over_the_total_amount_is_an_invalid_card_message(cardholder):
    body = {"card_id": cardholder.card, "amount_usdc": 10_00, "cash_usdc": 10_01}
    refused = await cardholder.desk.post("/api/v1/sandbox/card-authorization/", body, status=422)
    assert "cash" in str(refused)
