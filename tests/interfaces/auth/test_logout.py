"""Signing out at a client's wish."""

import pytest
from tests.interfaces.auth.relying import ISSUER, came

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


@pytest.mark.parametrize("hint", ["no JWT", "e30.e30.", "e30.e30.AAAA"])
async def test_a_hint_that_is_not_ours_is_refused(books, hint):
    answer = await books.http.get(LOGOUT, params={"id_token_hint": hint})
    assert answer.status_code == 400


async def test_a_hint_is_the_clients_own(books):
    tokens = await books.tokens()
    sent = {"id_token_hint": tokens["id_token"], "client_id": "other"}
    assert (await books.http.get(LOGOUT, params=sent)).status_code == 400
    assert await books.is_good(tokens["access_token"])
