"""Staff of a partner read its own data; managers operate, administrators change secrets and keys."""

import asyncio
import re
from datetime import UTC, date, datetime

import pytest
from tests.support.applications import PERSON
from tests.support.browser import first_match
from tests.support.cards import Holder
from tests.support.oauth import new_key
from tests.support.world import UNKNOWN

from billfold.identity.partners.store import list_partner_keys
from billfold.platform import ids
from billfold.platform.database import paging
from billfold.servicing import worker
from billfold.servicing.activity import _COUNTED, _RETURNED, _WEBHOOKS
from billfold.servicing.worker import _CUSTOMERS, _DEBITS, _DELIVERIES, _HELD, _REQUESTS, _VOLUMES, ActivityCounter

URL = "https://93.184.215.14/hooks"
MOMENT = datetime(2025, 6, 2, tzinfo=UTC)
STATEMENTS = (_COUNTED, _RETURNED, _WEBHOOKS, _VOLUMES, _DEBITS, _REQUESTS, _DELIVERIES, _HELD, _CUSTOMERS)
KIND = "event.transfers.wire.in.success"


@pytest.fixture
async def secrets_of(bank, partner_desk):
    """Return how many signing secrets the partner has had."""

    async def count():
        partner_id = partner_desk.partner.partner_id
        return await bank.pool.fetchval("SELECT count(*) FROM partner_secret WHERE partner_id = $1", partner_id)

    return count


async def test_a_partner_viewer_sees_customer_values_and_failed_api_requests(
    partner_desk, other_partner, partner_people
):
    pocket = await partner_desk.funded(250_000_00, await partner_desk.customer("Northwind"), name="Reserve")
    foreign = await other_partner.customer("Northfold")
    made = await partner_desk.post("/api/v1/business-applications/", {"name": "Fabrikam"})
    await partner_desk.refused("GET", f"/api/v2/pockets/{UNKNOWN}/", status=404, code="not-found")
    await partner_desk.app.request_log.write()
    viewer = await partner_people("acme", role="VIEWER")
    await viewer.go(viewer.home)
    assert "not-found get_pocket" in viewer.text
    await viewer.go(f"{viewer.home}/customers?name=NORTH")
    assert "Northwind" in viewer.text
    assert re.search(r"\$2[45]\d,\d{3}\.\d\d", viewer.text), "its balance is listed"
    assert "Northfold" not in viewer.text
    await viewer.go(f"{viewer.home}/customers?name=orth")
    assert "No customer matches." in viewer.text
    await viewer.go(f"{viewer.home}/customers?name={pocket.customer}")
    await viewer.follow()
    worth = (await partner_desk.get(pocket.path))["portfolio"]["total_value"]["formatted"]
    assert worth in viewer.text
    await viewer.go(f"{viewer.home}/applications/{made['id']}")
    assert "related_parties.CONTROL_PERSON" in viewer.text
    await viewer.go(f"{viewer.home}/developer/requests?error=not-found")
    assert "GET /api/v2/pockets/{pocket_id}/" in viewer.text
    for path in ("", "/events", "/requests"):
        assert (await viewer.go(f"{viewer.home}/developer{path}")).status_code == 200
    assert (await viewer.go(f"{viewer.home}/customers/{foreign}")).status_code == 404
    for path in ("", "/customers", "/applications", "/credentials", "/developer", "/developer/requests"):
        assert (await viewer.go(f"/partners/globex{path}")).status_code == 404, path
    assert (await viewer.go(f"{viewer.home}/credentials")).status_code == 403


async def test_a_partner_manager_adds_a_subscription_and_a_viewer_cannot(partner_desk, partner_people):
    manager, viewer = await partner_people("acme"), await partner_people("acme", role="VIEWER")
    new = f"{manager.home}/developer/subscriptions"
    await manager.go(f"{new}/new")
    await manager.send(new, url=URL, **{KIND: "yes"})
    await manager.follow()
    path = manager.page.url.path
    (listed,) = (await partner_desk.get("/api/v1/subscriptions/"))["items"]
    assert listed["url"] == URL
    await viewer.go(path)
    assert f"{path}/status" not in viewer.page.text
    csrf = {"csrf": viewer.csrf, "form_key": "k" * 24}
    card = f"{viewer.home}/customers/{await partner_desk.customer()}/cards/{UNKNOWN}"
    for form, fields in (
        (f"{path}/status", {"status": "disabled"}),
        (card, {"status": "OFFLINE", "pocket_id": UNKNOWN}),
    ):
        assert (await viewer.post(form, csrf | fields)).status_code == 403
        assert (await manager.post(form, csrf | fields)).status_code == 403, "of another browser"
    assert (await partner_desk.get("/api/v1/subscriptions/"))["items"] == [listed]


async def test_a_partner_administrator_rotates_the_secret_once_and_registers_a_key(
    bank, partner_desk, partner_people, other_partner, secrets_of
):
    admin = await partner_people("acme", role="ADMIN")
    credentials, key = f"{admin.home}/credentials", new_key()
    await admin.go(credentials)
    form = {"csrf": admin.csrf, "secret_no": "1"}
    pages = await asyncio.gather(*(admin.post(f"{credentials}/secret", form) for _ in range(2)))
    assert sorted(each.status_code for each in pages) == [200, 409]
    assert await secrets_of() == 2
    for username in ("globex-app", "nobody"):
        await admin.go(credentials)
        await admin.send(f"{credentials}/keys", username=username, algorithm=key.algorithm, public_pem=key.pem)
        assert admin.page.status_code == 422
    await admin.send(f"{credentials}/keys", username="acme-app", algorithm=key.algorithm, public_pem=key.pem)
    await admin.follow()
    (registered,) = await list_partner_keys(bank.pool, partner_desk.partner.partner_id)
    foreign = await partner_people("globex", role="ADMIN")
    await foreign.go(f"{foreign.home}/credentials")
    revoke = f"/keys/{registered.key_id}/revoke"
    taken = {"csrf": foreign.csrf, "secret_no": "1"}
    assert (await foreign.post(f"{foreign.home}/credentials{revoke}", taken)).status_code == 404
    assert (await foreign.post(f"{credentials}{revoke}", taken)).status_code == 404
    assert (await foreign.post(f"{credentials}/secret", taken)).status_code == 404
    assert (await admin.post(f"{credentials}{revoke}", {})).status_code == 403
    await admin.send(f"{credentials}{revoke}")
    assert admin.page.status_code == 303
    log = await bank.pool.fetch(
        "SELECT action, outcome FROM audit_entry WHERE customer_id = $1 AND actor = 'MEMBER' ORDER BY entry_no",
        partner_desk.partner.own_customer_id,
    )
    assert [tuple(each) for each in log if each["outcome"] == "SUCCESS"] == [
        ("signing_secret.rotated", "SUCCESS"),
        ("partner_key.added", "SUCCESS"),
        ("partner_key.revoked", "SUCCESS"),
    ]


async def test_changing_partner_secrets_requires_an_administrator_with_a_recent_sign_in(
    partner_desk, partner_people, secrets_of
):
    admin, manager = await partner_people("acme", role="ADMIN"), await partner_people("acme")
    await manager.go(manager.home)
    path = f"{admin.home}/credentials"
    assert (await manager.post(f"{path}/secret", {"csrf": manager.csrf, "secret_no": "1"})).status_code == 403
    await admin.go(path)
    form = {"csrf": admin.csrf, "secret_no": "1"}
    await partner_desk.bank.pool.execute("UPDATE session SET authenticated_at = authenticated_at - interval '1 hour'")
    assert (await admin.post(f"{path}/secret", form)).headers["location"].startswith("/confirm?")
    assert await secrets_of() == 1


async def test_partner_lists_show_cards_ach_entries_and_users_of_all_customers(
    partner_desk, other_partner, partner_people, monkeypatch
):
    made, viewer = [], await partner_people("acme", role="VIEWER")
    for desk, name in ((partner_desk, "Northwind"), (partner_desk, "Contoso"), (other_partner, "Fabrikam")):
        pocket = await desk.funded(250_000_00, await desk.customer(name))
        made.append(await _originate(desk, pocket))
        await Holder(desk, pocket).virtual_card()
        await desk.post("/api/v1/applications/", PERSON | {"name": {"first_name": "Kim", "last_name": name}})
        await desk.later(minutes=1)
    for path, move in (("submit", {}), (made[0]["id"], {"move": "return", "code": "R03"})):
        assert (await partner_desk.send("POST", f"/api/v1/sandbox/ach/{path}/", move)).is_success
    for page, says in (("ach", "151.00"), ("cards", "Virtual"), ("applications/persons", "Kim")):
        await viewer.go(f"{viewer.home}/{page}")
        assert {"Northwind", "Contoso"} <= {*re.findall(r"[A-Z][a-z]+", viewer.text)}
        assert "Fabrikam" not in viewer.text
        assert (viewer.page.text.count("<tr><td>"), says in viewer.text) == (2, True)
    for choice, count in (("returned=true", 1), ("returned=false", 1), ("direction=DEBIT", 0), ("status=LOST", 0)):
        await viewer.go(f"{viewer.home}/ach?{choice}")
        assert viewer.text.count("$151.00") == count, choice
    await viewer.go(f"{viewer.home}/ach?returned=true")
    assert "returned R03" in viewer.text
    await viewer.go(f"{viewer.home}/applications/persons")
    await viewer.go(first_match(r'href="([^"]+/persons/[0-9a-f-]{36})"', viewer.page.text))
    assert "Kim " in viewer.text
    pages = await partner_desk.pages("/api/v1/ach-originating/", limit=1)
    assert [each["id"] for each in pages] == [made[1]["id"], made[0]["id"]]
    await _check_cards(partner_desk, other_partner)
    monkeypatch.setattr(paging, "SEARCHED_MAX", 0)
    await _search_both_ways(viewer, "/ach?returned=true")


async def _search_both_ways(viewer, path):
    """Search for the older of two rows while a page looks at one instant, on to the end and back to the beginning."""
    ways = [("", "so far", "next"), ("next", "R03", ""), ("next", "Nothing more", "")]
    ways += [("prev", "R03", ""), ("prev", "so far", "prev"), ("prev", "Nothing more", ""), ("next", "so far", "next")]
    for way, says, goes_on in ways:
        more = first_match(rf'href="\?([^"]+)" rel="{way}"', viewer.page.text).replace("&amp;", "&") if way else ""
        await viewer.go(f"{viewer.home}/ach?{more}" if more else f"{viewer.home}{path}")
        assert says in viewer.text, way
        assert re.findall('data-searches="([a-z]+)"', viewer.page.text) == [goes_on] * bool(goes_on)


async def _check_cards(desk, other):
    """Read the cards of each partner page by page."""
    cards, foreign = await desk.pages("/api/v1/cards/", limit=1), (await other.get("/api/v1/cards/"))["items"]
    assert (len(cards), len(foreign)) == (2, 1)
    assert not {each["customer_id"] for each in cards} & {each["customer_id"] for each in foreign}


async def _originate(desk, pocket, direction="CREDIT"):
    """Return an ACH entry of $151.00, to or from an account that a wire has verified."""
    ada = {"type": "individual", "first_name": "Ada", "last_name": "Stone"}
    account = {"routing_number": "021000021", "account_number": "000123456789"}
    kind = {"type": "ach", "account_type": "CHECKING", "verification": {"type": "incoming_wire"}}
    path = f"/api/v2/customers/{pocket.customer}/counterparties/"
    payee = await desk.post(path, kind | account | {"counterparty_name": ada})
    proof = {"portal_id": pocket.portal, "amount_usdc": 100, "sender_name": "Ada Stone"}
    proof |= {f"sender_{name}": value for name, value in account.items()}
    assert (await desk.send("POST", "/api/v1/sandbox/wire/", proof)).is_success
    body = {"counterparty_id": payee["id"], "direction": direction, "amount_usdc": 151_00, "sec_code": "PPD"}
    body |= {
        "company_entry_description": "PAYROLL" if direction == "CREDIT" else "INVOICE",
        "payment_related_information": [],
    }
    return await desk.post(f"/api/v1/service-accounts/{pocket.id}/ach-originating/", body, status=200)


async def test_a_partner_home_counts_volumes_return_rates_and_failed_requests_of_its_own(
    bank, partner_desk, other_partner, partner_people
):
    viewer, stranger = await partner_people("acme", role="VIEWER"), await partner_people("globex", role="VIEWER")
    pocket = await partner_desk.funded(250_000_00, await partner_desk.customer("Northwind"))
    made = await _originate(partner_desk, pocket, "DEBIT")
    for path, move in (("submit", {}), (made["id"], {"move": "return", "code": "R10"})):
        assert (await partner_desk.send("POST", f"/api/v1/sandbox/ach/{path}/", move)).is_success
    await partner_desk.refused("GET", f"/api/v2/pockets/{UNKNOWN}/", status=404, code="not-found")
    await partner_desk.app.request_log.write()
    await viewer.go(viewer.home)
    assert "Nothing was counted yet" in viewer.text
    await ActivityCounter().count(bank)
    await bank.pool.execute("DELETE FROM request_log")
    await ActivityCounter().count(bank)
    await viewer.go(viewer.home)
    assert "Unauthorized R05, R07, R10, R11, R29, R51 1 of 1 100.00% 0.5% Above limit" in viewer.text
    assert "Administrative R02, R03, R04 0 of 1 0.00% 3.0% Within limit" in viewer.text
    assert "Money in $250,001.00" in viewer.text
    day = first_match(r"requests\?from=([\d-]+)&amp;to=\1&amp;status=4xx", viewer.page.text)
    assert (await viewer.go(f"{viewer.home}/developer/requests?from={day}&to={day}&status=4xx")).status_code == 200
    await stranger.go(stranger.home)
    assert "0 of 0" in stranger.text
    assert "Money in $0.00" in stranger.text
    await partner_desk.later(days=40)
    await partner_desk.funded(100_00, str(pocket.customer), name="Later")
    await ActivityCounter().count(bank)
    await viewer.go(viewer.home)
    assert "Money in $100.00" in viewer.text
    await viewer.go(f"{viewer.home}?by=month")
    assert "Money in $250,101.00" in viewer.text
    assert (await viewer.go(f"{viewer.home}?by=x")).status_code == 200


async def test_a_partner_whose_days_cannot_be_counted_keeps_no_other_from_it(
    bank, partner_desk, other_partner, monkeypatch
):
    custody, failing = worker._custody, partner_desk.partner.partner_id

    async def fails_for_one(conn, owner, *more):
        assert owner != failing
        return await custody(conn, owner, *more)

    monkeypatch.setattr(worker, "_custody", fails_for_one)
    await ActivityCounter().count(bank)
    counted = {row["partner_id"] for row in await bank.pool.fetch("SELECT partner_id FROM partner_day")}
    assert (failing in counted, other_partner.partner.partner_id in counted) == (False, True)


async def test_a_customer_page_shows_its_wires_and_events(partner_desk, partner_people):
    viewer = await partner_people("acme", role="VIEWER")
    pocket = await partner_desk.funded(1_250_75, await partner_desk.customer("Northwind"))
    await partner_desk.get("/api/v1/events/")
    await viewer.go(f"{viewer.home}/customers/{pocket.customer}")
    wires = first_match(r'(?s)id="wires">(.+?)</section>', viewer.page.text)
    assert "+$1,250.75" in wires
    event = first_match(r'href="([^"]+/developer/events/[^"]+)">transfers.wire.in.success<', viewer.page.text)
    assert (await viewer.go(event)).status_code == 200


@pytest.mark.one_server
@pytest.mark.parametrize("statement", STATEMENTS)
async def test_days_of_a_partner_are_counted_and_read_by_an_index(bank, statement):
    values = [ids.new(), ["CUSTODY"], date(2025, 6, 2)] if statement == _COUNTED else [ids.new(), MOMENT]
    values = values[: len({*re.findall(r"\$\d", statement)})]
    async with bank.pool.acquire() as conn, conn.transaction():
        await conn.execute("SET LOCAL enable_seqscan = off")
        plan = [row[0] for row in await conn.fetch(f"EXPLAIN {statement}", *values)]
    assert [each for each in plan if "Seq Scan" in each] == []
