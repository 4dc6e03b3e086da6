"""Trades through the Customer API: both versions and the file."""

import pytest
from tests.interfaces.customer_api.test_transactions import table

OLDER, NEWER, FILE = "/api/v1/trades/", "/api/v2/trades/", "/api/v1/trades.csv"


@pytest.fixture
async def lived(desk, world):
    """Two Pockets: bills bought, moved in kind, sold and redeemed."""
    first, second = await desk.pocket(), await desk.pocket()
    await world.wire(first, 100_000_00)
    await world.days(2)
    await world.transfer(first, second, 10_000_00, transfer_type="SECURITY_TRANSFER")
    await world.transfer(first, second, 5_000_00)
    await world.days(22)
    return first, second


async def test_both_versions_show_what_the_partner_sees(desk, world, lived):
    customer = desk.team.customer
    newer = (await desk.get(NEWER, {"limit": 100}))["items"]
    theirs = await world.get(f"/api/v2/customers/{customer}/trades/", {"limit": 100})
    assert newer == theirs["items"]
    kinds = {each["activity"] for each in newer}
    assert kinds == {"BUY", "SELL", "MATURITY", "SAME_ENTITY_SECURITY_TRANSFER"}
    older = (await desk.get(OLDER, {"limit": 100}))["items"]
    theirs = await world.get(f"/api/v1/customers/{customer}/trades/", {"limit": 100})
    assert older == theirs["items"]
    assert {each["activity"] for each in older} == {"BUY", "SELL", "MATURITY"}
    assert await desk.pages(NEWER, limit=3) == newer
    assert await desk.pages(OLDER, {"order": "asc"}, limit=3) == older[::-1]


async def test_pockets_and_dates_choose_in_lists_and_the_file(desk, lived):
    first, _ = lived
    for filters in (
        {},
        {"account[]": first.id},
        {"book_date_from": "2025-06-04"},
        {"book_date_to": "2025-06-02"},
        {"settlement_date_from": "2025-06-05", "settlement_date_to": "2025-06-05"},
        {"trade_datetime_from": "2025-06-03", "trade_datetime_to": "2025-06-04"},
    ):
        items = (await desk.get(OLDER, {**filters, "limit": 100}))["items"]
        rows = table(await desk.ask("GET", FILE, status=200, filters=filters))
        assert [row["id"] for row in rows] == [each["id"] for each in items]
        for row, each in zip(rows, items, strict=True):
            assert row["notional"] == str(each["notional"]["value"])
            assert row["is_settled"] == str(each["is_settled"]).lower()
            assert row["settled_date"] == (each["settled_date"] or "")
    named = (await desk.get(NEWER, {"pocket_id[]": first.id, "limit": 100}))["items"]
    assert {each["pocket_id"] for each in named} == {first.id}


async def test_wrong_filters_and_foreign_pockets_are_refused(desk, stranger, lived):
    first, _ = lived
    for path in (OLDER, NEWER, FILE):
        await desk.invalid("GET", path, filters={"book_date_from": "x"}, loc="query.book_date_from")
        await desk.invalid("GET", path, filters={"colour": "red"}, loc="query.colour")
    for path, name in ((OLDER, "account[]"), (NEWER, "pocket_id[]"), (FILE, "account[]")):
        asked = {name: first.id}
        await stranger.refused("GET", path, filters=asked, status=404, code="not-found")
        await desk.invalid("GET", path, filters={name: "x"}, loc=f"query.{name}.0")
    assert (await stranger.get(NEWER))["items"] == []
