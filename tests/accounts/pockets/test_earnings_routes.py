"""Earnings over HTTP: additive figures that agree with the portfolio in every period."""

from datetime import date, datetime, timedelta
from itertools import pairwise

import pytest
from tests.support.cases import in_one_bank

from billfold.platform.dates import ET

PATH = "/api/v2/earnings/"
FIGURES = (
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
FLOWS = FIGURES[:7]
"""The figures that add up over adjoining periods; values at the ends do not."""


def earnings_path(pocket):
    return f"{pocket.path}earnings/"


def cents(entry):
    """Return the figures of an entry in cents, each an Amount in dollars."""
    assert all(entry[name]["currency"] == "USD" for name in FIGURES)
    return {name: entry[name]["value"] for name in FIGURES}


def between(date_from, date_to):
    return {"period": "range", "date_from": str(date_from), "date_to": str(date_to)}


def proven(entry):
    """Check the invariants of an earnings entry; return its figures."""
    found = cents(entry)
    assert found["earnings"] == found["realised"] + found["unrealised_change"]
    assert found["earnings_net"] == found["earnings"] - found["fees"]
    grown = found["end_value"] - found["start_value"]
    assert grown == found["earnings_net"] + found["contributions"] - found["withdrawals"]
    return found


async def values(desk, pocket, **days):
    """Return the values of a Pocket at the ends of days, in cents."""
    listed = await desk.get(f"{pocket.path}values/", days)
    return {each["date"]: each["total_value"]["value"] for each in listed["items"]}


@pytest.fixture
async def pockets_of_three_months(world):
    """Two Pockets after three months of payments both ways, a maturity, fees and a sale."""
    pocket = await world.funded(500_000_00)
    other = await world.pocket(pocket.customer, weeks=13)
    await world.days(2)
    await world.transfer(pocket, other, 120_000_00)
    await world.days(3)
    await world.ach(pocket, 7_777_77)
    await world.days(20)
    await world.transfer(other, pocket, 50_000_00, transfer_type="SECURITY_TRANSFER")
    await world.until("2025-07-18T19:30:00-04:00")
    await world.wire(pocket, 33_333_33)
    await world.until("2025-08-21T11:00:00-04:00")
    return pocket, other


async def test_earnings_on_the_day_of_the_deposit_are_near_zero(world):
    pocket = await world.funded(100_000_00)
    entry = await world.get(earnings_path(pocket))
    found = proven(entry)
    assert found["contributions"] == 100_000_00
    assert found["end_value"] == await world.value(pocket)
    assert (found["start_value"], found["fees"]) == (0, 0)
    assert abs(found["earnings"]) < 10_00
    assert (entry["date_from"], entry["date_to"]) == ("2025-06-02", "2025-06-02")
    assert entry["object_type"] == "PocketEarnings"


async def all_time_earnings_equal_those_of_the_portfolio(world, pockets_of_three_months):
    for pocket in pockets_of_three_months:
        found = proven(await world.get(earnings_path(pocket), {"period": "all-time"}))
        portfolio = (await world.get(pocket.path))["portfolio"]
        assert found["end_value"] == portfolio["total_value"]["value"]
        assert found["earnings"] == portfolio["all_time_earnings"]["value"]
        assert found["earnings"] > 0
    fee = await world.bank.pool.fetchval("SELECT sum(fees)::bigint FROM pocket")
    assert fee > 0


async def earnings_of_adjacent_periods_add_up_to_the_total(world, pockets_of_three_months):
    pocket, _ = pockets_of_three_months
    whole = proven(await world.get(earnings_path(pocket), between("2025-06-02", "2025-08-21")))
    for days in [1, 7, 30]:
        total, ends = dict.fromkeys(FLOWS, 0), {}
        begin, before, end = date(2025, 6, 2), None, date(2025, 8, 21)
        while begin <= end:
            until = min(begin + timedelta(days=days - 1), end)
            part = proven(await world.get(earnings_path(pocket), between(begin, until)))
            assert before in {None, part["start_value"]}
            for name in FLOWS:
                total[name] += part[name]
            begin, before = until + timedelta(days=1), part["end_value"]
            ends[str(until)] = before
        assert ends.items() <= (await values(world, pocket)).items()
        assert total == {name: whole[name] for name in FLOWS}
        assert whole["end_value"] == before == await world.value(pocket)
        everything = proven(await world.get(earnings_path(pocket)))
        assert {name: everything[name] for name in FLOWS} == total


async def test_values_over_a_long_period_are_evenly_spaced(world):
    pocket = await world.pocket()
    await world.until("2025-09-15T12:00:00-04:00")
    days = [date.fromisoformat(each) for each in await values(world, pocket)]
    assert {after - before for before, after in pairwise(days)} == {timedelta(days=2)}
    assert days[-1] == date(2025, 9, 15)
    assert await values(world, pocket, date_from="2026-01-01") == {}
    wrong = await world.get(f"{pocket.path}values/", {"date_from": "0001-01-01"}, status=422)
    assert wrong["detail"][0]["loc"] == ["query", "date_from"]


async def an_earnings_period_with_instants_splits_a_day_exactly(world, pockets_of_three_months):
    pocket, _ = pockets_of_three_months
    # The wire came in the evening of the 18th of July, a Friday.
    came = datetime(2025, 7, 18, 19, 30, tzinfo=ET)
    day = (datetime(2025, 7, 18, tzinfo=ET), datetime(2025, 7, 19, tzinfo=ET))

    async def flows(begin, end):
        entry = await world.get(earnings_path(pocket), between(begin.isoformat(), end.isoformat()))
        return proven(entry)

    whole = await flows(*day)
    assert whole["contributions"] == 33_333_33
    before, after = await flows(day[0], came), await flows(came, day[1])
    assert (before["contributions"], after["contributions"]) == (0, 33_333_33)
    assert before["end_value"] == after["start_value"]
    for name in FLOWS:
        assert before[name] + after[name] == whole[name]
    dates = proven(await world.get(earnings_path(pocket), between("2025-07-18", "2025-07-18")))
    assert dates == whole
    entry = await world.get(earnings_path(pocket), between(came.isoformat(), "2025-07-19"))
    assert (entry["date_from"], entry["date_to"]) == ("2025-07-18T23:30:00Z", "2025-07-19")
    nothing = await flows(came, came)
    assert all(nothing[name] == 0 for name in FLOWS)


async def named_earnings_periods_begin_on_their_calendar_dates(world, pockets_of_three_months):
    pocket, _ = pockets_of_three_months
    for period, begin in (("wtd", "2025-08-18"), ("mtd", "2025-08-01"), ("ytd", "2025-01-01")):
        entry = await world.get(earnings_path(pocket), {"period": period})
        assert (entry["date_from"], entry["date_to"]) == (begin, "2025-08-21")
        same = await world.get(earnings_path(pocket), between(begin, "2025-08-21"))
        assert proven(entry) == proven(same)
    default = await world.get(earnings_path(pocket))
    assert default == await world.get(earnings_path(pocket), {"period": "all-time"})


async def the_earnings_aggregate_is_the_exact_sum_of_all_pockets(world, pockets_of_three_months):
    alone = await world.funded(10_000_00)
    await world.post(f"/api/v1/sandbox/pockets/{alone.id}/", {"real_time_yield": True}, 200)
    for filters in (*({"period": name} for name in ("wtd", "mtd", "ytd")), {}, between("2025-07-01", "2025-07-31")):
        listed = await world.get(PATH, filters)
        assert listed["object_type"] == "EarningsList"
        assert {each["pocket_id"] for each in listed["items"]} == {
            *(each.id for each in pockets_of_three_months),
            alone.id,
        }
        entries = [proven(each) for each in listed["items"]]
        total = proven(listed["aggregate"])
        assert total == {name: sum(each[name] for each in entries) for name in FIGURES}
        for each in listed["items"]:
            path = f"/api/v2/pockets/{each['pocket_id']}/earnings/"
            single = await world.get(path, filters)
            assert "pocket_id" not in single
            assert cents(single) == cents(each)
    live = await world.get(PATH)
    slopes = [each for each in live["items"] if each["appreciation_per_second"]]
    assert [each["pocket_id"] for each in slopes] == [alone.id]
    slope = slopes[0]["appreciation_per_second"]
    assert live["aggregate"]["appreciation_per_second"] == slope
    assert live["aggregate"]["pricing_timestamp"] == slopes[0]["pricing_timestamp"]
    past = await world.get(PATH, between("2025-07-01", "2025-07-31"))
    assert past["aggregate"]["appreciation_per_second"] is None


async def test_earnings_list_closed_pockets_only_when_requested_by_id(world):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    await world.transfer(pocket, other, None)
    path = f"/api/v2/customers/{pocket.customer}/pockets/{pocket.id}/"
    await world.days(1)
    await world.patch(path, {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"})
    listed = await world.get(PATH)
    assert [each["pocket_id"] for each in listed["items"]] == [other.id]
    named = await world.get(PATH, {"pocket_id[]": [pocket.id, pocket.id]})
    assert [each["pocket_id"] for each in named["items"]] == [pocket.id]
    assert proven(named["items"][0])["end_value"] == 0
    nobody = await world.get(PATH, {"customer_id": await world.customer()})
    assert nobody["items"] == []
    assert set(cents(nobody["aggregate"]).values()) == {0}
    assert nobody["aggregate"]["date_from"] is None


async def test_an_earnings_list_of_more_than_thirty_pockets_is_refused(world):
    customer = await world.customer()
    opened = [await world.pocket(customer) for _ in range(31)]
    await world.refused("GET", PATH, status=422, code="too-many-pockets")
    filters = {"customer_id": customer}
    await world.refused("GET", PATH, filters=filters, status=422, code="too-many-pockets")
    names = {"pocket_id[]": [each.id for each in opened]}
    await world.refused("GET", PATH, filters=names, status=422, code="too-many-pockets")
    names = {"pocket_id[]": [each.id for each in opened[:30]]}
    assert len((await world.get(PATH, names))["items"]) == 30


async def test_a_period_before_the_pocket_was_opened_is_empty(world):
    pocket = await world.funded(10_000_00)
    found = proven(await world.get(earnings_path(pocket), between("2024-01-01", "2024-12-31")))
    assert set(found.values()) == {0}


async def test_an_earnings_range_before_the_first_prices_is_refused(world):
    pocket = await world.funded(100_000_00)
    for path in (earnings_path(pocket), PATH):
        ever = await world.get(path, between("2023-01-03", "2199-12-31"))
        entry = ever.get("aggregate", ever)
        assert entry["contributions"]["value"] == 100_000_00
        assert (entry["date_from"], entry["date_to"]) == ("2023-01-03", "2025-06-02")
        for early in ("2023-01-02", "0001-01-01", "2023-01-02T23:59:59-05:00"):
            await world.invalid("GET", path, filters=between(early, "2025-06-02"), loc="query.date_from")


async def test_an_idle_pocket_earns_nothing_while_the_market_is_closed(world):
    pocket = await world.funded(1_000_000_00, weeks=52)
    for now, closed_day, first_day in [
        ("2025-06-09T07:00:00-04:00", "2025-06-08", "2025-06-09"),  # a Monday before the market opens
        ("2025-06-21T12:00:00-04:00", "2025-06-19", "2025-06-21"),  # a Saturday, after a holiday on Thursday
        ("2025-09-01T23:59:00-04:00", "2025-08-31", "2025-09-01"),  # Labor Day, the first of a month and a Monday
        ("2025-09-02T07:59:00-04:00", "2025-09-01", "2025-09-02"),  # before the first opening of the month
    ]:
        await world.until(now)
        for filters in (between(closed_day, closed_day), between(first_day, first_day)):
            earned = await world.get(earnings_path(pocket), filters)
            assert earned["earnings"]["value"] == 0, filters
        for period in ("wtd", "mtd", "ytd"):
            assert (await world.get(earnings_path(pocket), {"period": period}))["earnings"]["value"] >= 0
        shown = await world.value(pocket)
        assert (await world.get(earnings_path(pocket), between(first_day, first_day)))["end_value"]["value"] == shown


async def a_named_period_on_a_closed_day_ends_on_the_previous_business_day(world, pockets_of_three_months):
    pocket, _ = pockets_of_three_months
    await world.until("2025-08-31T15:00:00-04:00")
    for period, begin in (("wtd", "2025-08-25"), ("mtd", "2025-08-01"), ("all-time", "2025-06-02")):
        entry = await world.get(earnings_path(pocket), {"period": period})
        assert (entry["date_from"], entry["date_to"]) == (begin, "2025-08-29")
    # Labor Day: between the first instant of the periods and the next opening.
    await world.until("2025-09-01T06:00:00-04:00")
    for period in ("wtd", "mtd", "ytd", "all-time"):
        found = proven(await world.get(earnings_path(pocket), {"period": period}))
        assert found["end_value"] == await world.value(pocket)


async def test_earnings_of_a_foreign_pocket_are_not_found(world, other_partner):
    pocket, foreign = await world.pocket(), await other_partner.pocket()
    for filters in (
        {"pocket_id[]": [pocket.id, foreign.id]},
        {"customer_id": (await world.pocket()).customer, "pocket_id[]": pocket.id},
    ):
        await world.refused("GET", PATH, filters=filters, status=404, code="not-found")


@in_one_bank(
    "check",
    [
        all_time_earnings_equal_those_of_the_portfolio,
        earnings_of_adjacent_periods_add_up_to_the_total,
        an_earnings_period_with_instants_splits_a_day_exactly,
        named_earnings_periods_begin_on_their_calendar_dates,
        the_earnings_aggregate_is_the_exact_sum_of_all_pockets,
        a_named_period_on_a_closed_day_ends_on_the_previous_business_day,
    ],
)
async def test_earnings_of_three_months_agree_with_the_portfolio_in_every_period(world, pockets_of_three_months, check):
    await check(world, pockets_of_three_months)
