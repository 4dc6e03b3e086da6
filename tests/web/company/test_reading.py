"""Pages of a company in the console: every page linked from its home, every filter, and no foreign objects."""

import csv
import re
from html import unescape

import pytest
from tests.support.browser import first_match
from tests.support.world import UNKNOWN

from billfold.web.console.lists import list_choices

BYTES_MAX = 100_000
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


@pytest.fixture
async def reserve(customer_desk, customer_world):
    """A Pocket with a month behind it: money in and out, bills bought, sold and matured, fees."""
    own = await customer_desk.pocket(name="Reserve")
    await customer_world.wire(own, 250_000_00)
    await customer_world.days(1)
    other = await customer_desk.pocket(name="Payroll")
    await customer_world.transfer(own, other, 60_000_00)
    await customer_world.until("2025-07-03T15:00:00-04:00")
    return own


def links_of(browser):
    """Return the paths that a page leads to within the company, each with its text."""
    links = re.findall(r'<a [^>]*?href="([^"]+)"[^>]*>(.*?)</a>', browser.page.text, re.DOTALL)
    texts = {unescape(path): re.sub(r"<[^>]+>", "", text).strip() for path, text in links}
    own = browser.page.url.path
    texts = {f"{own}{path}" if path[0] == "?" else path: text for path, text in texts.items()}
    return {path: text for path, text in texts.items() if path.startswith("/companies/")}


def kind_of(path):
    """Return a path without the parts that differ between pages of one kind."""
    path = re.sub(r"(cusip|at|cursor|inputs|part)=[^&]*", r"\1=", _ID.sub("*", path))
    return re.sub(r"securities/\w+", "securities/*", path)


async def test_every_linked_console_page_exists_and_explanations_match_their_amounts(console, customer_desk, reserve):
    """Pages are small and have an outline; an amount that is explained is the value of its explanation."""
    browser = await console(customer_desk, role="VIEWER")
    waiting, seen, explained = {browser.home: ""}, set(), 0
    while waiting:
        path, text = waiting.popitem()
        seen.add(kind_of(path))
        page = await browser.go(path)
        assert page.status_code in {200, 303}, (path, browser.text)
        if page.headers["content-type"].startswith("text/html"):
            assert len(page.content) < BYTES_MAX, path
            assert "style=" not in page.text
            assert "{&#39;" not in page.text, path
            if "/explain" in path and text.startswith("$"):
                assert f'<p class="hero">{text.removesuffix(", how it came about")}</p>' in page.text, path
                explained += 1
            waiting |= {each: words for each, words in links_of(browser).items() if kind_of(each) not in seen}
    assert explained >= 15
    kinds = ("portals/*", "pockets/*/trades/*", "transactions/*", "transactions.csv?", "/explain?at=", "confirmation")
    whys = ("explain/transactions/*", "explain/trades/*?pocket_id=*", "limits/explain")
    for kind in (*kinds, *whys):
        assert any(each.endswith(kind) for each in seen), (kind, sorted(seen))


async def test_console_filters_are_in_the_url_and_the_csv_has_the_same_rows(
    console, customer_desk, reserve, monkeypatch
):
    browser = await console(customer_desk)
    monkeypatch.setitem(list_choices.__kwdefaults__, "limit", 1)
    for path in ("transactions", "trades"):
        page = await browser.go(f"{browser.home}/{path}")
        assert {">Reserve</a>", ">Payroll</a>"} <= {*re.findall(">[^<>]*</a>", page.text)}, "names of all rows"
    address = f"{browser.home}/transactions?type=FEE&from=2025-07-01&to=2025-07-31&pocket={reserve.id}"
    await browser.go(address)
    assert browser.text.count("AUM fee") == 1
    assert "Wire received" not in browser.text
    file = await browser.go(unescape(first_match(r'href="([^"]+csv[^"]+)"', browser.page.text)))
    rows = list(csv.DictReader(file.text.splitlines()))
    assert [(each["Type"], each["Date"]) for each in rows] == [("FEE", "2025-07-01")]
    await browser.go(f"{browser.home}/transactions?to=2025-06-30&pocket={reserve.id}")
    await browser.go(unescape(first_match(r'booked on Jul 1, 2025: <a href="([^"]+)"', browser.page.text)))
    assert browser.text.count("AUM fee") == 1
    await browser.go(first_match(r'href="(/companies/[^"?]+/transactions/[^"]+)"', browser.page.text))
    assert "basis points a year Average daily value $" in browser.text
    assert "?part=" in first_match(r'class="explained" href="([^"]+)"', browser.page.text)
    await browser.go(f"{browser.home}/limits")
    assert "Other limits" in browser.text
    assert "New payees in a day" in browser.text
    assert ".customer" not in browser.text
    await browser.go(f"{browser.home}/transactions?amount_from=249,999.99&amount_to=$250000")
    assert "+$250,000.00" in browser.text
    assert "AUM fee" not in browser.text


FIRST_DAY = "The first day must be a date or a date-time with its offset, from 1600-01-01 to 2199-12-31."
LAST_DAY = "The last day must be a date, like 2025-06-02, from 1600-01-01 to 2199-12-31."
WRONG = {
    "transactions?amount_from=much": {"amount_from": "The smallest amount must be dollars like 1,250.50."},
    "transactions?amount_from=12,5": {"amount_from": "The smallest amount must be dollars like 1,250.50."},
    "transactions?amount_from=1e2": {"amount_from": "The smallest amount must be dollars like 1,250.50."},
    "transactions?amount_from=0.001": {"amount_from": "The smallest amount must be dollars like 1,250.50."},
    "transactions?from=2025-02-30": {"from": FIRST_DAY},
    "transactions?from=2025-06-02&to=2025-06-01": {"to": "The last day must not be before time_booked_from."},
    "transactions?type=SWEEP": {"type": "The type must be one of ACH, CARD, CREDIT, FEE, GENERIC, ON_US, WIRE."},
    "transactions?pocket=mine": {"pocket": "The pocket must be a UUID of 36 characters."},
    "trades?settled_to=soon": {"settled_to": LAST_DAY},
    "transactions?cursor=x": "The list has changed since.",
    "pockets?offset=-1": "The address is wrong: offset must be a whole number from 0",
    "pockets?status=RICH": "The address is wrong: filter[status] must be one of",
    "explain?field=market_value": "The address is wrong: field has no sum",
    "explain?field=total_value&x=1": "The address is wrong: x ",
    "transactions.csv?type=SWEEP": "The address is wrong: type[] must be one of",
    "securities/912797QU4/explain?at=2199-01-01": "The address is wrong: at must not be later than now",
}


async def test_a_console_url_with_an_invalid_query_reports_the_error(console, customer_desk):
    browser = await console(customer_desk)
    for path, says in WRONG.items():
        page = await browser.go(f"{browser.home}/{path}")
        assert page.status_code == 422, (path, browser.text)
        if isinstance(says, dict):
            assert browser.mistakes == says, path
        else:
            assert says in browser.text, path
    page = await browser.go(f"{browser.home}/transactions?type=FEE&type=WIRE")
    assert page.status_code == 400
    page = await browser.go(f"{browser.home}/transactions?{'&'.join(f'a{n}=' for n in range(99))}")
    assert page.status_code == 400


async def test_foreign_and_unknown_objects_in_the_console_return_404(
    console, customer_desk, other_customer, customer_world
):
    own = await customer_desk.pocket(name="Reserve")
    pocket = await other_customer.pocket(name="Theirs")
    named = {"pocket_id[]": [own.id]}
    assert [each["id"] for each in (await customer_desk.get("/api/v2/pockets/", named))["items"]] == [own.id]
    await customer_desk.get("/api/v2/pockets/", {"pocket_id[]": [own.id, pocket.id]}, status=404)
    await customer_world.wire(pocket, 1_000_00)
    transaction = (await other_customer.get("/api/v2/transactions/"))["items"][0]["id"]
    trade = (await other_customer.get("/api/v2/trades/"))["items"][0]["id"]
    portal = (await other_customer.get("/api/v2/portals/"))["items"][0]["id"]
    browser = await console(customer_desk)
    for path in (
        f"pockets/{pocket.id}",
        f"pockets/{pocket.id}/explain",
        f"pockets/{pocket.id}/earnings/explain",
        f"explain/pockets/{pocket.id}",
        f"explain/transactions/{transaction}",
        f"explain/trades/{trade}?pocket_id={pocket.id}",
        f"explain/trades/{trade}",
        f"explain/lots/{trade}",
        f"pockets/{pocket.id}/portals/{portal}",
        f"pockets/{own.id}/portals/{portal}",
        f"pockets/{pocket.id}/trades/{trade}",
        f"pockets/{own.id}/trades/{trade}",
        f"pockets/{own.id}/trades/{trade}/confirmation",
        f"pockets/{own.id}?span=ever",
        f"pockets/{own.id}/explain?part=9",
        f"pockets/{UNKNOWN}",
        "pockets/x",
        f"transactions/{transaction}",
        f"transactions?pocket={pocket.id}",
        f"transactions.csv?pocket={pocket.id}",
        f"trades?pocket={pocket.id}",
        "securities/NOBILL000/explain",
    ):
        page = await browser.go(f"{browser.home}/{path}")
        assert page.status_code == 404, (path, page.status_code, browser.text)
        foreign = await browser.go(f"/companies/{other_customer.team.customer}/{path}")
        assert foreign.status_code == 404, path
