"""An administrator reads the agreements after signing in, and accepts them for a company."""

from datetime import datetime

import pytest
from tests.support.applications import FIRST, SECOND, release
from tests.support.whole_bank import EngineCommands

from billfold.identity.members import store as member_store
from billfold.onboarding.agreements import store
from billfold.sandbox.control.clock_stepper import ClockStepper


@pytest.fixture
async def fabrikam(bank, anna):
    """A company of Anna's that has accepted nothing yet, and where its agreements are."""
    customer_id = await EngineCommands(bank).new_customer("Fabrikam")
    await member_store.add_member(bank.pool, customer_id, anna.user_id, role="ADMIN", now=anna.pages_clock.now)
    return f"/companies/{customer_id}/agreements"


async def test_changed_agreements_are_shown_and_accepted_after_sign_in(bank, anna, browser, new_browser, fabrikam):
    company = fabrikam.split("/")[2]
    page = await anna.sign_in(browser, "/team")
    assert page.url.raw_path.decode() == f"{fabrikam}?next=%2Fteam"
    assert f"/agreements/{FIRST}/form-crs.pdf" in page.text
    assert 'href="/team">Later' in page.text
    assert (await browser.send(fabrikam)).headers["location"] == "/team"
    (row,) = await store.list_acceptances(bank.pool, company)
    assert (row["version"], row["accepted_by"], row["accepted_by_id"]) == (FIRST, "USER", anna.user_id)
    assert (row["ip_address"], "Firefox" in row["user_agent"]) == ("203.0.113.7", True)
    assert "in force and accepted" in (await browser.go(fabrikam)).text

    other = new_browser()
    assert (await anna.sign_in(other, "/team")).url.path == "/team"
    await release(bank, required_by="2025-07-08")
    await browser.go(fabrikam)
    await ClockStepper(bank).set_to(datetime.fromisoformat("2025-07-02T10:00-04:00"))
    page = await browser.go(fabrikam)
    assert "The agreements changed on July 1, 2025" in page.text
    assert "Accept them by July 8, 2025" in page.text
    changed, same = page.text.index(">Changed<"), page.text.index(">As before<")
    assert changed < page.text.index("Terms of use") < same < page.text.index("Privacy policy")
    stale = await browser.send(fabrikam, version=FIRST)
    assert (stale.status_code, f"those of {SECOND}" in stale.text) == (409, True)
    await ClockStepper(bank).set_to(datetime.fromisoformat("2025-07-08T10:00-04:00"))
    assert "Since July 8, 2025 nothing is paid out" in (await browser.go(fabrikam)).text
    assert (await browser.send(fabrikam)).headers["location"] == "/?done=agreements-accepted"
    assert [each["version"] for each in await store.list_acceptances(bank.pool, company)] == [SECOND, FIRST]


async def test_accepting_agreements_requires_an_administrator_of_the_customer(bank, anna, browser, fabrikam):
    await bank.pool.execute("UPDATE membership SET role = 'MANAGER' WHERE customer_id = $1", fabrikam.split("/")[2])
    page = await anna.sign_in(browser)
    assert page.url.path == "/account"
    assert (await browser.go(fabrikam)).status_code == 403
    form = {"csrf": browser.csrf, "version": FIRST}
    assert (await browser.post(fabrikam, form)).status_code == 403
    foreign = f"/companies/{await EngineCommands(bank).new_customer('Contoso')}/agreements"
    assert (await browser.post(foreign, form)).status_code == 404
    assert await bank.pool.fetchval("SELECT count(*) FROM agreement_acceptance") == 0
