"""Earnings through the Customer API."""

import pytest
from tests.support.partner_desk import UNKNOWN

PATH = "/api/v2/earnings/"
SUMMED = (
    "earnings",
    "earnings_net",
    "fees",
    "realised",
    "unrealised_change",
    "contributions",
    "withdrawals",
    "start_value",
    "end_value",
)


@pytest.fixture
async def lived(customer_desk, customer_world):
    """Three Pockets over five weeks."""
    opened = []
    for n in range(3):
        opened.append(await customer_desk.pocket(weeks=4))
        await customer_world.wire(opened[-1], 70_000_01 + n)
        await customer_world.days(1)
    await customer_world.days(24)
    return opened


@pytest.mark.parametrize("period", ["wtd", "mtd", "ytd", "all-time", "range"])
async def test_the_sum_is_exact_for_every_period(customer_desk, customer_world, lived, period):
    asked = {"period": period}
    if period == "range":
        asked |= {"date_from": "2025-06-03", "date_to": "2025-06-20"}
    told = await customer_desk.get(PATH, asked)
    assert told["object_type"] == "EarningsList"
    assert {each["pocket_id"] for each in told["items"]} == {each.id for each in lived}
    for name in SUMMED:
        total = sum(each[name]["value"] for each in told["items"])
        assert told["aggregate"][name]["value"] == total
    assert told["aggregate"]["earnings"]["value"] > 0
    for each in told["items"]:
        one = f"/api/v2/pockets/{each.pop('pocket_id')}/earnings/"
        assert await customer_desk.get(one, asked) == each == await customer_world.get(one, asked)


async def test_pockets_are_named_or_all_that_are_not_closed(customer_desk):
    kept, closed = await customer_desk.pocket(), await customer_desk.pocket()
    await customer_desk.patch(closed.path, {"status": "CLOSED", "closure_reason": "INACTIVITY"})
    assert [each["pocket_id"] for each in (await customer_desk.get(PATH))["items"]] == [kept.id]
    named = (await customer_desk.get(PATH, {"pocket_id[]": [closed.id, closed.id]}))["items"]
    assert [each["pocket_id"] for each in named] == [closed.id]


async def test_at_most_thirty_pockets_are_summed(customer_desk):
    opened = [await customer_desk.pocket(name=str(n)) for n in range(31)]
    await customer_desk.refused("GET", PATH, status=422, code="too-many-pockets")
    asked = {"pocket_id[]": [each.id for each in opened]}
    await customer_desk.refused("GET", PATH, filters=asked, status=422, code="too-many-pockets")
    asked["pocket_id[]"].pop()
    assert len((await customer_desk.get(PATH, asked))["items"]) == 30


@pytest.mark.parametrize(
    "filters",
    [
        {"period": "decade"},
        {"period": "range"},
        {"period": "range", "date_from": "2025-06-01"},
        {"period": "range", "date_from": "2025-06-03", "date_to": "2025-06-01"},
        {"period": "range", "date_from": "x", "date_to": "2025-06-02"},
        {"period": "ytd", "date_from": "2025-06-01"},
    ],
)
async def test_a_period_of_another_shape_is_refused(customer_desk, filters):
    pocket = await customer_desk.pocket()
    for path in (PATH, f"{pocket.path}earnings/"):
        await customer_desk.ask("GET", path, status=422, filters=filters)


async def test_earnings_of_another_customer_are_not_there(customer_desk, other_customer):
    theirs = await other_customer.pocket()
    for each in (theirs.id, UNKNOWN):
        asked = {"pocket_id[]": each}
        await customer_desk.refused("GET", PATH, filters=asked, status=404, code="not-found")
        one = f"/api/v2/pockets/{each}/earnings/"
        await customer_desk.refused("GET", one, status=404, code="not-found")
    assert (await customer_desk.get(PATH))["items"] == []
