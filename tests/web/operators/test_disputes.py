"""A dispute: opened with a document on the page of its payment, and decided by two operators on theirs."""

import asyncio

from tests.support.applications import PICTURE
from tests.support.browser import ORIGIN, first_match, forms_of
from tests.support.whole_bank import expect_clean
from tests.support.world import UNKNOWN

ALL = "/bank/disputes"
DECISION = {"decision": "PROVISIONALLY_CREDITED", "reason": "Holder credible"}


async def sent_with_file(browser, path, form, content=PICTURE, name="receipt.png"):
    files = {"file": (name, content, "image/png")} if content else {"file": ("", b"", "")}
    browser.page = await browser.http.post(path, data=form, files=files, headers={"origin": ORIGIN})
    return browser.page


async def form_of(browser, page):
    """Return the hidden fields of the form that disputes a payment, as its page has them now."""
    await browser.go(page)
    fields = forms_of(browser.page.text)[f"{page}/dispute"]
    return {name: fields[name] for name in ("csrf", "form_key")}


async def opened(ada, viewer, page):
    """Dispute a part of a payment with a document on its page, after what is refused."""
    await viewer.go(page)
    form = await form_of(ada, page)
    assert f"{page}/dispute" not in forms_of(viewer.page.text)
    refused = await sent_with_file(viewer, f"{page}/dispute", form | {"csrf": viewer.csrf, "reason": "FRAUD"})
    assert refused.status_code == 403
    for wrong, words in (
        ({"reason": "FRAUD", "amount": "100.01"}, "At most $100.00 can be disputed"),
        ({"reason": "FRAUD", "amount": "much"}, "must be dollars"),
        ({"amount": "60.00"}, ""),
    ):
        shown = await sent_with_file(ada, f"{page}/dispute", await form_of(ada, page) | wrong, content=b"")
        assert (shown.status_code >= 409, words in shown.text) == (True, True), (wrong, ada.text)
    form = await form_of(ada, page) | {"reason": "FRAUD"}
    assert "does not begin like" in (await sent_with_file(ada, f"{page}/dispute", form, content=b"no picture")).text
    sent = await form_of(ada, page) | {"reason": "NOT_RECEIVED", "amount": "60.00"}
    assert [(await sent_with_file(ada, f"{page}/dispute", sent)).status_code for _ in range(2)] == [303, 303]
    await ada.go(page)
    assert all(each in ada.text for each in ("Dispute of $60.00", "receipt.png", "Dispute the rest"))


async def documented(ada, viewer, page, one):
    """Add a document to an open dispute on the page of its payment, once, after what is refused."""
    path = f"{page}/dispute/{one}/documents"
    form = {"csrf": viewer.csrf, "form_key": "a"}
    assert (await sent_with_file(viewer, path, form)).status_code == 403
    for content, words in ((b"", "choose one first"), (b"no picture", "does not begin like")):
        assert words in (await sent_with_file(ada, path, await form_of(ada, page), content=content)).text
    assert (await sent_with_file(ada, path.replace(one, UNKNOWN), await form_of(ada, page))).status_code == 404
    form = await form_of(ada, page)
    answers = [await sent_with_file(ada, path, form, name="letter.png") for _ in range(2)]
    assert [each.status_code for each in answers] == [303, 303]
    await ada.go(page)
    assert (ada.text.count("letter.png"), "receipt.png" in ada.text) == (1, True)


async def withdrawn(ada, page, one):
    """Withdraw a dispute; nothing is added to it afterwards."""
    assert (await ada.send(f"{page}/dispute/{one}/withdraw")).status_code == 303
    refused = await sent_with_file(ada, f"{page}/dispute/{one}/documents", await form_of(ada, page))
    assert (refused.status_code, "The dispute is WITHDRAWN" in refused.text) == (409, True)


async def proposed(olga, otto, reader, page):
    """Propose the credit as one operator; return the page of the proposal as another sees it."""
    await reader.go(ALL)
    assert (page in reader.page.text, "Credit due in" in reader.text) == (True, True)
    await reader.go(page)
    assert all(each in reader.text for each in ("receipt.png", "letter.png"))
    assert ("receipt.png" in reader.text, "Your role reads" in reader.text) == (True, True)
    for each in (reader, otto):
        await each.go(page)
        assert (await each.post(page, DECISION | {"csrf": each.csrf})).status_code == 409
    await olga.go(page)
    assert (await olga.post(f"{ALL}/{UNKNOWN}", DECISION | {"csrf": olga.csrf})).status_code == 404
    assert (await olga.post(page, DECISION | {"csrf": olga.csrf, "decision": "OPENED"})).status_code == 422
    assert (await olga.send(page, **DECISION)).status_code == 303
    await olga.go(page)
    assert "You proposed it" in olga.text
    await otto.go(page)
    return f"/bank/freezes/{first_match(r'/bank/freezes/([0-9a-f-]{36})', otto.page.text)}"


async def confirmed_at_once(bank, operators, proposal, one):
    """Confirm a proposal several times at once, its proposer too, while many read what it is about: it moves once."""
    olga, otto, reader = operators
    await olga.go("/bank/freezes")
    form = {"csrf": otto.csrf, "decision": "confirm"}
    sent = [
        each.http.post(proposal, data=form | {"csrf": each.csrf}, headers={"origin": ORIGIN}) for each in (otto, olga)
    ]
    again = (otto.http.post(proposal, data=form, headers={"origin": ORIGIN}) for _ in range(2))
    reads = (reader.http.get(one) for _ in range(2 * bank.pool.get_max_size()))
    answers = [each.status_code for each in await asyncio.wait_for(asyncio.gather(*sent, *again, *reads), 30)]
    assert (303 in {answers[0], *answers[2:4]}, answers[1]) == (True, 409)
    assert {*answers[4:]} == {200}, "each holds one connection"
    moved = "SELECT count(*), sum(amount) FROM transaction WHERE details->>'dispute_id' = $1"
    assert tuple(await bank.pool.fetchrow(moved, one.rpartition("/")[2])) == (1, 60_00)


async def test_a_dispute_is_opened_with_a_document_and_decided_by_two_operators_who_see_what_changes(
    bank, cardholder, customer_desks, console, operators
):
    await cardholder.simulate("clearing", amount_usdc=100_00)
    member = await customer_desks(cardholder.pocket.customer)
    (made,) = (await member.get("/api/v2/transactions/", {"type[]": "CARD"}))["items"]
    ada, viewer = await console(member), await console(member, role="VIEWER")
    page = f"{ada.home}/transactions/{made['id']}"
    await opened(ada, viewer, page)
    (found,) = (await member.get("/api/v1/card-disputes/"))["items"]
    one = f"{ALL}/{found['id']}"
    await documented(ada, viewer, page, found["id"])
    olga, otto, reader = [await operators(role) for role in ("MANAGER", "APPROVER", "VIEWER")]
    proposal = await proposed(olga, otto, reader, one)
    await otto.go(proposal)
    assert all(each in otto.text for each in ("Holder credible", "$60.00", "Disputes"))
    await confirmed_at_once(bank, (olga, otto, reader), proposal, one)
    await otto.go(one)
    assert "Provisionally credited" in otto.text
    await ada.go(page)
    assert "$60.00 is credited provisionally" in ada.text
    await withdrawn(ada, page, found["id"])
    await otto.go(f"{ALL}?status=WITHDRAWN")
    assert one in otto.page.text
    owner = cardholder.pocket.customer
    await otto.go(f"/bank/ledger/{owner}?account=disputes.USD")
    assert "Provisional credit reversed" in otto.text, "the ledger leads to what caused an entry"
    assert one in otto.page.text
    assert all(each in otto.text for each in ("+$60.00", "$0.00"))
    for query in ("amount=x", "account=x", "kind=card&from=2025-01-01&to=2099-01-01&amount=60", "from=x", "before=9"):
        assert (await otto.go(f"/bank/ledger/{owner}?{query}")).status_code in {200, 422}, query
    await expect_clean(bank)
