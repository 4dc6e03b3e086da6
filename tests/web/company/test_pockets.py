"""Pockets are opened, renamed and closed through the pages, with their portals; and what they can pay is shown."""

import re
from datetime import date

import pytest
from tests.support.approvals import wire, wire_counterparty
from tests.support.browser import first_match

from billfold.platform.dates import et_date, format_day
from billfold.platform.money import format_usd
from billfold.web.console.lists import presets_of


@pytest.fixture
async def browser(console, customer_desk):
    return await console(customer_desk)


async def opened(browser, name="Taxes", **fields):
    """Open a Pocket with the form; return the path of its page."""
    new = f"{browser.home}/pockets/new"
    await browser.go(new)
    page = await browser.send(new, pocket_name=name, deposit_strategy_id="UST-4W", **fields)
    assert page.status_code == 303, browser.text
    await browser.follow()
    return page.headers["location"].partition("?")[0]


async def change(browser, path, what, **fields):
    """Send a form of the settings of a Pocket; return the status of the answer."""
    await browser.go(f"{path}/settings")
    form = {"csrf": browser.csrf, "form_key": f"key-{what}-{len(fields)}", "change": what, **fields}
    browser.page = await browser.post(f"{path}/settings", form)
    return browser.page.status_code


async def test_a_pocket_is_opened_renamed_and_closed_with_its_portals(browser, customer_desk):
    await opened(browser, "Reserve")
    path = await opened(browser, then="cash")
    assert "Taxes 4-week T-bills, then kept as cash Move money Pay in Settings" in browser.text
    assert await change(browser, path, "rename", name="Tax reserve") == 303
    assert await change(browser, path, "add-portal", name="Refunds") == 303
    await browser.follow()
    assert "Refunds ACH" in browser.text
    portal = first_match(r'name="portal" value="([^"]+)"', browser.page.text)
    assert await change(browser, path, "close-portal", portal=portal) == 303
    assert await change(browser, path, "close-portal", portal=portal, again="") == 409
    assert await change(browser, path, "close") == 303
    await browser.follow()
    assert re.search("Tax reserve .* Closed", browser.text)
    listed = (await customer_desk.get("/api/v2/pockets/"))["items"]
    assert {each["pocket_name"]: each["status"] for each in listed} == {"Tax reserve": "CLOSED", "Reserve": "OPEN"}


async def test_a_pocket_with_money_is_not_closed_and_says_why(browser, funded, payroll_pocket):
    path = f"{browser.home}/pockets/{funded.id}"
    assert await change(browser, path, "close") == 409
    assert await change(browser, path, "rename", name="") == 422
    assert await change(browser, path, "melt") == 404


async def test_members_who_may_not_change_pockets_are_refused(console, customer_desk, other_customer, funded):
    viewer, stranger = await console(customer_desk, role="VIEWER"), await console(other_customer)
    path = f"{viewer.home}/pockets/{funded.id}"
    await viewer.go(path)
    assert "Settings" not in viewer.text
    assert (await viewer.go(f"{path}/settings")).status_code == 403
    await viewer.go(path)
    sent = {"csrf": viewer.csrf, "form_key": "0123456789", "change": "close"}
    assert (await viewer.post(f"{path}/settings", sent)).status_code == 403
    assert (await stranger.go(f"{stranger.home}/pockets/{funded.id}/settings")).status_code == 404


async def test_what_is_available_today_can_be_paid_and_not_a_dollar_more(browser, customer_desk, manager, funded):
    assert manager.team
    await browser.go(f"{browser.home}/pockets/{funded.id}")
    shown = first_match(r"Available today \$([\d,.]+)", browser.text)
    cents = int(shown.replace(",", "").replace(".", ""))
    settled = (await customer_desk.get(f"/api/v2/pockets/{funded.id}/"))["portfolio"]["liquidation_value_t0"]
    assert f"Settled today {settled['formatted']}" in browser.text
    linked = await wire_counterparty(customer_desk)
    for amount, status in ((cents, 200), (cents + 1_00, 422)):
        body = wire(funded, amount, linked)
        await customer_desk.ask("POST", "/api/v1/transfer-requests/preview/", body, status=status)
    await browser.go(f"{browser.home}/pockets")
    assert format_usd(cents) in browser.text
    assert "<polyline" in browser.page.text


def test_presets_are_whole_months_and_the_year_until_today():
    found = {each.label: (str(each.first), str(each.last)) for each in presets_of(date(2025, 1, 31))}
    assert found == {
        "This month": ("2025-01-01", "2025-01-31"),
        "Last month": ("2024-12-01", "2024-12-31"),
        "This year": ("2025-01-01", "2025-01-31"),
    }


async def test_money_is_held_and_released_on_the_page_of_its_pocket_and_not_by_a_viewer(console, customer_desk, funded):
    manager, viewer = await console(customer_desk), await console(customer_desk, role="VIEWER")
    path = f"{manager.home}/pockets/{funded.id}"
    fields = {"amount_usdc": "1,250.50", "reason": "Rent of July", "expires_at": "2025-06-09"}
    await manager.go(path)
    assert (await manager.send(f"{path}/holds", **fields | {"expires_at": "2026-06-09"})).status_code == 422
    assert "must be within 30 days from now" in manager.text
    assert (await manager.send(f"{path}/holds", **fields)).status_code == 303
    await viewer.go(path)
    assert "Held $1,250.50 , how it came about stays for 1 hold" in viewer.text
    assert "Rent of July $1,250.50, until" in viewer.text
    assert "Hold money" not in viewer.text
    sent = {"csrf": viewer.csrf, "form_key": "0123456789", **fields}
    assert (await viewer.post(f"{path}/holds", sent)).status_code == 403
    page = await manager.go(path)
    form = {
        "csrf": manager.csrf,
        "form_key": "to release",
        "hold": first_match(r'name="hold" value="([^"]+)"', page.text),
    }
    assert [(await manager.post(f"{path}/holds", form)).status_code for _ in range(2)] == [303, 303]
    await manager.go(path)
    assert "Rent of July" not in manager.text
    assert (await manager.post(f"{path}/holds", form | {"form_key": "again"})).status_code == 409


async def expect_the_day_on(browser, day, *pages):
    """Check that pages show a day, that their links keep it, and that nothing can be changed there."""
    for page in pages:
        await browser.go(f"{browser.home}/{page}?as_of={day}".replace("/?", "?"))
        assert f"As of the close of {format_day(day)}" in browser.text, page
        main = browser.page.text.partition("<main")[2]
        links = re.findall(rf'href="({browser.home}/[^"#]*)', main)
        assert links or page == "statements"
        assert [each for each in links if f"as_of={day}" not in each] == [], page
        assert '<form method="post"' not in main, page
        assert "move-money" not in main, page


async def expect_the_day_beyond(browser, customer_desk, day, funded):
    """Check pages of details, what was not there yet, and pages that cannot show the past."""
    await expect_the_day_on(browser, day, "", f"pockets/{funded.id}", "statements")
    (line,) = (await customer_desk.get("/api/v2/transactions/", {"type[]": "WIRE", "as_of": str(day)}))["items"]
    await expect_the_day_on(browser, day, f"transactions/{line['id']}", f"explain/transactions/{line['id']}")
    late, _ = (await customer_desk.get("/api/v2/transactions/", {"type[]": "WIRE"}))["items"]
    await browser.go(f"{browser.home}/transactions/{late['id']}?as_of={day}")
    assert browser.page.status_code == 404
    assert f"not there yet at the close of {format_day(day)}" in browser.text
    for page in ("limits", "approvals", "transfer-requests", "move-money", "notifications"):
        await browser.go(f"{browser.home}/{page}?as_of={day}")
        assert f"It shows what is there now, not at the close of {format_day(day)}" in browser.text, page


async def test_the_page_of_a_pocket_shows_it_as_of_the_close_of_a_day(browser, customer_world, customer_desk, funded):
    day = et_date(await customer_world.bank.now())
    await customer_world.days(1)
    before = await customer_desk.get(funded.path, {"as_of": str(day)})
    await customer_world.wire(funded, 700_00)
    path = f"{browser.home}/pockets/{funded.id}"
    await browser.go(f"{path}?as_of={day}")
    assert "As of the close of" in browser.text
    assert before["portfolio"]["total_value"]["formatted"] in browser.text
    assert "Move money" not in browser.text.partition("Transactions until then")[0].partition("As of the close")[2]
    for wrong in ("9999-12-31", "2025-06-02T10:00:00Z", "x", "2031-01-01"):
        await browser.go(f"{path}?as_of={wrong}")
        assert browser.page.status_code == 422, wrong
    assert f"Jan 1, 2031 has not ended yet. Choose {format_day(day)}" in browser.text
    await browser.go(f"{path}?as_of=2025-05-01")
    assert browser.page.status_code == 422
    assert "The Pocket was not open yet on that day." in browser.text
    for page in ("pockets", "transactions", "trades", "counterparties"):
        await browser.go(f"{browser.home}/{page}?as_of={day}")
        assert f"As of the close of {format_day(day)}" in browser.text, page
        assert "$700.00" not in browser.text
        await browser.go(f"{browser.home}/{page}?as_of=2031-01-01")
        assert browser.page.status_code == 422, page
    await browser.go(f"{browser.home}/counterparties?as_of={day}&text=Contoso")
    assert "Names are searched as they are now" in browser.text
    await expect_the_day_beyond(browser, customer_desk, day, funded)
    team = f"/team/{customer_desk.team.customer}"
    await browser.go(f"{team}?as_of={day}")
    assert f"As of the close of {format_day(day)}" in browser.text
    assert "Invite a member" not in browser.text
