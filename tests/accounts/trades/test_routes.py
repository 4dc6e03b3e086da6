"""Trades over HTTP: bought, redeemed and moved in kind, in both versions."""

import re
from uuid import UUID

import pytest
from tests.accounts.transactions.test_pages import table


def newer(pocket):
    return [f"/api/v2/customers/{pocket.customer}/trades/", f"{pocket.path}trades/"]


def older(pocket):
    return [f"/api/v1/customers/{pocket.customer}/trades/", f"/api/v1/service-accounts/{pocket.id}/trades/"]


async def test_a_purchase_is_booked_immediately_and_settles_on_the_next_day(world):
    pocket = await world.funded(100_000_00)
    paths = newer(pocket)
    for path in paths:
        (shown,) = (await world.get(path))["items"]
        assert (shown["activity"], shown["status"]) == ("BUY", "BOOKED")
        assert (shown["book_date"], shown["settled_date"]) == ("2025-06-02", None)
    (shown,) = (await world.get(paths[0]))["items"]
    assert shown["description"]
    assert re.fullmatch(r"99\.\d{6}", shown["price"])
    assert re.fullmatch(r"0\.04\d{3}", shown["yield_to_maturity"])
    micros = int(shown["price"].replace(".", ""))
    assert shown["notional"]["value"] == (shown["quantity"] * micros + 5000) // 10_000
    await world.until("2025-06-02T23:59:00-04:00")
    (shown,) = (await world.get(paths[-1]))["items"]
    assert (shown["status"], shown["settled_date"]) == ("BOOKED", None)
    await world.until("2025-06-03T00:00:00-04:00")
    (shown,) = (await world.get(paths[-1]))["items"]
    assert (shown["status"], shown["settled_date"]) == ("SETTLED", "2025-06-03")
    assert await world.get(f"{paths[-1]}{shown['id']}/") == shown
    other = await world.pocket(pocket.customer)
    await world.get(f"{other.path}trades/{shown['id']}/", status=404)


async def test_a_sale_on_friday_evening_shows_the_yield_of_its_price(world):
    """The bid of Friday 6 June is 4.170 %: 99.791500 for Friday, 18 days before maturity.

    (100 - 99.791500) / 99.791500 x 365 / 18 is 4.237 %, though the sale settles on Monday, 15 days
    before maturity. A sale between own Pockets settles on Tuesday, 14 days before maturity: 99.837833, 4.235 %.
    """
    own, pocket = await world.facilitation(1_000_00), await world.funded(100_000_00)
    other = await world.pocket(pocket.customer)
    await world.until("2025-06-06T20:00:00-04:00")
    away = {"type": "PARTNER_CUSTOMER_DEFUNDING", "target": "Payroll"}
    await world.transfer(pocket, own, 10_000_00, **away)
    await world.transfer(pocket, other, 10_000_00)
    inside, outside, _ = (await world.get(newer(pocket)[1]))["items"]
    assert (outside["price"], outside["yield_to_maturity"]) == ("99.791500", "0.04237")
    assert (inside["price"], inside["yield_to_maturity"]) == ("99.837833", "0.04235")
    assert (outside["status"], outside["settled_date"]) == ("BOOKED", None)
    await world.until("2025-06-09T00:00:00-04:00")
    inside, outside, _ = (await world.get(newer(pocket)[1]))["items"]
    assert (outside["status"], outside["settled_date"]) == ("SETTLED", "2025-06-09")
    assert inside["status"] == "BOOKED"


async def test_v1_shows_the_same_purchase_with_a_bill_id(world):
    pocket = await world.funded(100_000_00)
    await world.ach(pocket, 5_000_00)
    new = (await world.get(newer(pocket)[1]))["items"]
    answers = [await world.ask("GET", path, status=200) for path in older(pocket)]
    for answer in answers:
        assert "deprecation" not in answer.headers
        shown = answer.json()["items"]
        assert [each["id"] for each in shown] == [each["id"] for each in new]
    shown = answers[-1].json()["items"]
    for name in ("cusip", "price", "notional", "quantity", "yield_to_maturity", "maturity_date"):
        assert shown[0][name] == new[0][name]
    assert (shown[0]["is_settled"], shown[0]["service_account_id"]) == (False, pocket.id)
    assert shown[0]["tradable_id"] == shown[1]["tradable_id"]
    assert UUID(shown[0]["tradable_id"]).version == 5


async def test_a_maturity_trade_is_at_par_with_zero_yield(world):
    pocket = await world.funded(100_000_00)
    (bought,) = (await world.get(newer(pocket)[1]))["items"]
    await world.until(f"{bought['maturity_date']}T12:00:00-04:00")
    found = (await world.get(newer(pocket)[1], {"order": "asc"}))["items"]
    assert [each["activity"] for each in found] == ["BUY", "MATURITY", "BUY"]
    redeemed = found[1]
    assert (redeemed["price"], redeemed["yield_to_maturity"]) == ("100.000000", "0")
    assert redeemed["cusip"] == bought["cusip"]
    assert redeemed["notional"]["value"] == redeemed["quantity"] * 100_00
    (same,) = [each for each in (await world.get(older(pocket)[0]))["items"] if each["activity"] == "MATURITY"]
    assert (same["id"], same["yield_to_maturity"]) == (redeemed["id"], "0")


async def test_bills_moved_in_kind_are_in_v2_on_both_sides_and_not_in_v1(world):
    pocket = await world.funded(100_000_00)
    other = await world.pocket(pocket.customer)
    made = await world.transfer(pocket, other, 10_000_00, transfer_type="SECURITY_TRANSFER")
    out = (await world.get(newer(pocket)[1]))["items"][0]
    (into,) = (await world.get(newer(other)[1]))["items"]
    assert out["activity"] == into["activity"] == "SAME_ENTITY_SECURITY_TRANSFER"
    assert (out["direction"], into["direction"]) == ("OUT", "IN")
    assert (out["counter_pocket_id"], into["counter_pocket_id"]) == (other.id, pocket.id)
    assert out["on_us_transfer_id"] == into["on_us_transfer_id"] == made["id"]
    assert out["market_value"] == into["market_value"]
    assert out["market_value"]["value"] >= 10_000_00
    of_customer = await world.pages(newer(pocket)[0], limit=1)
    assert len(of_customer) == 3
    assert [each["activity"] for each in (await world.get(older(pocket)[0]))["items"]] == ["BUY"]
    assert (await world.get(older(other)[1]))["items"] == []


async def test_trade_pages_go_both_directions_in_both_orders(world):
    pocket = await world.funded(100_000_00)
    second = await world.funded(50_000_00, pocket.customer)
    for cents in (1_000_00, 2_000_00):
        await world.ach(pocket, cents)
        await world.ach(second, cents)
    for path in (*newer(pocket), *older(pocket)):
        whole = (await world.get(path))["items"]
        for limit in (1, 2):
            assert await world.pages(path, limit=limit) == whole
            assert await world.pages(path, {"order": "asc"}, limit=limit) == whole[::-1]


async def test_a_trade_date_filter_includes_its_first_and_last_day(world):
    pocket = await world.funded(100_000_00)
    await world.days(1)
    await world.ach(pocket, 5_000_00)
    path = newer(pocket)[1]
    second, first = (await world.get(path))["items"]
    for filters, found in (
        ({"book_date_from": "2025-06-03"}, [second]),
        ({"book_date_to": "2025-06-02"}, [first]),
        ({"settlement_date_from": "2025-06-04"}, [second]),
        ({"settlement_date_to": "2025-06-03"}, [first]),
        ({"trade_datetime_from": "2025-06-03"}, [second]),
        ({"trade_datetime_to": "2025-06-02"}, [first]),
        ({"trade_datetime_to": "2025-06-03"}, [second, first]),
        ({"trade_datetime_to": "2199-12-31"}, [second, first]),
        ({"trade_datetime_to": second["trade_datetime"]}, [first]),
    ):
        assert (await world.get(path, filters))["items"] == found, filters


async def test_a_trade_cursor_remains_valid_after_a_new_pocket_is_opened(world):
    pocket = await world.funded(100_000_00)
    await world.ach(pocket, 5_000_00)
    path = newer(pocket)[0]
    second, first = (await world.get(path))["items"]
    page = await world.get(path, {"limit": 1})
    assert page["items"] == [second]
    await world.funded(50_000_00, pocket.customer)
    following = await world.get(path, {"limit": 1, "cursor": page["next_page"]})
    assert following["items"] == [first]
    for wrong, filters in ((newer(pocket)[1], {}), (path, {"pocket_id[]": pocket.id})):
        asked = {**filters, "cursor": page["next_page"]}
        await world.invalid("GET", wrong, filters=asked, loc="query.cursor")


async def test_bills_received_from_an_external_custodian_are_listed_with_its_name(world):
    pocket = await world.pocket()
    body = {
        "account_id": pocket.id,
        "direction": "IN",
        "cusip": "912797PT8",
        "quantity": 5,
        "counterparty_name": "Harbor Custody",
        "cost_usdc": 490_00,
    }
    await world.ask("POST", "/api/v1/sandbox/security-transfer/", body, status=202)
    for path in newer(pocket):
        (shown,) = (await world.get(path))["items"]
        assert (shown["activity"], shown["direction"]) == ("EXTERNAL_SECURITY_TRANSFER", "IN")
        assert (shown["counterparty_name"], shown["quantity"]) == ("Harbor Custody", 5)
        assert shown["status"] == "SETTLED"
    for path in older(pocket):
        assert (await world.get(path))["items"] == []


V1_PATH, V2_PATH, FILE = "/api/v1/trades/", "/api/v2/trades/", "/api/v1/trades.csv"


@pytest.fixture
async def pockets_with_trades(customer_desk, world):
    """Two Pockets: bills bought, moved in kind, sold and redeemed."""
    first, second = await customer_desk.pocket(), await customer_desk.pocket()
    await world.wire(first, 100_000_00)
    await world.days(2)
    await world.transfer(first, second, 10_000_00, transfer_type="SECURITY_TRANSFER")
    await world.transfer(first, second, 5_000_00)
    await world.days(22)
    return first, second


async def test_pocket_and_date_filters_apply_to_trade_lists_and_the_csv(customer_desk, pockets_with_trades):
    first, _ = pockets_with_trades
    for filters in (
        {},
        {"account[]": first.id},
        {"book_date_from": "2025-06-04"},
        {"settlement_date_from": "2025-06-05", "settlement_date_to": "2025-06-05"},
        {"trade_datetime_from": "2025-06-03", "trade_datetime_to": "2025-06-04"},
    ):
        items = (await customer_desk.get(V1_PATH, {**filters, "limit": 100}))["items"]
        rows = table(await customer_desk.ask("GET", FILE, status=200, filters=filters))
        assert [row["id"] for row in rows] == [each["id"] for each in items]
        for row, each in zip(rows, items, strict=True):
            assert row["notional"] == str(each["notional"]["value"])
            assert row["is_settled"] == str(each["is_settled"]).lower()
            assert row["settled_date"] == (each["settled_date"] or "")
    named = (await customer_desk.get(V2_PATH, {"pocket_id[]": first.id, "limit": 100}))["items"]
    assert {each["pocket_id"] for each in named} == {first.id}
