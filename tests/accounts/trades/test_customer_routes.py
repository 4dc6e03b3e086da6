"""Trades through the Customer API: both versions and the file."""

import pytest
from tests.accounts.transactions.test_customer_routes import table

OLDER, NEWER, FILE = "/api/v1/trades/", "/api/v2/trades/", "/api/v1/trades.csv"


@pytest.fixture
async def lived(customer_desk, customer_world):
    """Two Pockets: bills bought, moved in kind, sold and redeemed."""
    first, second = await customer_desk.pocket(), await customer_desk.pocket()
    await customer_world.wire(first, 100_000_00)
    await customer_world.days(2)
    await customer_world.transfer(first, second, 10_000_00, transfer_type="SECURITY_TRANSFER")
    await customer_world.transfer(first, second, 5_000_00)
    await customer_world.days(22)
    return first, second


async def test_both_versions_show_what_the_partner_sees(customer_desk, customer_world, lived):
    customer = customer_desk.team.customer
    newer = (await customer_desk.get(NEWER, {"limit": 100}))["items"]
    theirs = await customer_world.get(f"/api/v2/customers/{customer}/trades/", {"limit": 100})
    assert newer == theirs["items"]
    kinds = {each["activity"] for each in newer}
    assert kinds == {"BUY", "SELL", "MATURITY", "SAME_ENTITY_SECURITY_TRANSFER"}
    older = (await customer_desk.get(OLDER, {"limit": 100}))["items"]
    theirs = await customer_world.get(f"/api/v1/customers/{customer}/trades/", {"limit": 100})
    assert older == theirs["items"]
    assert {each["activity"] for each in older} == {"BUY", "SELL", "MATURITY"}
    assert await customer_desk.pages(NEWER, limit=3) == newer
    assert await customer_desk.pages(OLDER, {"order": "asc"}, limit=3) == older[::-1]


async def test_pockets_and_dates_choose_in_lists_and_the_file(customer_desk, lived):
    first, _ = lived
    for filters in (
        {},
        {"account[]": first.id},
        {"book_date_from": "2025-06-04"},
        {"book_date_to": "2025-06-02"},
        {"settlement_date_from": "2025-06-05", "settlement_date_to": "2025-06-05"},
        {"trade_datetime_from": "2025-06-03", "trade_datetime_to": "2025-06-04"},
    ):
        items = (await customer_desk.get(OLDER, {**filters, "limit": 100}))["items"]
        rows = table(await customer_desk.ask("GET", FILE, status=200, filters=filters))
        assert [row["id"] for row in rows] == [each["id"] for each in items]
        for row, each in zip(rows, items, strict=True):
            assert row["notional"] == str(each["notional"]["value"])
            assert row["is_settled"] == str(each["is_settled"]).lower()
            assert row["settled_date"] == (each["settled_date"] or "")
    named = (await customer_desk.get(NEWER, {"pocket_id[]": first.id, "limit": 100}))["items"]
    assert {each["pocket_id"] for each in named} == {first.id}


async def test_wrong_filters_and_foreign_pockets_are_refused(customer_desk, other_customer, lived):
    first, _ = lived
    for path in (OLDER, NEWER, FILE):
        await customer_desk.invalid("GET", path, filters={"book_date_from": "x"}, loc="query.book_date_from")
        await customer_desk.invalid("GET", path, filters={"colour": "red"}, loc="query.colour")
    for path, name in ((OLDER, "account[]"), (NEWER, "pocket_id[]"), (FILE, "account[]")):
        asked = {name: first.id}
        await other_customer.refused("GET", path, filters=asked, status=404, code="not-found")
        await customer_desk.invalid("GET", path, filters={name: "x"}, loc=f"query.{name}.0")
    assert (await other_customer.get(NEWER))["items"] == []
