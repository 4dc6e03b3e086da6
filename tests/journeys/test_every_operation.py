"""Every route of both APIs against everybody who may not use it; one that is not listed fails."""

import re
from datetime import timedelta
from uuid import UUID

import pytest
from tests.journeys import cases
from tests.support import payees
from tests.support.approvals import REQUESTS, on_us
from tests.support.customer_client import EVERYTHING, join, token_for
from tests.support.customer_events import tell
from tests.support.oauth_clients import KEYS
from tests.support.partner_client import new_partner
from tests.support.partner_desk import PartnerApi

from billfold.access.partners import credentials
from billfold.platform.clock import wall_now

_A_DOCUMENT = """
INSERT INTO document (customer_id, document_id, type, status, created_at)
VALUES ($1, $2, 'OTHER', 'PENDING_UPLOAD', now())
"""
DOCUMENT = "d0c5a0d6-0000-4000-8000-0000000000d0"
UNCHANGED = (
    "journal_entry",
    "transaction",
    "pocket",
    "portal",
    "counterparty",
    "transfer",
    "customer",
    "membership",
    "invitation",
    "oauth_client",
    "client_key",
    "subscription",
    "delivery",
    "simulated_event",
    "transfer_request",
    "review",
    "approval_rule",
    "authorization_request",
    "wire",
    "wire_message",
)


async def state_of(bank):
    """Return all that must not change: how many rows there are, and each pocket's and portal's."""
    counts = [await bank.pool.fetchval(f"SELECT count(*) FROM {table}") for table in UNCHANGED]
    rows = await bank.pool.fetch("SELECT customer_id, version FROM ledger_head ORDER BY customer_id")
    return counts, [tuple(row) for row in rows]


def expect_careful(answer):
    """Every answer says what a browser must not do with it, and nothing to other origins."""
    said = answer.headers
    assert said["x-content-type-options"] == "nosniff"
    assert said["referrer-policy"] == "no-referrer"
    assert said["cache-control"] == "no-store"
    assert "max-age" in said["strict-transport-security"]
    assert not [name for name in said if name.startswith("access-control")]
    assert "Traceback" not in answer.text


def steps(table, names):
    """Return (method, path, body, what was declared) of every operation, names filled in.

    What ends something comes last.
    """
    for (method, path), told in sorted(table.items(), key=lambda case: (case[0][0] == "DELETE", case[0])):
        scope, body = told if isinstance(told, tuple) else (None, told)
        here = cases.names_at(path, names)
        made = cases.filled(body, here) if body is not None else b""
        yield method, cases.as_published(cases.filled(path, here)), made, (path, scope, body)


@pytest.fixture
async def owned(bank, customer_desks, customer_world):
    """A desk, and the names of what belongs to its customer."""
    api = await customer_desks()
    pocket = await api.pocket()
    await customer_world.wire(pocket, 9_000_00)
    other = await customer_world.pocket()
    shown = (await customer_world.get(f"/api/v2/pockets/{other.id}/portals/"))["items"][0]
    counterparty = await customer_world.post(
        f"/api/v2/customers/{api.team.customer}/counterparties/",
        {
            "type": "on_us",
            "counterparty_name": {"type": "business", "business_name": "x"},
            "account_number": shown["network_address"],
        },
    )
    awaited = await api.post("/api/v2/counterparties/", payees.ach(verification={"type": "micro_deposits"}))
    await api.bank.pool.execute(_A_DOCUMENT, UUID(api.team.customer), UUID(DOCUMENT))
    told = await api.post("/api/v1/subscriptions/", cases.TOLD)
    moved = await customer_world.transfer(pocket, await api.pocket(), 1_00)
    assert await tell(api)
    notification = (await api.get("/api/v1/notifications/"))["items"][0]["id"]
    transaction = (await api.get("/api/v2/transactions/"))["items"][0]["id"]
    team = await _team(bank, api)
    event = (await api.get("/api/v1/events/"))["items"][0]["event"]
    asked = await _asked(bank, api, customer_desks, pocket=pocket)
    return api, {
        **team,
        **asked,
        "customer_id": api.team.customer,
        "pocket_id": pocket.id,
        "account_id": pocket.id,
        "portal_id": pocket.portal,
        "transaction_id": transaction,
        "notification_id": notification,
        "counterparty_id": counterparty["id"],
        "wire_id": (await api.get("/api/v1/wires/"))["items"][0]["id"],
        "awaited_id": awaited["id"],
        "document_id": DOCUMENT,
        "transfer_id": moved["id"],
        "subscription_id": told["id"],
        "event_id": event["event_id"],
    }


async def _asked(bank, api, customer_desks, pocket):
    """Return the names of a request of the desk's, of some that it may decide, and of a rule."""
    other = await customer_desks(api.team.customer, role="INITIATOR")
    to = await api.pocket()
    asked = [await each.post(REQUESTS, on_us(pocket, 1_00, to=to)) for each in (api, other)]
    await bank.pool.execute("DELETE FROM rate_limit_window")
    admin, rules = await customer_desks(api.team.customer), "/api/v1/approval-rules/"
    first, second = [await admin.post(rules, {"name": "All", "required_approvals": 1}, status=202) for _ in range(2)]
    made = f"/api/v1/authorization-requests/{first['id']}/status/"
    await api.patch(made, {"status": "APPROVED"})
    return {
        "asked_id": asked[0]["id"],
        "waiting_id": asked[1]["id"],
        "rule_id": first["resource_id"],
        "request_id": second["id"],
    }


async def _team(bank, api):
    """Return the names of a member, of somebody invited, and of a program with its key."""
    other = await join(bank, api.team.customer, role="VIEWER")
    member_id = await bank.pool.fetchval("SELECT member_id FROM membership WHERE user_id = $1", other.user_id)
    user = {"first_name": "Ben", "last_name": "Ode", "email": "ben@b.example", "role": "VIEWER"}
    invited = await api.post("/api/v1/team/invite/", user)
    new = {"name": "Ledger", "scopes": ["team.read"], "public_key": KEYS["ES256"].pem}
    program = await api.post("/api/v1/team/service-users/", new)
    return {
        "member_id": str(member_id),
        "invited_id": invited["member_id"],
        "program_id": program["member_id"],
        "key_id": program["key_id"],
    }


def test_every_route_is_in_the_tables(customer_app, customer_world):
    customer, partner = cases.routes_of(customer_app), cases.routes_of(customer_world.app)
    assert customer == set(cases.CUSTOMER) | (customer & cases.UPLOADS) | cases.CUSTOMER_OPEN | cases.STREAMS
    assert partner == set(cases.PARTNER) | (partner & cases.UPLOADS) | cases.PARTNER_OPEN | cases.STREAMS


async def test_no_route_of_the_customer_api_opens_without_the_right_token(bank, customer_desks, owned):
    api, names = owned
    expired = await token_for(bank, api.team, age=timedelta(seconds=901))
    before = await state_of(bank)
    for method, path, body, (_, scope, _) in steps(cases.CUSTOMER, names):
        for token in (None, expired):
            answer = await api.ask(method, path, body, status=401, token=token)
            assert "www-authenticate" in answer.headers
            expect_careful(answer)
        others = [each for each in EVERYTHING if each != scope]
        token = await token_for(bank, api.team, scopes=others)
        answer = await api.ask(method, path, body, status=403, token=token)
        assert f'error="insufficient_scope", scope="{scope}"' in answer.headers["www-authenticate"]
    assert await state_of(bank) == before


async def test_every_route_of_the_customer_api_opens_with_its_scope_alone(bank, owned):
    api, names = owned
    for method, path, body, (_, scope, _) in steps(cases.CUSTOMER, names):
        token = await token_for(bank, api.team, scopes=(scope,))
        answer = await api.send(method, path, body, token=token)
        assert answer.is_success, (method, path, answer.text)
        expect_careful(answer)


async def test_another_customers_token_finds_nothing_behind_any_route(bank, customer_desks, owned):
    _, names = owned
    stranger = await customer_desks()
    before = await state_of(bank)
    for method, path, body, (declared, _, raw) in steps(cases.CUSTOMER, names):
        if cases.names_something(declared, raw):
            await stranger.refused(method, path, body, status=404, code="not-found")
        elif method == "GET":
            answer = await stranger.ask(method, path, status=200)
            assert not [each for each in names.values() if each in answer.text], path
    assert await state_of(bank) == before


async def test_no_route_of_the_partner_api_opens_without_token_and_signature(bank, customer_world, owned):
    _, names = owned
    wall = wall_now() - timedelta(seconds=3601)
    partner = customer_world.partner
    async with bank.pool.acquire() as conn:
        expired, _ = await credentials.issue_token(
            conn, partner_id=partner.partner_id, user_id=partner.user_id, now=wall
        )
    before = await state_of(bank)
    for method, path, body, (declared, _, _) in steps(cases.PARTNER, names):
        tried = [{"authorization": None}, {"authorization": f"Bearer {expired}"}]
        if "/sandbox/" not in declared:
            tried.append({"x-service-signature": "A" * 43 + "="})
        for headers in tried:
            answer = await customer_world.client.send(method, path, body, headers=headers)
            assert answer.status_code == 401, (method, path, headers, answer.text)
            expect_careful(answer)
    assert await state_of(bank) == before


async def test_another_partners_token_finds_nothing_behind_any_route(bank, customer_world, owned):
    _, names = owned
    stranger = PartnerApi(bank, customer_world.app, await new_partner(bank, "globex"))
    before = await state_of(bank)
    for method, path, body, (declared, _, raw) in steps(cases.PARTNER, names):
        if re.search(r"/clock/\w", declared):
            continue  # One clock for all partners of a sandbox.
        if cases.names_something(declared, raw):
            await stranger.refused(method, path, body, status=404, code="not-found")
        elif method == "GET":
            answer = await stranger.ask(method, path, status=200)
            assert not [each for each in names.values() if each in answer.text], path
    assert await state_of(bank) == before
    await stranger.close()


async def test_what_only_the_bank_says_is_refused_at_every_route_and_never_logged(bank, customer_world, owned, capfd):
    api, names = owned
    canary = "canary-5f0c9d71"
    more = dict.fromkeys(("object_type", "partner_id", "time_created", "password"), canary)
    before = await state_of(bank)
    for caller, table in ((api, cases.CUSTOMER), (customer_world.client, cases.PARTNER)):
        for method, path, body, _ in steps(table, names):
            if not body or not isinstance(body, dict):
                continue
            answer = await caller.send(method, path, body | more)
            assert answer.status_code == 422, (method, path, answer.text)
            refused = {tuple(each["loc"]) for each in answer.json()["detail"]}
            assert {("body", name) for name in more} <= refused, (method, path, answer.text)
    assert await state_of(bank) == before
    said = "".join(capfd.readouterr())
    for secret in (canary, api.token.text, customer_world.partner.token, customer_world.partner.secret):
        assert secret not in said
