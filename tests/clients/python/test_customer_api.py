"""A program works with the Customer API: it asks a user, proves its key, and renews its tokens."""

import asyncio
from uuid import UUID

import msgspec
import pytest
from tests.clients.python.bridge import in_thread
from tests.identity.partners.test_jwt_login_routes import private_pem
from tests.support.oauth import REDIRECT, member, new_key, program

from billfold.oauth import clients, consent
from billfold.oauth.types import CLIENT_CREDENTIALS
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold_client.customer import CustomerApi
from billfold_client.dpop import DpopAuth
from billfold_client.errors import ApiError
from billfold_client.oauth import Authorization, ClientRegistration

PERSON = ("openid", "profile", "email")
RESERVE = {"pocket_name": "Reserve", "trading_strategy_id": "UST-13W"}
SCOPES = (*PERSON, "customer.read", "pockets.read", "pockets.write", "agreements.read", "subscriptions.read")


async def register_client(bank, client_id="books", **fields):
    """Register an OAuth client with its own key; return its configuration."""
    key = new_key()
    async with bank.pool.acquire() as conn:
        await program(conn, client_id, keys=(), **{"scopes": SCOPES, **fields})
        kept = await clients.add_client_key(conn, client_id, key.pem, now=wall_now())
    return registration_of(bank, client_id, kept.key_id, key=key)


def registration_of(bank, client_id, key_id, key):
    """Return the configuration of a client with this key."""
    return ClientRegistration(
        issuer=bank.settings.auth_origin,
        client_id=client_id,
        kid=key_id,
        private_key=private_pem(key.private).decode(),
        redirect_uri=REDIRECT,
    )


def as_program(bank, calling, registration):
    """Return a client of a program without a user, and its tokens."""
    authorization = Authorization(registration)
    tokens = authorization.client_credentials(calling(bank.settings.auth_origin))
    return CustomerApi(calling(bank.settings.customer_origin, DpopAuth(authorization, tokens))), tokens


@pytest.fixture
async def person(bank, customer_world):
    """An administrator of a new customer."""
    customer = await customer_world.customer()
    async with bank.pool.acquire() as conn:
        return await member(conn, UUID(customer))


@pytest.fixture
async def api(bank, make_client, bridge, person):
    """A Customer API client for a person who consented, with an OAuth client of the strict profile."""
    authorization = Authorization(await register_client(bank))
    http = make_client(bank.settings.auth_origin)
    begun = await asyncio.to_thread(authorization.begin, http, SCOPES)
    answer = await asyncio.to_thread(http.get, begun.url)
    assert answer.status_code == 303
    request_id = UUID(answer.headers["location"].partition("request=")[2])
    now = wall_now()
    async with bank.pool.acquire() as conn:
        came_back = await consent.approve(
            conn,
            request_id,
            user_id=person.user_id,
            customer_id=person.customer_id,
            authenticated_at=now,
            session_id=ids.new(),
            issuer=bank.settings.auth_origin,
            now=now,
        )
    with pytest.raises(ValueError, match="another request"):
        authorization.finish(http, msgspec.structs.replace(begun, state="x"), came_back)
    with pytest.raises(ValueError, match="another authorization server"):
        authorization.finish(http, begun, came_back.replace("iss=https", "iss=http"))
    tokens = await asyncio.to_thread(authorization.finish, http, begun, came_back)
    assert tokens.token_type == "DPoP"
    auth = DpopAuth(authorization, tokens)
    return CustomerApi(make_client(bank.settings.customer_origin, auth)), auth


async def test_every_call_after_user_consent_has_a_dpop_proof(api, customer_world, person):
    calls, _ = api

    def work():
        assert calls.get_customer().id == person.customer_id
        assert calls.get_user().sub == person.user_id
        assert calls.list_memberships().items[0].role == "ADMIN"
        assert next(calls.list_pockets().by_page()).count == 0
        made = calls.create_pocket(**RESERVE, idempotency_key="first")
        assert calls.create_pocket(**RESERVE, idempotency_key="first").id == made.id
        assert calls.update_pocket(made.id, name="Taxes").pocket_name == "Taxes"
        portal = calls.create_portal(made.id, name="Payroll")
        calls.update_portal(made.id, portal.id, name="Wages")
        assert list(calls.list_portals(made.id)) == list(calls.list_customer_portals())
        assert calls.get_funding_instructions(made.id, portal.id).portal_id == portal.id
        return made, portal

    made, portal = await asyncio.to_thread(work)
    for _ in range(3):
        body = {"portal_id": str(portal.id), "amount_usdc": 1_000_00, "sender_name": "Contoso"}
        await customer_world.ask("POST", "/api/v1/sandbox/wire/", body, status=202)

    def look():
        assert calls.get_pocket(made.id).portfolio.total_value.value > 2_900_00
        assert len(list(calls.list_transactions(limit=2))) == 3
        assert len(list(calls.list_trades(limit=2))) == 3
        assert len(list(calls.list_v1_trades(account=[made.id]))) == 3
        assert len(calls.get_transactions_csv().splitlines()) == 4
        assert len(calls.get_trades_csv().splitlines()) == 4
        assert calls.list_earnings().aggregate.contributions.value == 3_000_00
        assert calls.get_pocket_earnings(made.id, period="mtd").contributions.value == 3_000_00
        assert next(calls.list_trading_strategies().by_page()).count == 4
        assert "trades.maturity" in {each.event for each in calls.list_event_types()}
        assert [each.event.sequence for each in calls.list_events()] == [8, 7, 6, 5, 4, 3, 2, 1]
        assert len(calls.get_agreements().documents) == 20

    await asyncio.to_thread(look)


@in_thread
def test_a_refused_customer_api_call_raises_api_error_with_its_code(api):
    calls, _ = api
    with pytest.raises(ApiError) as refused:
        calls.get_pocket(ids.new())
    assert (refused.value.status, refused.value.code) == (404, "not-found")
    assert refused.value.trace_id
    with pytest.raises(ApiError) as refused:
        calls.create_pocket(pocket_name="x", trading_strategy_id="UST-5W")
    assert (refused.value.status, refused.value.code) == (422, "invalid")
    with pytest.raises(ApiError, match="422 invalid"):
        list(calls.list_transactions(type=["X"]))


async def test_tokens_are_renewed_before_expiry_and_when_deleted(bank, api):
    calls, auth = api
    first = auth.tokens
    auth.tokens = msgspec.structs.replace(first, expires_at=0.0)
    await asyncio.to_thread(calls.get_customer)
    second = auth.tokens
    assert second.access_token != first.access_token
    assert second.refresh_token
    await bank.pool.execute("DELETE FROM access_token")
    await asyncio.to_thread(calls.get_customer)
    assert auth.tokens.access_token != second.access_token


async def test_client_credentials_need_no_user(bank, customer_world, make_client):
    customer = await customer_world.customer()
    me = await register_client(
        bank,
        "service",
        grant_types=(CLIENT_CREDENTIALS,),
        customer_id=UUID(customer),
        redirect_uris=(),
        post_logout_redirect_uris=(),
        scopes=("customer.read", "pockets.read"),
    )
    calls, _ = await asyncio.to_thread(as_program, bank, make_client, me)
    assert str((await asyncio.to_thread(calls.get_customer)).id) == customer
    with pytest.raises(ApiError, match="invalid_scope"):
        await asyncio.to_thread(Authorization(me).client_credentials, make_client(me.issuer), ["team.read"])
