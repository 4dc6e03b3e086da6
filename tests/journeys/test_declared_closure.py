"""A day is declared closed after trades and payments that settle on it: every page and API shows the same new date."""

import re
from datetime import date

from tests.journeys.test_ach import Originator
from tests.reports.requests.test_routes import content, make_report, report_request
from tests.reports.test_confirmations import text_of
from tests.support.whole_bank import expect_clean

TUESDAY, WEDNESDAY, THURSDAY, FRIDAY = (date(2025, 6, day) for day in (3, 4, 5, 6))


async def confirmation(desk, pocket, trade):
    path = f"/api/v1/service-accounts/{pocket.id}/trades/{trade['id']}/confirmation/"
    return (await desk.client.http.get((await desk.get(path))["url"])).content


async def payments(desk, pocket, **filters):
    """Return when the payments of a Pocket settled, by type."""
    items = (await desk.get(f"{pocket.path}transactions/", filters))["items"]
    return {each["type"]: each["time_settled"] for each in items}


async def value_dates(desk, pocket, name):
    """Return the value dates of Monday in a file of the bank account, without those of sweeps."""
    done = await make_report(
        desk, report_request("BANK_STATEMENT_REPORT", [name], pocket_ids=[pocket.id], date="2025-06-02")
    )
    text = await content(desk, f"/api/v1/reports/{done['report_id']}/")
    patterns = {
        "CAMT053": r"<ValDt><Dt>([-\d]+)",
        "CAMT052": r"<ValDt><Dt>([-\d]+)",
        "CAMT054": r"<ValDt><Dt>([-\d]+)",
        "MT940": r":61:(\d{6})",
        "BAI2": r"16,\d+,\d+,V,(\d{6})",
        "OFX": r"<DTAVAIL>(\d{8})",
    }
    found = {re.sub(r"\D", "", each)[-6:] for each in re.findall(patterns[name], text)}
    return {date.fromisoformat(f"20{each}") for each in found}


async def test_api_filters_files_and_confirmations_agree_on_the_day(closures):
    desk = closures.desk
    pocket = await desk.funded(10_000_00)
    other = await desk.pocket(pocket.customer)
    await desk.transfer(pocket, other, 4_000_00)  # the sale settles on Tuesday, and so does the transfer
    await desk.ach(other, 1_000_00)  # final on Wednesday
    trades = {each["activity"]: each for each in (await desk.get(f"{pocket.path}trades/"))["items"]}
    issued = await confirmation(desk, pocket, trades["BUY"])
    assert await value_dates(desk, other, "CAMT053") == {date(2025, 6, 2), TUESDAY, WEDNESDAY}
    await closures.declare(TUESDAY)
    await closures.declare(WEDNESDAY)
    for name in ("CAMT053", "CAMT052", "CAMT054", "MT940", "BAI2", "OFX"):
        assert await value_dates(desk, other, name) == {date(2025, 6, 2), THURSDAY}, name
    assert await confirmation(desk, pocket, trades["BUY"]) == issued
    assert "June 3, 2025" in text_of(issued)
    later = text_of(await confirmation(desk, pocket, trades["SELL"]))
    assert "June 5, 2025; June 3, 2025, which was agreed on, was declared closed" in later
    await desk.until("2025-06-05T10:00:00-04:00")
    settled = {"ON_US": "2025-06-05T04:00:00Z", "ACH": "2025-06-05T12:30:00Z"}
    assert await payments(desk, other) == settled
    assert await payments(desk, other, time_settled_from="2025-06-05", time_settled_to="2025-06-06") == settled
    assert await payments(desk, other, time_settled_to="2025-06-05T12:30:00Z") == {"ON_US": settled["ON_US"]}
    assert await payments(desk, other, time_settled_from="2025-06-05T12:30:00Z") == {"ACH": settled["ACH"]}
    assert await payments(desk, other, time_settled_from="2025-06-02", time_settled_to="2025-06-04") == {}
    of_partner = await desk.get(
        "/api/v2/transactions/", {"time_settled_from": "2025-06-05", "type[]": ["ACH", "ON_US"]}
    )
    assert len(of_partner["items"]) == 3
    await expect_clean(closures.bank)


async def test_ach_entries_for_a_declared_closure_are_sent_in_the_same_window_of_the_next_open_day(closures):
    desk = closures.desk
    books = Originator(desk, await desk.funded(500_000_00))
    payee = await books.payee()
    small, large = await books.pay(payee, 100_00), await books.pay(payee, 30_000_00)
    assert (small["effective_date"], large["effective_date"]) == (str(TUESDAY), str(WEDNESDAY))
    await closures.declare(TUESDAY)
    await closures.declare(WEDNESDAY)
    assert [(await books.now(each))["effective_date"] for each in (small, large)] == [str(THURSDAY)] * 2
    await desk.until("2025-06-05T02:14:00-04:00")
    assert await books.statuses(small, large) == ["APPROVED"] * 2
    await desk.until("2025-06-05T10:30:00-04:00")
    assert await books.statuses(small, large) == ["IN_TRANSIT"] * 2
    await desk.until("2025-06-06T12:00:00-04:00")
    assert await books.statuses(small, large) == ["IN_TRANSIT", "PROCESSED"]
    sent = {each.entries[0].amount: each for each in books.batches()}
    assert {each.effective_entry_date for each in sent.values()} == {THURSDAY}
    assert [sent[cents].company_descriptive_date for cents in (100_00, 30_000_00)] == ["SD1300", ""]
    await desk.until("2025-06-09T12:00:00-04:00")
    shown = {each["amount"]["value"]: each["time_settled"] for each in await books.transactions()}
    assert shown == {30_000_00: "2025-06-06T12:30:00Z", 100_00: "2025-06-09T12:30:00Z"}
    (late,) = await books.transactions(time_settled_from="2025-06-07")
    assert late["amount"]["value"] == 100_00
    assert await value_dates(desk, books.pocket, "CAMT053") == {date(2025, 6, 2), FRIDAY, date(2025, 6, 9)}
    await expect_clean(closures.bank)
