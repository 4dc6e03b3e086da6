"""Signing out at a client's wish."""

import pytest
from tests.domain.oauth.people import member
from tests.domain.oauth.programs import KEYS
from tests.interfaces.auth.relying import ISSUER, came

from billfold.domain import people
from billfold.domain.people import Visitor
from billfold.kit.clock import wall_now
from billfold.kit.crypto import hash_token

LOGOUT, BYE = "/api/oauth2/logout", "https://books.example/bye"


async def test_what_a_client_got_in_a_session_ends_and_the_person_is_sent_back(books):
    tokens = await books.tokens()
    answer = await books.http.get(
        LOGOUT,
        params={"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": BYE, "state": "s"},
    )
    assert answer.status_code == 303
    assert came(answer.headers["location"]).address == BYE
    assert came(answer.headers["location"]).fields == {"state": "s"}
    assert not await books.is_good(tokens["access_token"])
    assert (await books.refresh(tokens["refresh_token"])).status_code == 400


async def signed_in(bank, person):
    """Sign a person in with a browser; return its cookie and the session's id."""
    cookie = await people.sessions.open_session(
        bank.pool, person.user_id, proved=("hwk",), complete=True,
        visitor=Visitor(address="203.0.113.7", device="Firefox"), now=wall_now(),
    )  # fmt: skip
    session = await people.find_session(bank.pool, hash_token(cookie), wall_now())
    assert session is not None
    return cookie, session.session_id


async def is_signed_in(bank, cookie):
    return await people.find_session(bank.pool, hash_token(cookie), wall_now()) is not None


@pytest.mark.parametrize("way", ["get", "post", "another browser"])
async def test_the_session_ends_with_the_tokens_others_got_of_it(bank, books, ledger, way):
    cookie, books.session_id = await signed_in(bank, books.person)
    ledger.session_id = books.session_id
    ours, theirs = await books.tokens(), await ledger.tokens(dpop=None)
    sent = {"id_token_hint": ours["id_token"], "post_logout_redirect_uri": BYE, "state": "s"}
    carried = {} if way == "another browser" else {"cookie": f"__Host-session={cookie}"}
    if way == "post":
        answer = await books.http.post(LOGOUT, data=sent, headers=carried)
    else:
        answer = await books.http.get(LOGOUT, params=sent, headers=carried)
    assert answer.headers["location"] == f"{BYE}?state=s"
    assert not await is_signed_in(bank, cookie)
    assert not await books.is_good(ours["access_token"])
    assert not await ledger.is_good(theirs["access_token"], dpop=None, scheme="Bearer")
    assert (await books.refresh(ours["refresh_token"])).status_code == 400
    assert (await ledger.refresh(theirs["refresh_token"], dpop=None)).status_code == 200


async def test_the_person_is_asked_when_the_browser_is_signed_in_to_another_session(bank, books):
    other = await member(bank.pool, books.person.customer_id)
    cookie, _ = await signed_in(bank, other)
    tokens = await books.tokens()
    sent = {"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": BYE, "state": "s"}
    answer = await books.http.get(
        LOGOUT, params=sent, headers={"cookie": f"__Host-session={cookie}"}
    )
    back = came(answer.headers["location"])
    assert back.address == f"{ISSUER}/sign-out"
    assert back.fields == {
        "client_id": "books", "post_logout_redirect_uri": BYE, "state": "s"
    }  # fmt: skip
    assert await is_signed_in(bank, cookie)
    assert not await books.is_good(tokens["access_token"])


async def test_other_sessions_go_on(books):
    kept = await books.tokens()
    books.session_id = books.person.member_id
    ended = await books.tokens()
    await books.http.post(LOGOUT, data={"id_token_hint": ended["id_token"]})
    assert await books.is_good(kept["access_token"])
    assert not await books.is_good(ended["access_token"])


async def test_without_a_hint_the_person_is_asked(books):
    tokens = await books.tokens()
    answer = await books.http.get(LOGOUT, params={"client_id": "books"})
    assert answer.headers["location"] == f"{ISSUER}/sign-out"
    assert await books.is_good(tokens["access_token"])


@pytest.mark.parametrize(
    "target",
    ["https://evil.example", "//evil.example", "\\\\evil.example", "https:evil.example",
     "https://books.example/bye/", "https://books.example/bye?x=1"],
)  # fmt: skip
async def test_nobody_is_sent_to_an_address_that_is_not_registered(books, target):
    tokens = await books.tokens()
    answer = await books.http.get(
        LOGOUT,
        params={"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": target},
    )
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert await books.is_good(tokens["access_token"])


async def test_a_session_is_not_ended_by_a_token_that_another_signed(bank, books):
    cookie, session_id = await signed_in(bank, books.person)
    claims = {
        "iss": ISSUER, "aud": "books", "sub": str(books.person.user_id), "sid": str(session_id)
    }  # fmt: skip
    forged = KEYS["PS256"].sign(claims)
    assert (await books.http.get(LOGOUT, params={"id_token_hint": forged})).status_code == 400
    assert await is_signed_in(bank, cookie)


@pytest.mark.parametrize("hint", ["no JWT", "e30.e30.", "e30.e30.AAAA"])
async def test_a_hint_that_is_not_ours_is_refused(books, hint):
    answer = await books.http.get(LOGOUT, params={"id_token_hint": hint})
    assert answer.status_code == 400


async def test_a_hint_is_the_clients_own(books):
    tokens = await books.tokens()
    sent = {"id_token_hint": tokens["id_token"], "client_id": "other"}
    assert (await books.http.get(LOGOUT, params=sent)).status_code == 400
    assert await books.is_good(tokens["access_token"])
