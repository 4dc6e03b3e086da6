"""Accounts over HTTP: the older reads of v1, which say that they are on their way out."""

from uuid import UUID

from tests.interfaces.partner_api.desk import UNKNOWN


async def test_an_account_shows_the_same_money_as_its_pocket(desk):
    pocket = await desk.funded(100_000_00)
    await desk.days(1)
    path = f"/api/v1/service-accounts/{pocket.id}/"
    account = await desk.get(path)
    shown = await desk.get(pocket.path)
    assert (account["id"], account["name"]) == (pocket.id, shown["pocket_name"])
    assert (account["status"], account["object_type"]) == ("OPEN", "Account")
    assert account["total_value"] == shown["portfolio"]["total_value"]
    for name in ("cash", "all_time_earnings"):
        assert account["portfolio"][name] == shown["portfolio"][name]
    (old,), (new,) = account["portfolio"]["securities"], shown["portfolio"]["securities"]
    assert (old["quantity"], old["external_id"]) == (new["quantity"], new["cusip"])
    assert old["market_value"] == new["market_value"]
    assert (old["maturity_date"], old["bid"]) == (new["maturity_date"], new["mark_price"])
    assert old["yield_to_maturity"] == new["yield_to_maturity"]
    assert float(old["ask"]) > float(old["bid"])
    assert old["security_type"] == "FIXED_INCOME"
    assert UUID(old["tradable_id"]).version == 5


async def test_a_customers_accounts_are_his_pockets(desk):
    pocket = await desk.pocket()
    other = await desk.pocket(pocket.customer)
    listed = await desk.get(f"/api/v1/customers/{pocket.customer}/service-accounts/")
    assert {each["id"] for each in listed["items"]} == {pocket.id, other.id}


async def test_the_older_reads_announce_their_end(desk):
    pocket = await desk.pocket()
    for path in (
        f"/api/v1/service-accounts/{pocket.id}/",
        f"/api/v1/customers/{pocket.customer}/service-accounts/",
        f"/api/v1/service-accounts/{pocket.id}/transactions/",
        f"/api/v1/customers/{pocket.customer}/transactions/",
    ):
        answer = await desk.ask("GET", path, status=200)
        assert answer.headers["deprecation"]
        assert answer.headers["sunset"]
    answer = await desk.ask("GET", pocket.path, status=200)
    assert "deprecation" not in answer.headers


async def test_the_old_earnings_figure_is_gone_after_its_last_day(desk):
    pocket = await desk.pocket()
    path = f"/api/v1/service-accounts/{pocket.id}/"
    assert "all_time_earnings" in (await desk.get(path))["portfolio"]
    await desk.until("2026-08-03T12:00:00-04:00")
    assert "all_time_earnings" not in (await desk.get(path))["portfolio"]


async def test_an_account_is_not_there_for_others(desk, stranger):
    pocket = await desk.pocket()
    for path in (
        f"/api/v1/service-accounts/{pocket.id}/",
        f"/api/v1/customers/{pocket.customer}/service-accounts/",
        f"/api/v1/service-accounts/{UNKNOWN}/",
    ):
        await stranger.refused("GET", path, status=404, code="not-found")
    await desk.invalid("GET", "/api/v1/service-accounts/mine/", loc="path.account_id")
