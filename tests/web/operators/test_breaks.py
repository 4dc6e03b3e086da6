"""Breaks in the console: one operator imports, owns and proposes, another confirms."""

import re

import pytest
from tests.reconciliation.books import MONDAY, TUESDAY, Mornings
from tests.reconciliation.files import RESERVE, SAFE, camt053, entry, semt002
from tests.support.browser import ORIGIN
from tests.support.whole_bank import close_bank, expect_clean, open_bank

BREAK = re.compile(r'href="(/bank/breaks/[0-9a-f-]{36})"')
PROPOSAL = re.compile(r'href="(/bank/freezes/[0-9a-f-]{36})"')


@pytest.fixture
async def bank(bank_dsn):
    """A founded bank at 2025-06-02 09:00 ET whose reserve and custodian are stated."""
    opened = await open_bank(bank_dsn, reserve_account=RESERVE, custodian_account=SAFE)
    yield opened
    await close_bank(opened)


async def uploaded(browser, name, content):
    """Send a statement by the form of the page."""
    await browser.go("/bank/reconciliation")
    form, files = {"csrf": browser.csrf}, {"file": (name, content, "text/xml")}
    browser.page = await browser.http.post("/bank/reconciliation", data=form, files=files, headers={"origin": ORIGIN})
    return browser.page


async def sent(browser, path, form, status=303):
    await browser.go(path)
    page = await browser.post(path, {"csrf": browser.csrf, **form})
    assert page.status_code == status, page.text
    return page


async def test_a_break_is_found_owned_and_closed_by_two_operators(bank, operators, new_holder):
    morning = Mornings(bank)
    await (await new_holder()).deposit(500_00)
    await morning.close(TUESDAY)
    olga, otto, viewer = [await operators(role) for role in ("MANAGER", "APPROVER", "VIEWER")]
    lines = [entry(500_00, MONDAY, "W-1", code="WIRE"), entry(-25_00, MONDAY, "FEE-7")]
    assert (await uploaded(olga, "june 2.xml", camt053(MONDAY, lines))).status_code == 303
    refused = await uploaded(olga, "other.xml", camt053(TUESDAY, [], account="999"))
    assert (refused.status_code, "which is not the bank" in refused.text) == (422, True)
    assert (await uploaded(viewer, "more.xml", semt002(MONDAY, {}))).status_code == 409
    await olga.go("/bank/reconciliation?cause=UNKNOWN_LINE")
    assert "FEE-7" in olga.text
    assert "1 of 2" in olga.text
    [path] = set(BREAK.findall(olga.page.text))
    await viewer.go(path)
    assert "Your role reads" in viewer.text
    close = {"decision": "LOSSES", "reason": "fee of the account"}
    await sent(viewer, path, close, 409)
    await sent(otto, path, close, 409)
    await sent(olga, path, {"decision": "assign", "owner": "Olga", "note": "Asked."})
    await sent(olga, path, {"decision": "hold", "rail": "CARD", "reason": "x"}, 422)
    await sent(olga, path, close)
    await olga.go("/bank/reconciliation?owner=Olga")
    assert "Asked." in olga.text, "one operator closes nothing"
    await otto.go("/bank/freezes")
    [proposal] = PROPOSAL.findall(otto.page.text)[:1]
    assert (await otto.post(proposal, {"csrf": otto.csrf, "decision": "confirm"})).status_code == 303
    await olga.go(path)
    assert "fee of the account" in olga.text
    await expect_clean(bank)
