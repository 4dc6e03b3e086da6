"""Accounts over HTTP: the older reads of v1, which say that they are on their way out."""

from uuid import UUID


async def test_a_v1_service_account_shows_the_same_money_as_its_pocket(world):
    pocket = await world.funded(100_000_00)
    await world.days(1)
    path = f"/api/v1/service-accounts/{pocket.id}/"
    account = await world.get(path)
    shown = await world.get(pocket.path)
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
