"""The calendar of open days and cut-offs."""

from datetime import date

CALENDAR = "/api/v1/calendar/"


async def test_the_calendar_shows_open_days_and_cut_offs_as_instants(world, customer_desk):
    shown = (await world.get(CALENDAR, {"date_from": "2025-07-01", "date_to": "2025-07-07"}))["items"]
    days = {each["date"]: each for each in shown}
    assert len(days) == 7
    assert days["2025-07-04"]["closed_for"] == "Independence Day"
    assert days["2025-07-04"]["cut_offs"] == []
    assert days["2025-07-05"]["closed_for"] == "Weekend"
    eve = days["2025-07-03"]
    assert (eve["closes_early"], eve["market_closes_at"]) == (True, "2025-07-03T18:00:00Z")
    cut_offs = {(each["rail"], each["direction"], each["from_cents"]): each for each in eve["cut_offs"]}
    assert cut_offs["WIRE", "CREDIT", None]["at"] == "2025-07-03T20:00:00Z"
    debit = cut_offs["ACH", "DEBIT", None]
    assert (debit["at"], debit["settles_at"]) == ("2025-07-03T16:00:00Z", "2025-07-03T21:00:00Z")
    # A large credit is sent on Monday, with the window of the night after it.
    assert cut_offs["ACH", "CREDIT", 25_000_00]["settles_at"] == "2025-07-08T12:30:00Z"
    assert (await customer_desk.get(CALENDAR, {"date_from": "2025-07-01", "date_to": "2025-07-07"}))["items"] == shown
    assert len((await world.get(CALENDAR))["items"]) == 14
    for filters in (
        {"date_from": "2025-07-01", "date_to": "2025-06-30"},
        {"date_from": "2025-07-01", "date_to": "2026-07-01"},
    ):
        await world.invalid("GET", CALENDAR, loc="query.date_to", filters=filters)


async def test_a_day_that_the_bank_declares_closed_is_shown(world, closures):
    await closures.declare(date(2025, 6, 4))
    (day,) = (await world.get(CALENDAR, {"date_from": "2025-06-04", "date_to": "2025-06-04"}))["items"]
    assert (day["closed_for"], day["is_fed_day"], day["cut_offs"]) == ("Declared by the bank", False, [])
