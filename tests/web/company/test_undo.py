"""The page of a payment offers to cancel its wire, or to return its debit, to those who may move money."""

import pytest
from tests.support import payees
from tests.support.browser import forms_of

from billfold.identity.partners.credentials import set_feature

SANDBOX = "/api/v1/sandbox/"


@pytest.fixture
async def browsers_of_payment(customer_desk, customer_world, console, funded):
    """Let a debit be collected and a wire wait; return the Pocket, a function that finds payments, and two browsers."""
    await set_feature(customer_world.bank.pool, customer_world.partner.partner_id, "wires", enabled=True)
    linked = await customer_world.post(f"/api/v2/customers/{funded.customer}/counterparties/", payees.wire())
    verified = {"counterparty_id": linked["id"], "status": "APPROVED"}
    await customer_world.ask("POST", f"{SANDBOX}counterparty-verification/", verified, status=202)
    wire = {"counterparty_id": linked["id"], "amount_usdc": 500_00}
    await customer_world.post(f"/api/v1/service-accounts/{funded.id}/wires/", wire)
    debit = {"portal_id": funded.portal, "direction": "DEBIT", "amount_usdc": 300_00}
    await customer_world.ask("POST", f"{SANDBOX}ach/entries/", debit, status=202)

    async def paths(title):
        shown = (await customer_desk.get("/api/v2/transactions/"))["items"]
        found = next(each["id"] for each in shown if each["title"] == title)
        return f"/transactions/{found}"

    return paths, await console(customer_desk, role="INITIATOR"), await console(customer_desk, role="VIEWER")


async def test_a_payment_is_undone_on_its_page_once_and_not_by_a_viewer(browsers_of_payment):
    paths, initiator, viewer = browsers_of_payment
    for title, fields, back in (
        ("Wire sent", {}, "Wire reversed"),
        ("ACH debit", {"code": "R29"}, "ACH debit returned"),
    ):
        path = await paths(title)
        undo = f"{path}/undo"
        page = await initiator.go(initiator.home + path)
        form = forms_of(page.text)[initiator.home + undo]
        await viewer.go(viewer.home + path)
        assert viewer.home + undo not in forms_of(viewer.page.text)
        assert (await viewer.post(viewer.home + undo, form | fields)).status_code == 403
        assert (await initiator.send(initiator.home + undo, **fields)).status_code == 303
        assert await paths(back)
        page = await initiator.go(initiator.home + path)
        assert initiator.home + undo not in forms_of(page.text)


async def test_a_debit_that_is_returned_with_a_code_of_consumers_says_what_is_wrong(browsers_of_payment):
    paths, initiator, _ = browsers_of_payment
    path = await paths("ACH debit")
    await initiator.go(initiator.home + path)
    page = await initiator.send(f"{initiator.home}{path}/undo", code="R10", has_signed_statement="yes")
    assert page.status_code == 409
    assert "This debit is returned with R08, R29 only." in initiator.text
