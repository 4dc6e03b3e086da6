"""Operators find customers and payments, see where a payment is, and take alerts."""

import re
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from tests.support.approvals import wire_counterparty
from tests.support.browser import first_match
from tests.support.cards import Holder
from tests.support.cases import in_one_bank

from billfold.identity.users.store import find_user
from billfold.ledger.scheduler import bank_customer_id
from billfold.platform import ids
from billfold.servicing.lists import OF_BANK, OF_CUSTOMER
from billfold.servicing.search import _FINDERS, _statement
from billfold.servicing.worker import ActivityCounter

READS = "SELECT count(*) FROM audit_entry WHERE customer_id = $1 AND action = 'customer.viewed'"


async def opened_by(operator, text):
    """Search as a person does; return the path of the page that opens."""
    await operator.go(f"/bank/search?q={text}")
    if operator.page.status_code == 303:
        await operator.follow()
    return operator.page.url.path


class Known(NamedTuple):
    """A company with a person, a card, and a wire of $1,250.75 into its Pocket; `path` is its page."""

    path: str
    own: Any
    wire: Any
    account: str
    user: Any


@pytest.fixture
async def known(bank, customer_desks, world):
    customer = await world.customer("Marrow & Thistledown")
    desk, own = await customer_desks(customer), await world.pocket(customer, name="Reserve")
    await world.wire(own, 1_250_75)
    await Holder(world, own).virtual_card()
    await wire_counterparty(desk)
    wire = await bank.pool.fetchrow("SELECT * FROM wire WHERE customer_id = $1", UUID(customer))
    account = await bank.pool.fetchval("SELECT account_number FROM portal WHERE portal_id = $1", UUID(own.portal))
    user = await find_user(bank.pool, bank.vault, desk.team.user_id)
    return Known(f"/bank/customers/{customer}", own, wire, account, user)


async def test_the_search_opens_the_customer_or_payment_that_a_text_means(bank, operators, known):
    page, own, wire, account, user = known
    olga = await operators("VIEWER")
    routing = bank.settings.bank_routing_number
    for text in (page[-36:], own.id, own.portal, account, f"{routing}:{account}", f"{account[:4]} {account[4:]}"):
        assert await opened_by(olga, text) == page, text
    card = await bank.pool.fetchval("SELECT last_four FROM card")
    for text in ("thistledown", "MARROW%20thistle", "marrow %26 thistledown", card, user.email.upper()):
        assert await opened_by(olga, text) == page, text
    reads = await bank.pool.fetchval(READS, bank_customer_id(bank.seed))
    await olga.go(f"/bank/search?q={own.id}&list=1")
    assert 'data-found="Customer"' in olga.page.text
    assert await bank.pool.fetchval(READS, bank_customer_id(bank.seed)) == reads
    for text in (wire["wire_id"], wire["uetr"], wire["imad"], "1,250.75", "$1250.75"):
        assert await opened_by(olga, text) == f"{page}/wire/{wire['wire_id']}", text
    assert "The money is in the Pocket." in olga.text
    assert wire["imad"] in olga.text
    await olga.go(f"/bank/search?q={user.last_name[:3]}")
    assert user.name in olga.text
    for nothing in ("nobody", "%2C", "'", "a%3A*%26b|c!", "0000", "\u00e9", "1:2:3", ids.new(), "x@y", "9" * 99):
        await olga.go(f"/bank/search?q={nothing}")
        assert "Nothing was found for" in olga.text, nothing


async def test_a_page_of_a_customer_offers_what_the_role_includes_and_records_who_read_it(bank, operators, known):
    page, own, _, account, _ = known
    viewer, initiator = await operators("VIEWER"), await operators("INITIATOR")
    before = await bank.pool.fetchval(READS, bank_customer_id(bank.seed))
    await viewer.go(page)
    assert "/bank/freezes?" not in viewer.page.text
    assert account not in viewer.page.text
    await initiator.go(page)
    assert await bank.pool.fetchval(READS, bank_customer_id(bank.seed)) == before + 2
    for subject, subject_id in (("CUSTOMER", page[-36:]), ("POCKET", own.id)):
        assert f"change=freeze&amp;subject={subject}&amp;subject_id={subject_id}" in initiator.page.text
    await initiator.go(f"/bank/freezes?change=freeze&subject=POCKET&subject_id={own.id}")
    await initiator.send("/bank/freezes", reason="Theft")
    await initiator.go(page)
    assert "Freeze of the Pocket" in initiator.text
    payees = first_match(r'(?s)id="payees">(.+?)</section>', initiator.page.text)
    assert re.search(r"<td>[A-Z][\w ]+<span", payees), payees
    other = f"/bank/customers/{bank_customer_id(bank.seed)}"
    missing = (f"{page}/nothing", f"{page}/wire/{ids.new()}", f"{page}/wire/x", f"{page}x")
    for wrong in (f"{other}/wires", *missing):
        assert (await viewer.go(wrong)).status_code == 404, wrong
    await viewer.go(other)
    assert (await viewer.follow()).url.path == f"/team/{bank_customer_id(bank.seed)}"


async def test_every_list_of_operators_opens_and_is_continued_from_its_cursor(operators, known, monkeypatch):
    monkeypatch.setattr("billfold.web.operators.customers._PAGE", 1)
    page = known.path
    viewer = await operators("VIEWER")
    paths = [f"/bank/{name}" for name in OF_BANK] + [f"{page}/{name}" for name in OF_CUSTOMER]
    for path in paths:
        assert (await viewer.go(path)).status_code == 200, path
    await viewer.go("/bank/customers")
    second = first_match(r'href="(\?[^"]*cursor=[^"]+)" rel="next"', viewer.page.text)
    first = viewer.text
    assert (await viewer.go(f"/bank/customers{second}")).status_code == 200
    assert viewer.text != first
    assert (await viewer.go("/bank/wires?cursor=x")).status_code == 422
    assert (await viewer.go("/bank/wires?partner=nobody")).status_code == 404


TEXTS = ("marrow", ids.new(), "a@b.example", "12.50", "4821", "1" * 15, "20250602MMQFMPU7000001")


def _scans(plan):
    """Return what a plan reads as a whole, but for the partners, of which a bank has few."""
    return [row[0] for row in plan if "Seq Scan" in row[0] and "on partner" not in row[0]]


@pytest.mark.one_server
@in_one_bank("place", range(len(_FINDERS)))
async def test_each_meaning_of_a_text_is_looked_up_by_an_index(bank, place):
    find = _FINDERS[place]
    values = next(each for text in TEXTS if (each := find.read(str(text), bank)))
    async with bank.pool.acquire() as conn, conn.transaction():
        await conn.execute("SET LOCAL enable_seqscan = off")
        assert _scans(await conn.fetch(f"EXPLAIN {_statement(find, values, None)}", *values)) == []
        if find.is_rare:
            owner = ids.new()
            assert _scans(await conn.fetch(f"EXPLAIN {_statement(find, values, owner)}", *values, owner)) == []


@pytest.mark.one_server
@in_one_bank("name", sorted({*OF_BANK, *OF_CUSTOMER}))
async def test_each_list_is_read_in_the_order_of_an_index(bank, name):
    for of_bank, listing in ((True, OF_BANK.get(name)), (False, OF_CUSTOMER.get(name))):
        if listing is None:
            continue
        places = (None,) * len(listing.listed.order)
        of_partner = getattr(listing.listed, "of_partner", listing.listed)
        async with bank.pool.acquire() as conn, conn.transaction():
            await conn.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
            for listed, owner in ((listing.listed, None if of_bank else ids.new()), (of_partner, ids.new())):
                statement = f"EXPLAIN {listed.statements[True]}"
                assert _scans(await conn.fetch(statement, owner, *places, 10)) == []


async def test_partners_are_seen_with_volumes_returns_requests_and_webhooks(bank, operators, partner_people, known):
    viewer = await operators("VIEWER")
    await ActivityCounter().count(bank)
    await viewer.go("/bank/partners")
    path = first_match(r'href="(/bank/partners/[a-z-]+)"', viewer.page.text)
    pia = await partner_people(path.rpartition("/")[2], "VIEWER")
    for browser, page in ((viewer, path), (pia, f"/partners/{path.rpartition('/')[2]}")):
        await browser.go(f"{page}?by=month")
        assert "Assets under custody $1,250." in browser.text
        await browser.go(page)
        assert "Money in $1,250.75" in browser.text
        assert "Requests with an error" in browser.text
        assert (await browser.go(f"{page}x")).status_code == 404
    await pia.go(f"/partners/{path.rpartition('/')[2]}/customers/{known.path[-36:]}")
    assert "+$1,250.75" in pia.text


async def test_an_alert_has_an_owner_until_it_is_put_down(bank, operators):
    viewer, olga, otto = await operators("VIEWER"), await operators("INITIATOR"), await operators("APPROVER")
    await bank.pool.execute("INSERT INTO alert (name, owner, taken_at) VALUES ('clock', 'x', now())")
    form = {"alert": "clock", "decision": "take"}
    await viewer.go("/bank")
    assert (await viewer.post("/bank", form | {"csrf": viewer.csrf})).status_code == 409
    await olga.go("/bank")
    await olga.send("/bank", **form)
    await otto.go("/bank")
    assert f"({olga.user_id}), since" in otto.text
    for wrong in ({"alert": "weather"}, {"decision": "x"}):
        assert (await otto.post("/bank", form | wrong | {"csrf": otto.csrf})).status_code == 422
    await otto.send("/bank", **form)
    await otto.go("/bank")
    await otto.send("/bank", alert="clock", decision="put-down")
    assert await bank.pool.fetchval("SELECT count(*) FROM alert") == 0
