"""The authorization endpoint: where a browser is sent, and where it never is."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from tests.support.browser import first_match
from tests.support.oauth import AUTHORIZE, ISSUER, REDIRECT, came

from billfold.oauth import consent, grants
from billfold.oauth.server import authorize
from billfold.pages.theme import Theme
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.errors import NotFound, Refused


def is_a_page(answer, error):
    """Check that a response is an error page without a redirect."""
    assert answer.status_code == 400, answer.headers
    assert "location" not in answer.headers
    assert answer.headers["content-type"].startswith("text/html")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-frame-options"] == "DENY"
    assert error in answer.text
    return True


def sent_back(answer, error, **fields):
    """Check that a browser is redirected to the client with an error and our issuer."""
    assert answer.status_code == 303
    back = came(answer.headers["location"])
    assert back.address == REDIRECT
    assert back.fields["error"] == error
    assert back.fields["iss"] == ISSUER
    assert "code" not in back.fields
    assert {name: back.fields.get(name) for name in fields} == fields


async def test_a_pushed_request_redirects_to_the_consent_page(books_client):
    answer = await books_client.browse(request_uri=await books_client.pushed())
    assert answer.status_code == 303
    where = urlsplit(answer.headers["location"])
    assert (where.netloc, where.path) == ("auth.localhost:8443", "/consent")
    assert list(parse_qs(where.query)) == ["request"]


async def test_a_documented_profile_client_may_authorize_without_a_pushed_request(ledger_client):
    came_back = await ledger_client.approved(state="s")
    assert came_back.address == REDIRECT
    assert came_back.fields["state"] == "s"
    assert came_back.fields["iss"] == ISSUER
    assert (await ledger_client.exchange(came_back.fields["code"], dpop=None)).status_code == 200


async def test_a_documented_profile_client_may_use_a_pushed_request(ledger_client):
    answer = await ledger_client.browse(request_uri=await ledger_client.pushed())
    assert answer.status_code == 303


async def test_an_authorization_request_may_be_posted_as_a_form(ledger_client):
    answer = await ledger_client.http.post(AUTHORIZE, data=ledger_client.asked())
    assert answer.status_code == 303
    assert "/consent?" in answer.headers["location"]


async def test_a_strict_client_without_a_pushed_request_is_refused(books_client, bank):
    sent_back(await books_client.browse(**books_client.asked()), "invalid_request", state="a state")
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_authorization_request") == 0


async def test_an_authorization_error_is_sent_to_the_registered_redirect_uri(ledger_client):
    changed: Any
    for changed, error in [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"prompt": "none"}, "interaction_required"),
    ]:
        sent_back(await ledger_client.browse(**ledger_client.asked(**changed)), error, state="a state")


async def test_an_unregistered_redirect_uri_gets_an_error_page(ledger_client, books_client):
    for uri in [
        "https://evil.example/",
        "https://books.example/callback/../callback",
        "https://books.example:444/callback",
        "https://Books.example/callback",
        "https://books.example@evil.example/callback",
        "https://books.example/%63allback",
        "https://books.example/callback?a=b",
        "https://books.example/callback#",
        "//books.example",
        "javascript:alert(1)",
        None,
    ]:
        for client in (ledger_client, books_client):
            assert is_a_page(await client.browse(**client.asked(redirect_uri=uri)), "invalid_request")


async def test_an_unknown_client_gets_an_error_page(ledger_client):
    for client_id in [None, "nobody", "nul\x00", "<script>"]:
        answer = await ledger_client.browse(**ledger_client.asked(client_id=client_id) | {"client_id": client_id})
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert "<script>" not in answer.text


async def test_a_repeated_authorization_parameter_gets_an_error_page(ledger_client):
    answer = await ledger_client.http.get(AUTHORIZE + "?client_id=ledger&client_id=books")
    assert is_a_page(answer, "invalid_request")


async def test_a_foreign_unknown_or_expired_request_uri_gets_the_same_error_page(books_client, relying, bank):
    uri = await books_client.pushed()
    other = await relying("other", requires_nonce=False)
    pages = [await other.browse(request_uri=uri), await books_client.browse(request_uri=uri + "x")]
    await bank.pool.execute("UPDATE oauth_authorization_request SET uri_expires_at = now()")
    pages.append(await books_client.browse(request_uri=uri))
    [text] = {page.text.partition("Trace")[0] for page in pages}
    assert "invalid_request_uri" in text


async def test_an_external_request_uri_is_refused_without_fetching(books_client):
    answer = await books_client.browse(request_uri="https://127.0.0.1:1/request.jwt")
    assert is_a_page(answer, "invalid_request_uri")


async def test_a_pushed_request_can_be_reopened_until_answered_and_ignores_query_parameters(books_client):
    uri = await books_client.pushed(state="pushed")
    opened = [await books_client.browse(request_uri=uri, state="other") for _ in range(3)]
    [consent_page] = {answer.headers["location"] for answer in opened}
    back = await books_client.approved(UUID(consent_page.rpartition("=")[2]))
    assert back.fields["state"] == "pushed"
    assert is_a_page(await books_client.browse(request_uri=uri), "invalid_request_uri")


async def test_state_and_nonce_are_optional(books_client):
    changed: Any
    for changed in [{"nonce": None}, {"state": None}, {"state": "x" * 1000}, {"nonce": "n" * 64}]:
        back = await books_client.approved(**changed)
        assert back.fields.get("state") == changed.get("state", "a state")
        assert (await books_client.exchange(back.fields["code"])).status_code == 200


# -- answers -----------------------------------------------------------------------------


async def test_an_authorization_request_is_answered_once(books_client, bank, oauth_user):
    request_id = await books_client.waiting()
    await books_client.approved(request_id)
    with pytest.raises(NotFound):
        await books_client.approved(request_id)
    async with bank.pool.acquire() as conn:
        with pytest.raises(NotFound):
            await consent.deny(conn, request_id, issuer=ISSUER, now=wall_now())
        with pytest.raises(NotFound):
            await authorize.get_pending_request(conn, request_id, wall_now())
    assert await bank.pool.fetchval("SELECT count(*) FROM authorization_code") == 1


async def test_a_pending_authorization_request_has_all_its_parameters(books_client, bank):
    request_id = await books_client.waiting(login_hint="anna@example.com", max_age="60", prompt="login")
    pending = await authorize.get_pending_request(bank.pool, request_id, wall_now())
    assert (pending.client_name, pending.scopes) == ("Books", ("openid", "pockets.read"))
    assert (pending.login_hint, pending.max_age, pending.prompts) == ("anna@example.com", 60, ("login",))
    assert pending.refreshes
    assert pending.redirect_uri == REDIRECT


async def test_a_pending_authorization_request_expires_after_half_an_hour(books_client, bank):
    request_id = await books_client.waiting()
    later = wall_now() + timedelta(minutes=30)
    with pytest.raises(NotFound):
        await authorize.get_pending_request(bank.pool, request_id, later)
    async with bank.pool.acquire() as conn:
        with pytest.raises(NotFound):
            await consent.deny(conn, request_id, issuer="https://bank.example", now=later)


async def test_consent_for_a_client_revoked_after_the_request_is_refused(books_client, bank):
    request_id = await books_client.waiting()
    await bank.pool.execute("UPDATE oauth_client SET revoked_at = now()")
    with pytest.raises(NotFound):
        await authorize.get_pending_request(bank.pool, request_id, wall_now())
    with pytest.raises(NotFound):
        await books_client.approved(request_id)
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_grant") == 0


@pytest.mark.parametrize("status", ["PENDING", "DEACTIVATED"])
async def test_consent_by_an_inactive_member_is_refused(books_client, bank, status):
    request_id = await books_client.waiting()
    await bank.pool.execute("UPDATE membership SET status = $1", status)
    with pytest.raises(Refused):
        await books_client.approved(request_id)
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_grant") == 0
    assert (await authorize.get_pending_request(bank.pool, request_id, wall_now())).client_id == "books"


async def test_consent_after_max_age_requires_signing_in_again(books_client, bank, oauth_user):
    request_id = await books_client.waiting(max_age="60")
    now = wall_now()
    async with bank.pool.acquire() as conn:
        with pytest.raises(Refused) as refused:
            await consent.approve(
                conn,
                request_id,
                user_id=oauth_user.user_id,
                customer_id=oauth_user.customer_id,
                authenticated_at=now - timedelta(seconds=61),
                session_id=ids.new(),
                issuer=ISSUER,
                now=now,
            )
    assert refused.value.code == "insufficient-user-authentication"
    assert (await books_client.approved(request_id)).fields["code"]


async def test_repeated_consents_for_one_customer_merge_into_one_grant(books_client, bank, oauth_user):
    await books_client.approved(scope="openid")
    await books_client.approved(scope="pockets.read")
    (grant,) = await grants.list_grants(bank.pool, oauth_user.user_id)
    assert grant.scopes == ("openid", "pockets.read")
    assert (grant.client_name, grant.customer_name) == ("Books", "Northwind")


async def test_an_authorization_response_with_response_mode_form_post_is_a_form(ledger_client):
    carried = await ledger_client.approved(response_mode="form_post", state='"><script>')
    assert carried.address.startswith(f"{ISSUER}/api/oauth2/form-post/")
    page = await ledger_client.http.get(carried.address, params=carried.fields)
    assert page.status_code == 200
    assert f'action="{REDIRECT}"' in page.text
    assert first_match(r'script src="/files/\w+/([^"]+)"', page.text) in Theme("a bank").files
    assert '"><script>' not in page.text
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text))
    assert (fields["code"], fields["iss"]) == (carried.fields["code"], ISSUER)
    assert "form-action 'self' https://books.example" in page.headers["content-security-policy"]
    assert (await ledger_client.exchange(fields["code"], dpop=None)).status_code == 200


async def test_the_form_post_page_exists_only_for_form_post_answers_of_the_last_minute(ledger_client, bank):
    waiting, late = [await ledger_client.waiting(response_mode="form_post") for _ in range(2)]
    redirected = await ledger_client.waiting()
    for request_id in (late, redirected):
        await ledger_client.approved(request_id)
    await bank.pool.execute(
        "UPDATE oauth_authorization_request SET decided_at = decided_at - interval '1 minute' WHERE request_id = $1",
        late,
    )
    for request_id in (waiting, late, redirected, "nothing"):
        page = await ledger_client.http.get(f"/api/oauth2/form-post/{request_id}", params={"code": "x"})
        assert page.status_code == 404
        assert "<h1>Not found</h1>" in page.text
