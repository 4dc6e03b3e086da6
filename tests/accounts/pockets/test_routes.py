"""Pockets over HTTP: opened, read in every way, listed, changed and closed."""

from datetime import date
from typing import Any

from billfold.accounts.pockets import schemas

NAME: Any = {"pocket_name": "Reserve"}


async def test_a_pocket_is_opened_with_the_requested_strategies(world):
    for body, deposit, reinvestment in [
        ({"deposit_strategy_id": "UST-4W"}, "UST-4W", "UST-4W"),
        ({"trading_strategy_id": "UST-13W"}, "UST-13W", "UST-13W"),
        ({"pocket_configuration_id": "UST-26W"}, "UST-26W", "UST-26W"),
        ({"deposit_strategy_id": "UST-52W", "reinvestment_strategy_id": "UST-4W"}, "UST-52W", "UST-4W"),
        ({"deposit_strategy_id": "UST-4W", "reinvestment_strategy_id": None}, "UST-4W", None),
        ({"trading_strategy_id": "UST-4W", "deposit_strategy_id": "UST-4W"}, "UST-4W", "UST-4W"),
        ({"trading_strategy_id": "UST-4W", "reinvestment_strategy_id": "UST-4W"}, "UST-4W", "UST-4W"),
    ]:
        customer = await world.customer()
        made = await world.post(f"/api/v2/customers/{customer}/pockets/", NAME | body)
        assert made["deposit_strategy_id"] == deposit
        assert made["reinvestment_strategy_id"] == reinvestment
        assert (made["pocket_name"], made["status"], made["type"]) == ("Reserve", "OPEN", "STANDARD")
        assert made["object_type"] == "Pocket"
        assert made["customer_id"] == customer
        assert await world.get(f"/api/v2/pockets/{made['id']}/") == made
        account = await world.get(f"/api/v1/customers/{customer}/")
        assert account["account_status"] == "OPEN"


async def test_a_contradictory_request_opens_no_pocket(world):
    customer = await world.customer()
    path = f"/api/v2/customers/{customer}/pockets/"
    for body, loc in [
        ({}, "body.deposit_strategy_id"),
        ({"reinvestment_strategy_id": "UST-4W"}, "body.deposit_strategy_id"),
        ({"trading_strategy_id": "UST-4W", "deposit_strategy_id": "UST-13W"}, "body.trading_strategy_id"),
        ({"trading_strategy_id": "UST-4W", "reinvestment_strategy_id": None}, "body.trading_strategy_id"),
        ({"trading_strategy_id": "UST-4W", "pocket_configuration_id": "UST-13W"}, "body.pocket_configuration_id"),
        ({"deposit_strategy_id": "UST-8W"}, "body.deposit_strategy_id"),
        ({"deposit_strategy_id": ""}, "body.deposit_strategy_id"),
        ({"trading_strategy_id": "ust-4w"}, "body.trading_strategy_id"),
        ({"deposit_strategy_id": "UST-4W", "reinvestment_strategy_id": "GOLD"}, "body.reinvestment_strategy_id"),
    ]:
        await world.invalid("POST", path, NAME | body, loc=loc)
        assert (await world.get(path))["items"] == []


async def test_a_new_pocket_has_a_portal_and_buys_bills_with_its_deposit(world):
    pocket = await world.funded(100_000_00)
    shown = await world.get(pocket.path)
    portfolio = shown["portfolio"]
    (held,) = portfolio["securities"]
    assert held["type"] == "FIXED_INCOME"
    assert held["description"] == "US T-Bill"
    assert len(held["cusip"]) == 9
    assert held["quantity"] > 0
    assert held["maturity_date"] > "2025-06-02"
    assert "." in held["mark_price"]
    assert 0.03 < float(held["yield_to_maturity"]) < 0.06
    micros = round(float(held["mark_price"]) * 1_000_000)
    assert held["market_value"]["value"] == (held["quantity"] * micros + 5000) // 10_000
    cash, total = portfolio["cash"]["value"], portfolio["total_value"]
    assert total["value"] == held["market_value"]["value"] + cash
    assert total["currency"] == "USD"
    assert total["formatted"] == f"${total['value'] / 100:,.2f}"
    assert portfolio["liquidation_value_t0"]["value"] == cash
    assert portfolio["liquidation_value_t1"]["value"] > 99_000_00
    assert portfolio["all_time_earnings"]["value"] == total["value"] - 100_000_00
    assert portfolio["fees"] == []
    assert "pricing_timestamp" not in portfolio or portfolio["pricing_timestamp"] is None


async def test_settled_bills_can_be_liquidated_the_same_day(world):
    pocket = await world.funded(100_000_00)
    await world.days(1)
    portfolio = (await world.get(pocket.path))["portfolio"]
    assert portfolio["liquidation_value_t0"]["value"] > 99_000_00
    assert portfolio["liquidation_value_t1"]["value"] > 99_000_00


async def test_the_accrued_fee_is_shown_before_it_is_charged(world):
    pocket = await world.funded(1_000_000_00)
    await world.days(5)
    portfolio = (await world.get(pocket.path))["portfolio"]
    (fee,) = portfolio["fees"]
    assert fee["type"] == "AUM_FEE"
    # 25 basis points a year on a million dollars are $6.85 a day; seven days have ended.
    assert abs(fee["amount"]["value"] - 7 * 685) < 20
    worth = portfolio["total_value"]["value"] - fee["amount"]["value"]
    assert abs(portfolio["liquidation_value_t0"]["value"] - worth) < 30_000


async def test_the_real_time_yield_slope_leads_from_one_value_to_the_next(world):
    pocket = await world.funded(1_000_000_00)
    await world.post(f"/api/v1/sandbox/pockets/{pocket.id}/", {"real_time_yield": True}, 200)
    first = await world.get(pocket.path)
    assert "real_time_yield" in first["attributes"]
    assert first["portfolio"]["pricing_timestamp"] == "2025-06-02T13:00:00Z"
    slope = float(first["portfolio"]["appreciation_per_second"])
    assert slope > 0
    await world.later(hours=2)
    second = await world.get(pocket.path)
    grown = second["portfolio"]["total_value"]["value"] - first["portfolio"]["total_value"]["value"]
    assert abs(grown - slope * 7200) <= 2


async def test_the_yield_slope_of_an_empty_pocket_is_zero_with_twelve_decimals(world):
    pocket = await world.pocket()
    await world.post(f"/api/v1/sandbox/pockets/{pocket.id}/", {"real_time_yield": True}, 200)
    shown = (await world.get(pocket.path))["portfolio"]
    earned = await world.get(f"{pocket.path}earnings/")
    of_all = await world.get("/api/v2/earnings/", {"pocket_id[]": pocket.id})
    for found in (shown, earned, *of_all["items"], of_all["aggregate"]):
        assert found["appreciation_per_second"] == "0.000000000000"


async def test_real_time_values_are_computed_for_the_current_second(world):
    pocket = await world.funded(50_000_000_00)
    await world.later(minutes=5, seconds=30)

    async def total(**filters):
        (item,) = (await world.get("/api/v2/pockets/", {"customer_id[]": pocket.customer, **filters}))["items"]
        parts = sum(each["market_value"]["value"] for each in item["portfolio"]["securities"])
        assert item["portfolio"]["total_value"]["value"] == parts + item["portfolio"]["cash"]["value"]
        return item["portfolio"]["total_value"]["value"]

    mark, now = await total(), await total(valuation_type="REAL_TIME")
    assert mark == await total(valuation_type="MARK") == await world.value(pocket)
    assert 0 < now - mark < 10_00
    await world.later(seconds=10)
    assert await total() == mark
    assert await total(valuation_type="REAL_TIME") > now
    await world.until("2025-06-07T12:00:00-04:00")
    weekend = await total(valuation_type="REAL_TIME")
    assert weekend > await total()


async def test_omit_leaves_parts_out_of_a_pocket(world):
    pocket = await world.funded(10_000_00)
    for path in (pocket.path, f"/api/v2/customers/{pocket.customer}/pockets/{pocket.id}/"):
        for name in ("omit[]", "omit"):
            shown = await world.get(path, {name: "ALL_TIME_EARNINGS"})
            assert "all_time_earnings" not in shown["portfolio"]
            assert (await world.get(path, {name: "PORTFOLIO"}))["portfolio"] is None
        assert "all_time_earnings" in (await world.get(path))["portfolio"]
        await world.ask("GET", path, status=422, filters={"omit[]": "CASH"})
    lists = ("/api/v2/pockets/", f"/api/v2/customers/{pocket.customer}/pockets/")
    for path in lists:
        both = {"omit[]": ["ALL_TIME_EARNINGS", "PORTFOLIO"]}
        assert (await world.get(path, both))["items"][0]["portfolio"] is None


async def test_the_deprecated_earnings_figure_disappears_after_its_sunset(world, monkeypatch):
    assert date(2026, 8, 1) == schemas.ALL_TIME_EARNINGS_UNTIL, "as it was announced"
    monkeypatch.setattr(schemas, "ALL_TIME_EARNINGS_UNTIL", date(2025, 6, 7))
    pocket = await world.pocket()
    await world.until("2025-06-06T12:00:00-04:00")
    assert "all_time_earnings" in (await world.get(pocket.path))["portfolio"]
    await world.until("2025-06-09T12:00:00-04:00")
    for path in (pocket.path, f"/api/v1/service-accounts/{pocket.id}/"):
        assert "all_time_earnings" not in (await world.get(path))["portfolio"]


async def test_pockets_are_listed_newest_first_page_by_page(world, other_partner):
    customer = await world.customer()
    opened = [await world.pocket(customer, name=f"No. {n}") for n in range(5)]
    other = await world.pocket()
    await other_partner.pocket()
    path = f"/api/v2/customers/{customer}/pockets/"
    mine = await world.pages(path)
    assert {each["id"] for each in mine} == {each.id for each in opened}
    everyone = await world.pages("/api/v2/pockets/")
    assert {each["id"] for each in everyone} == {each.id for each in [*opened, other]}
    named = await world.pages("/api/v2/pockets/", {"customer_id[]": [customer]}, limit=3)
    assert named == mine
    both = {"customer_id[]": [customer, other.customer]}
    assert len(await world.pages("/api/v2/pockets/", both)) == 6
    assert all(each["customer_id"] for each in everyone)


async def test_a_pocket_list_filters_by_status(world):
    customer = await world.customer()
    kept, gone = await world.pocket(customer), await world.pocket(customer)
    await _close(world, gone)
    for path in ("/api/v2/pockets/", f"/api/v2/customers/{customer}/pockets/"):
        for status, expected in (("OPEN", {kept.id}), ("CLOSED", {gone.id}), ("FROZEN", set())):
            page = await world.get(path, {"filter[status]": status})
            assert {each["id"] for each in page["items"]} == expected
        await world.ask("GET", path, status=422, filters={"filter[status]": "SOLD"})


async def test_a_pocket_name_and_its_strategies_can_be_changed(world):
    pocket = await world.pocket()
    path = f"/api/v2/customers/{pocket.customer}/pockets/{pocket.id}/"
    for name in ("pocket_name", "name"):
        changed = await world.patch(path, {name: f"by {name}"})
        assert changed["pocket_name"] == f"by {name}"
        assert "customer_id" not in changed
    changed = await world.patch(path, {"deposit_strategy_id": "UST-13W"})
    assert changed["deposit_strategy_id"] == "UST-13W"
    assert changed["reinvestment_strategy_id"] == "UST-4W"
    changed = await world.patch(path, {"reinvestment_strategy_id": None})
    assert changed["reinvestment_strategy_id"] is None
    changed = await world.patch(path, {"reinvestment_strategy_id": "UST-52W"})
    assert changed["reinvestment_strategy_id"] == "UST-52W"
    shown = await world.get(path)
    assert (shown["pocket_name"], shown["status"]) == ("by name", "OPEN")


async def test_a_malformed_pocket_change_changes_nothing(world):
    pocket = await world.pocket()
    path = f"/api/v2/customers/{pocket.customer}/pockets/{pocket.id}/"
    before = await world.get(path)
    for body, loc in [
        ({"status": "CLOSED"}, "body.closure_reason"),
        ({"status": "OPEN", "closure_reason": "INACTIVITY"}, "body.status"),
        ({"name": "a", "pocket_name": "b"}, "body.name"),
        ({"pocket_name": None}, "body"),
        ({"closure_reason": "INACTIVITY"}, "body.closure_reason"),
        ({"closure_reason": "INACTIVITY", "name": "a"}, "body.closure_reason"),
        ({"deposit_strategy_id": "UST-1W"}, "body.deposit_strategy_id"),
    ]:
        await world.invalid("PATCH", path, body, loc=loc)
        assert await world.get(path) == before


async def _close(world, pocket, reason="USER_INSTIGATED"):
    path = f"/api/v2/customers/{pocket.customer}/pockets/{pocket.id}/"
    return await world.patch(path, {"status": "CLOSED", "closure_reason": reason})


POCKETS = "/api/v2/pockets/"


async def test_the_customer_api_opens_lists_and_shows_pockets_like_the_partner_api(customer_desk, world):
    opened = await customer_desk.pocket(weeks=13)
    await world.wire(opened, 250_000_00)
    shown = await customer_desk.get(opened.path)
    assert shown == await world.get(opened.path)
    assert shown["portfolio"]["total_value"]["value"] > 249_000_00
    assert (shown["status"], shown["customer_id"]) == ("OPEN", customer_desk.team.customer)
    assert shown["deposit_strategy_id"] == shown["reinvestment_strategy_id"] == "UST-13W"
    listed = await customer_desk.get(POCKETS)
    assert listed == {"offset": 0, "count": 1, "items": [shown], "object_type": "List"}


async def test_the_customer_api_rejects_a_pocket_configuration(customer_desk):
    body = {"pocket_name": "x", "pocket_configuration_id": "UST-4W"}
    await customer_desk.invalid("POST", POCKETS, body, loc="body.pocket_configuration_id")
    assert (await customer_desk.get(POCKETS))["count"] == 0


async def test_the_pocket_list_is_paged_by_offset_newest_first(customer_desk):
    opened = []
    for n in range(4):
        opened.append((await customer_desk.pocket(name=f"p{n}")).id)
        await customer_desk.later(seconds=1)
    page = await customer_desk.get(POCKETS, {"offset": 1, "limit": 2})
    assert (page["offset"], page["count"]) == (1, 4)
    assert [each["id"] for each in page["items"]] == [opened[2], opened[1]]
    assert (await customer_desk.get(POCKETS, {"offset": 9}))["items"] == []
    lean = await customer_desk.get(POCKETS, {"omit[]": "PORTFOLIO"})
    assert [each["portfolio"] for each in lean["items"]] == [None] * 4
    assert (await customer_desk.get(POCKETS, {"filter[status]": "CLOSED"}))["count"] == 0
    for filters in ({"offset": -1}, {"offset": 10**30}, {"limit": 101}, {"omit": "X"}, {"cursor": "x"}):
        await customer_desk.ask("GET", POCKETS, status=422, filters=filters)
