"""Trading strategies, through the Customer API."""

PATH = "/api/v2/trading-strategies/"


async def test_strategies_are_those_the_partner_sees(desk, world):
    for filters in ({}, {"enabled_for": "DEPOSIT"}, {"offset": 1, "limit": 2}):
        assert await desk.get(PATH, filters) == await world.get(PATH, filters)


async def test_a_use_that_is_not_known_is_refused(desk):
    await desk.invalid("GET", PATH, filters={"enabled_for": "LUNCH"}, loc="query.enabled_for")
