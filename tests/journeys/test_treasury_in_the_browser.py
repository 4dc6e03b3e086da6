"""A treasurer's day in Chromium: payments approved together on a phone and on a desk, and a Pocket's whole life."""

import asyncio
import re

import pytest
from tests.support.approvals import REQUESTS

from billfold.platform import ids
from billfold_client.sandbox import sandbox_customer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
CREATION_SECONDS = 1.1
"""A client requests one transfer per second."""
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
}


@pytest.fixture(autouse=True)
def no_faults(sandbox_site):
    """Check every page of a story for errors."""
    yield
    faults, sandbox_site.gallery.faults = sandbox_site.gallery.faults, []
    assert faults == []


async def request_transfers(place, count):
    """Let a service user of the company request transfers between its Pockets."""
    origin, to = place.box.pocket_ids[:2]
    with sandbox_customer(place.sandbox.state / "sandbox.json").http as http:
        for nth in range(count):
            transfer = {
                "id": str(ids.new()),
                "type": "ON_US",
                "origin_pocket_id": str(origin),
                "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": (nth + 1) * 100_00},
                "details": {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": str(to)},
                "description": f"Reserve {nth + 1}",
            }
            http.post(REQUESTS, json={"transfer": transfer, "reviewers": []}).raise_for_status()
            await asyncio.sleep(CREATION_SECONDS)


async def review_all(visitor, place, count):
    """Tick everything in the queue, and open its review."""
    await visitor.go(f"{place.home}/approvals", f"queue of {count}")
    await visitor.page.get_by_label(f"Select all {count}").check()
    assert f"{count} selected, $" in await visitor.text()
    await visitor.press("Review selected", f"review of {count}")


async def is_in_reach(locator):
    """Tell whether an element is in the window without scrolling, and nothing covers it."""
    return await locator.evaluate(
        "each => { const at = each.getBoundingClientRect();"
        " return each.contains(document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2)); }"
    )


async def test_many_transfers_are_approved_on_a_phone_with_one_code(sandbox_site):
    bo = sandbox_site.bo
    await request_transfers(sandbox_site, 4)
    await review_all(bo, sandbox_site, 4)
    assert "$1,000.00 to 1 payee, from 1 Pocket" in await bo.text()
    button = bo.main.get_by_role("button", name="Approve 4 transfers")
    for scrolled in (0, 400, 100_000):
        await bo.page.evaluate("top => scrollTo(0, top)", scrolled)
        assert await is_in_reach(button), scrolled
    await bo.fill(Code_from_your_authenticator_app=bo.app.code())
    await bo.press("Approve 4 transfers, $1,000.00", "approved together")
    assert "4 of 4 approved" in await bo.text()


async def test_many_transfers_are_approved_on_a_desk_with_one_passkey(sandbox_site):
    ada = sandbox_site.ada
    devtools = await ada.page.context.new_cdp_session(ada.page)
    await devtools.send("WebAuthn.enable")
    await devtools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    await ada.go("/set-up?next=/account", "add a passkey")
    async with ada.page.expect_navigation():
        await ada.main.locator("[data-passkey=add] button").click()
    await ada.look("account with a passkey")
    await request_transfers(sandbox_site, 2)
    await review_all(ada, sandbox_site, 2)
    await ada.press("Approve 2 transfers, $300.00 with a passkey", "approved with a passkey")
    assert "2 of 2 approved" in await ada.text()


async def test_a_pocket_is_opened_changed_and_closed(sandbox_site):
    ada = sandbox_site.ada
    await ada.go(f"{sandbox_site.home}/pockets", "pockets with their yield")
    await ada.follow("Open a Pocket", "new pocket")
    await ada.fill(Name="Taxes")
    await ada.press("Open Pocket", "opened pocket")
    pocket = ada.path
    await ada.follow("Settings", "settings of a pocket")
    await ada.fill(Name_of_the_Pocket="Tax reserve")
    await ada.press("Save", "renamed pocket")
    await ada.main.locator("#name").fill("Refunds")
    await ada.press("Add portal", "settings with two portals")
    portal = ada.main.get_by_role("listitem").filter(has_text="Refunds")
    await portal.locator("summary").click()
    async with ada.page.expect_navigation():
        await portal.get_by_role("button", name="Close portal").click()
    assert re.search("Refunds Closed", await ada.text())
    await sandbox_site.bo.go(pocket, "pocket on a phone")
    assert await is_in_reach(sandbox_site.bo.main.get_by_role("link", name="Move money").first)
    await sandbox_site.bo.follow("Settings", "settings on a phone")
    await ada.main.locator("summary").filter(has_text="Close Pocket").click()
    await ada.press("Close Pocket", "closed pocket")
    assert "Tax reserve" in await ada.text()
    assert "Closed" in await ada.text()


async def test_filters_of_a_list_apply_as_they_change(sandbox_site):
    ada = sandbox_site.ada
    await ada.go(f"{sandbox_site.home}/transactions", "transactions by day")
    await ada.main.locator("summary").filter(has_text="Filters").click()
    await ada.page.get_by_label("Direction").select_option(label="In")
    await ada.page.wait_for_url("**/transactions?direction=CREDIT")
    amounts = await ada.main.locator("td.number .amount").all_inner_texts()
    assert amounts
    assert {each[0] for each in amounts} == {"+"}
    await ada.page.get_by_label("At least, $").fill("999,999,999")
    await ada.page.get_by_text("No transaction matches.").wait_for()
    await ada.follow("Last month", "transactions of last month")
