"""The home page of a company, for members of its team only."""

import pytest


@pytest.fixture
async def browser(console, customer_desk, customer_world):
    own = await customer_desk.pocket(name="Reserve")
    await customer_world.wire(own, 250_000_00)
    return await console(customer_desk)


async def test_the_console_home_shows_the_same_values_as_the_api(browser, customer_desk):
    assert (await browser.go("/?done=%E2%98%83")).headers["location"] == browser.home
    await browser.follow()
    listed = await customer_desk.get("/api/v2/pockets/")
    portfolio = listed["items"][0]["portfolio"]
    assert f"Total value As of the close of Show {portfolio['total_value']['formatted']}" in browser.text
    assert f"Settled today {portfolio['liquidation_value_t0']['formatted']}" in browser.text
    assert "Wire received" in browser.text
    assert "+$250,000.00" in browser.text


async def test_the_console_of_a_foreign_customer_returns_404(browser, other_customer, console):
    page = await browser.go(f"/companies/{other_customer.team.customer}")
    assert page.status_code == 404
    viewer = await console(other_customer, role="VIEWER")
    assert (await viewer.go(viewer.home)).status_code == 200
    assert "Team" in viewer.text
    assert "Agreements" not in viewer.text


async def test_sandbox_console_pages_show_the_sandbox_clock(browser):
    await browser.go(browser.home)
    assert browser.text.startswith("Skip to content Sandbox")
