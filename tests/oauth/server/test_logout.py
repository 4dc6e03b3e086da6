"""Signing out at a client's wish."""

import pytest
from tests.support.oauth import ISSUER, KEYS, came, member

from billfold.identity.users import sessions, store
from billfold.identity.users.rules import ClientInfo
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_token

LOGOUT, BYE = "/api/oauth2/logout", "https://books.example/bye"


async def signed_in(bank, user):
    """Sign a person in with a browser; return its cookie and the session's id."""
    cookie = await sessions.open_session(
        bank.pool,
        user.user_id,
        auth_methods=("hwk",),
        complete=True,
        client_info=ClientInfo(address="203.0.113.7", device="Firefox"),
        now=wall_now(),
    )
    session = await store.find_session(bank.pool, bank.vault, hash_token(cookie), now=wall_now())
    assert session is not None
    return cookie, session.session_id


async def is_signed_in(bank, cookie):
    return await store.find_session(bank.pool, bank.vault, hash_token(cookie), now=wall_now()) is not None


@pytest.mark.parametrize("way", ["get", "post", "another browser"])
async def test_logout_ends_the_session_and_the_tokens_issued_from_it(bank, books_client, ledger_client, way):
    cookie, books_client.session_id = await signed_in(bank, books_client.person)
    ledger_client.session_id = books_client.session_id
    ours, theirs = await books_client.tokens(), await ledger_client.tokens(dpop=None)
    sent = {"id_token_hint": ours["id_token"], "post_logout_redirect_uri": BYE, "state": "s"}
    carried = {} if way == "another browser" else {"cookie": f"__Host-session={cookie}"}
    if way == "post":
        answer = await books_client.http.post(LOGOUT, data=sent, headers=carried)
    else:
        answer = await books_client.http.get(LOGOUT, params=sent, headers=carried)
    assert answer.headers["location"] == f"{BYE}?state=s"
    assert not await is_signed_in(bank, cookie)
    assert not await books_client.is_good(ours["access_token"])
    assert not await ledger_client.is_good(theirs["access_token"], dpop=None, scheme="Bearer")
    assert (await books_client.refresh(ours["refresh_token"])).status_code == 400
    assert (await ledger_client.refresh(theirs["refresh_token"], dpop=None)).status_code == 200


async def test_logout_asks_for_confirmation_when_the_browser_has_a_different_session(bank, books_client):
    other = await member(bank.pool, books_client.person.customer_id)
    cookie, _ = await signed_in(bank, other)
    tokens = await books_client.tokens()
    sent = {"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": BYE, "state": "s"}
    answer = await books_client.http.get(LOGOUT, params=sent, headers={"cookie": f"__Host-session={cookie}"})
    back = came(answer.headers["location"])
    assert back.address == f"{ISSUER}/sign-out"
    assert back.fields == {"client_id": "books", "post_logout_redirect_uri": BYE, "state": "s"}
    assert await is_signed_in(bank, cookie)
    assert not await books_client.is_good(tokens["access_token"])


async def test_logout_keeps_the_tokens_of_other_sessions(books_client):
    kept = await books_client.tokens()
    books_client.session_id = books_client.person.member_id
    ended = await books_client.tokens()
    await books_client.http.post(LOGOUT, data={"id_token_hint": ended["id_token"]})
    assert await books_client.is_good(kept["access_token"])
    assert not await books_client.is_good(ended["access_token"])


async def test_logout_without_an_id_token_hint_asks_for_confirmation(books_client):
    tokens = await books_client.tokens()
    answer = await books_client.http.get(LOGOUT, params={"client_id": "books"})
    assert answer.headers["location"] == f"{ISSUER}/sign-out"
    assert await books_client.is_good(tokens["access_token"])


async def test_an_unregistered_post_logout_redirect_uri_is_not_followed(books_client):
    tokens = await books_client.tokens()
    for target in [
        "https://evil.example",
        "//evil.example",
        "\\\\evil.example",
        "https:evil.example",
        "https://books.example/bye/",
        "https://books.example/bye?x=1",
    ]:
        answer = await books_client.http.get(
            LOGOUT, params={"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": target}
        )
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert await books_client.is_good(tokens["access_token"])


async def test_logout_with_a_forged_id_token_hint_is_refused(bank, books_client):
    cookie, session_id = await signed_in(bank, books_client.person)
    claims = {"iss": ISSUER, "aud": "books", "sub": str(books_client.person.user_id), "sid": str(session_id)}
    forged = KEYS["PS256"].sign(claims)
    assert (await books_client.http.get(LOGOUT, params={"id_token_hint": forged})).status_code == 400
    assert await is_signed_in(bank, cookie)


async def test_logout_with_an_invalid_id_token_hint_is_refused(books_client):
    for hint in ["no JWT", "e30.e30.", "e30.e30.AAAA"]:
        answer = await books_client.http.get(LOGOUT, params={"id_token_hint": hint})
        assert answer.status_code == 400
        assert "<h1>This request cannot be answered</h1>" in answer.text
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_logout_with_an_id_token_hint_of_a_different_client_is_refused(books_client):
    tokens = await books_client.tokens()
    sent = {"id_token_hint": tokens["id_token"], "client_id": "other"}
    assert (await books_client.http.get(LOGOUT, params=sent)).status_code == 400
    assert await books_client.is_good(tokens["access_token"])
