"""Strategies and configurations a Pocket can be opened with."""

PATH = "/api/v2/trading-strategies/"


async def test_the_four_bill_terms_are_offered_as_strategies(partner_desk):
    listed = await partner_desk.get(PATH)
    assert listed == await partner_desk.get("/api/v2/pocket-configurations/")
    assert (listed["offset"], listed["count"], listed["object_type"]) == (0, 4, "List")
    assert [each["id"] for each in listed["items"]] == ["UST-4W", "UST-13W", "UST-26W", "UST-52W"]
    assert [each["maturity_weeks"] for each in listed["items"]] == [4, 13, 26, 52]
    first = listed["items"][0]
    assert first["description"] == "US T-bills, 4-week, Buy-and-hold"
    assert set(first["enabled_for"]) == {"DEPOSIT", "REINVESTMENT"}


async def test_strategies_are_filtered_by_use_and_paged(partner_desk):
    for use in ("DEPOSIT", "REINVESTMENT"):
        assert (await partner_desk.get(PATH, {"enabled_for": use}))["count"] == 4
    await partner_desk.ask("GET", PATH, status=422, filters={"enabled_for": "LUNCH"})
    page = await partner_desk.get(PATH, {"offset": 1, "limit": 2})
    assert (page["offset"], page["count"]) == (1, 4)
    assert [each["id"] for each in page["items"]] == ["UST-13W", "UST-26W"]
    assert (await partner_desk.get(PATH, {"offset": 9}))["items"] == []
    for filters in ({"offset": -1}, {"limit": 0}, {"limit": 101}, {"offset": "x"}):
        await partner_desk.ask("GET", PATH, status=422, filters=filters)
