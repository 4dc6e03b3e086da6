"""Pages of transactions as the Customer API offers them: every filter, one, and the file."""

import csv
import io
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.support.world import UNKNOWN

from billfold.accounts import entry_numbers
from billfold.accounts.transactions import pages
from billfold.platform.database import paging
from billfold.platform.dates import ET

PATH, FILE = "/api/v2/transactions/", "/api/v2/transactions.csv"


def table(answer):
    """Return the rows of a CSV response."""
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment")
    return list(csv.DictReader(io.StringIO(answer.text)))


@pytest.fixture
async def pockets_with_payments(customer_desk, world):
    """Two Pockets with wires, ACH credits and a transfer between them."""
    first, second = await customer_desk.pocket(), await customer_desk.pocket()
    await world.wire(first, 50_000_00)
    await world.later(hours=1)
    await world.ach(first, 1_234_00, count=2)
    await world.later(hours=1)
    await world.transfer(first, second, 2_000_00)
    return first, second


async def test_the_customer_api_lists_the_same_transactions_as_the_partner_api(
    customer_desk, world, pockets_with_payments
):
    theirs = await world.get(f"/api/v2/customers/{customer_desk.team.customer}/transactions/")
    assert (await customer_desk.get(PATH))["items"] == theirs["items"]
    assert len(theirs["items"]) == 5
    assert await customer_desk.pages(PATH) == theirs["items"]
    assert await customer_desk.pages(PATH, {"order": "asc"}) == theirs["items"][::-1]


async def test_every_transaction_filter_narrows_the_list(customer_desk, pockets_with_payments):
    first, second = pockets_with_payments
    items = (await customer_desk.get(PATH))["items"]
    moved = next(each for each in items if each["type"] == "ON_US")
    wired = next(each for each in items if each["type"] == "WIRE")
    noon = "2025-06-02T10:30:00-04:00"
    for filters, count in (
        ({"pocket[]": first.id}, 4),
        ({"pocket[]": [first.id, second.id, first.id]}, 5),
        ({"type[]": ["ACH", "WIRE"]}, 3),
        ({"on_us_transfer[]": moved["on_us_transfer_id"]}, 2),
        ({"on_us_transfer[]": UNKNOWN}, 0),
        ({"wire[]": wired["wire_id"]}, 1),
        ({"portal[]": first.portal}, 3),
        ({"amount_from": 1_234_00, "amount_to": 2_000_00}, 4),
        ({"time_booked_to": noon}, 3),
        ({"time_booked_from": noon}, 2),
        ({"time_settled_to": noon}, 1),
    ):
        found = (await customer_desk.get(PATH, filters))["items"]
        assert len(found) == count, filters
        rows = table(await customer_desk.ask("GET", FILE, status=200, filters=filters))
        assert [row["id"] for row in rows] == [each["id"] for each in found]


async def test_the_transactions_csv_contains_all_pages_and_no_formulas(customer_desk, world, monkeypatch):
    monkeypatch.setattr("billfold.accounts.transactions.routes.ROWS_PER_PAGE", 2)
    monkeypatch.setattr("billfold.http.responses.ROWS_PER_PAGE", 2)
    pocket = await customer_desk.pocket()
    for name in ('=HYPERLINK("x")', "-1+1", 'Smith, "Co"', "@sum"):
        await world.wire(pocket, 1_000_00, sender=name)
    answer = await customer_desk.ask("GET", FILE, status=200)
    assert answer.text.splitlines()[0] == (
        "id,transaction_id,pocket_id,type,direction,status,amount,currency,description,title,time_booked,time_settled"
        ",external_id,metadata"
    )
    rows = table(answer)
    assert [row["id"] for row in rows] == [each["id"] for each in (await customer_desk.get(PATH))["items"]]
    assert {row["amount"] for row in rows} == {"100000"}
    for row in rows:
        assert not row["description"].startswith(("=", "+", "-", "@"))
        assert not row["title"].startswith(("=", "+", "-", "@"))


async def test_a_text_is_found_in_what_is_encrypted_page_by_page_in_both_directions(customer_desk, world, monkeypatch):
    pocket = await customer_desk.pocket()
    for sender in ("Harbor Mills", "Nobody", "Another", "HARBOR MILLS", "Someone"):
        await world.wire(pocket, 1_000_00, sender=sender)
    theirs = f"/api/v2/customers/{customer_desk.team.customer}/transactions/"
    monkeypatch.setattr(pages, "TEXTS_READ_MAX", 2)
    for desk, path in ((customer_desk, PATH), (world, theirs), (world, "/api/v2/transactions/")):
        for order, limit in (("desc", 1), ("asc", 1), ("desc", 50)):
            filters: dict[str, Any] = {"text": "harbor mills", "order": order, "limit": limit}
            found, page = [], await desk.get(path, filters)
            while True:
                found += page["items"]
                if not page["next_page"]:
                    break
                page = await desk.get(path, filters | {"cursor": page["next_page"]})
            assert [each["counterparty_name"] for each in found] == sorted(
                ["Harbor Mills", "HARBOR MILLS"], reverse=order == "asc"
            ), (path, order, limit)
    rows = table(await customer_desk.ask("GET", FILE, status=200, filters={"text": "harbor", "columns": "people"}))
    assert [row["To or from"] for row in rows] == ["HARBOR MILLS", "Harbor Mills"]
    assert (await customer_desk.get(PATH, {"text": "counterparty"}))["items"] == [], "names of fields are no text"
    for wrong in ("h", "h" * 101):
        await customer_desk.ask("GET", PATH, status=422, filters={"text": wrong})


async def test_the_transactions_csv_for_people_has_names_dollars_and_eastern_time(customer_desk, world):
    pocket = await customer_desk.pocket()
    await world.wire(pocket, 1_000_05, sender="=cmd")
    row = next(each for each in (await customer_desk.get(PATH))["items"])
    answer = await customer_desk.ask("GET", FILE, status=200, filters={"columns": "people"})
    (found,) = table(answer)
    at = datetime.fromisoformat(row["time_booked"]).astimezone(ET)
    name = (await customer_desk.get(f"/api/v2/pockets/{pocket.id}/"))["pocket_name"]
    assert found == {
        "Date": at.date().isoformat(),
        "Time (Eastern)": f"{at:%H:%M}",
        "Pocket": name,
        "To or from": "'=cmd",
        "Description": found["Description"],
        "Type": "WIRE",
        "Status": row["status"],
        "Amount (USD)": "1000.05",
        "Your id": "",
    }
    await customer_desk.ask("GET", FILE, status=422, filters={"columns": "robots"})
    trades = table(await customer_desk.ask("GET", "/api/v1/trades.csv", status=200, filters={"columns": "people"}))
    assert {each["Pocket"] for each in trades} == {name}
    assert sum(Decimal(each["Amount (USD)"]) for each in trades) <= Decimal("1000.05")


async def test_a_filtered_transaction_list_is_searched_in_batches(
    customer_desk, world, pockets_with_payments, monkeypatch
):
    """Pages are short or empty where a search ends, say how far it came, and lead to all that match, both ways."""
    monkeypatch.setattr(paging, "SEARCHED_MAX", 2)
    first, second = pockets_with_payments
    theirs = f"/api/v2/customers/{customer_desk.team.customer}/transactions/"
    for desk, path in ((customer_desk, PATH), (world, theirs), (world, "/api/v2/transactions/")):
        swept: list[tuple[dict[str, Any], int]] = [
            ({"type[]": "CARD", "include_sweeps": "true"}, 0),
            ({"type[]": "WIRE", "include_sweeps": "true"}, 1),
        ]
        for filters, count in (
            *(swept if desk is world else ()),
            ({"type[]": "WIRE"}, 1),
            ({"type[]": "CARD"}, 0),
            ({"type[]": "FEE"}, 0),
            ({"amount_from": 1_234_00, "amount_to": 2_000_00}, 4),
            ({"direction": "DEBIT", "pocket[]": first.id}, 1),
            ({"direction": "CREDIT", "pocket[]": [first.id, second.id]}, 4),
        ):
            for order, few in (("desc", 20), ("asc", 1)):
                monkeypatch.setattr(entry_numbers, "_FEW_POCKETS", few)
                found = await _searched(desk, path, filters | {"order": order})
                assert len(found) == len({*found}) == count, (path, filters, order)
    assert "searched_to" not in await customer_desk.get(PATH), "nothing is chosen among"
    monkeypatch.setattr(paging, "SEARCHED_MAX", 1)
    monkeypatch.setattr(entry_numbers, "_FEW_POCKETS", 20)
    for order in ("desc", "asc"):
        found = await _searched(customer_desk, PATH, {"type[]": "WIRE", "order": order})
        assert len(found) == 1, "an entry with more rows than a page looks through is passed"


async def _searched(desk, path, filters):
    """Return the ids of a list, after checking that paging backwards yields the same ids."""
    pages: list[dict[str, Any]] = []
    cursor = ""
    while not pages or cursor:
        page = await desk.get(path, filters | {"limit": 2, "cursor": cursor})
        pages.append(page)
        assert "searched_to" in page or len(page["items"]) in {0, 2} or page["next_page"] is None
        assert not cursor or page["next_page"] != cursor
        cursor = page["next_page"]
    there = [each["id"] for page in pages for each in page["items"]]
    assert [bool(each["prev_page"]) for each in pages] == [False, *[True] * (len(pages) - 1)]
    back: list[str] = []
    rest, cursor = pages[-1]["items"], pages[-1]["prev_page"]
    while cursor:
        page = await desk.get(path, filters | {"limit": 2, "cursor": cursor})
        back, cursor = [*(each["id"] for each in page["items"]), *back], page["prev_page"]
        assert page["next_page"]
        if page["items"]:
            again = await desk.get(path, filters | {"limit": 2, "cursor": page["next_page"]})
            assert {each["id"] for each in again["items"]} <= {*there}
    assert there == [*back, *(each["id"] for each in rest)]
    return there
