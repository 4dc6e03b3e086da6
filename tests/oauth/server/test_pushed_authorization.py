"""Pushed authorization requests."""

from typing import Any

import httpx
from tests.support.oauth import PAR, new_key, refused

WRONG: list[Any] = [
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"code_challenge": "x" * 44}, "invalid_request"),
    ({"redirect_uri": None}, "invalid_request"),
    ({"redirect_uri": "https://books.example/callback/"}, "invalid_request"),
    ({"response_type": None}, "invalid_request"),
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": "id_token"}, "unsupported_response_type"),
    ({"response_type": "code id_token"}, "unsupported_response_type"),
    ({"response_mode": "fragment"}, "invalid_request"),
    ({"response_mode": "web_message"}, "invalid_request"),
    ({"scope": "pockets.read everything"}, "invalid_scope"),
    ({"scope": "transfers.write"}, "invalid_scope"),
    ({"request": "e30.e30."}, "request_not_supported"),
    ({"request_uri": "https://books.example/request"}, "request_uri_not_supported"),
    ({"request_uri": "urn:ietf:params:oauth:request_uri:x"}, "request_uri_not_supported"),
    ({"prompt": "none"}, "interaction_required"),
    ({"prompt": "dance"}, "invalid_request"),
    ({"max_age": "-1"}, "invalid_request"),
    ({"max_age": "soon"}, "invalid_request"),
    ({"max_age": "9" * 5_000}, "invalid_request"),
    ({"state": "x" * 2001}, "invalid_request"),
    ({"nonce": "x" * 256}, "invalid_request"),
    ({"state": "nul\x00"}, "invalid_request"),
    ({"dpop_jkt": "short"}, "invalid_request"),
]


async def requests_kept(bank):
    """Return how many requests are kept."""
    return await bank.pool.fetchval("SELECT count(*) FROM oauth_authorization_request")


async def test_an_invalid_pushed_authorization_request_is_refused(books_client, bank):
    for changed, error in WRONG:
        refused(await books_client.push(**changed), error)
        assert await requests_kept(bank) == 0


async def test_a_pushed_request_uri_is_short_lived_and_not_stored_in_plain_text(books_client, bank):
    answer = await books_client.push()
    assert answer.status_code == 201
    assert answer.json()["request_uri"].startswith("urn:ietf:params:oauth:request_uri:")
    assert 60 <= answer.json()["expires_in"] <= 300
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["request_uri"] not in str(
        [dict(row) for row in await bank.pool.fetch("SELECT * FROM oauth_authorization_request")]
    )


async def test_a_pushed_request_without_a_scope_asks_for_all_scopes_of_the_client(books_client, bank):
    await books_client.pushed(scope=None)
    scopes = await bank.pool.fetchval("SELECT scopes FROM oauth_authorization_request")
    assert scopes == ["openid", "profile", "email", "pockets.read", "pockets.write"]


async def test_a_repeated_pushed_parameter_is_refused(books_client, bank):
    form = books_client.authenticated(books_client.asked())
    for name in ["scope", "client_id", "redirect_uri", "client_assertion"]:
        doubled = httpx.QueryParams([*form.items(), (name, form[name])])
        answer = await books_client.http.post(
            PAR, content=str(doubled), headers={"content-type": "application/x-www-form-urlencoded"}
        )
        refused(answer, "invalid_request")
        assert await requests_kept(bank) == 0


async def test_a_pushed_request_that_is_not_a_form_is_refused(books_client):
    answer = await books_client.http.post(PAR, json=books_client.authenticated(books_client.asked()))
    refused(answer, "invalid_request")


async def test_a_pushed_request_with_a_method_other_than_post_is_refused(books_client):
    for method in ["GET", "PUT", "DELETE", "PATCH"]:
        answer = await books_client.http.request(method, PAR)
        assert answer.status_code == 405
        assert "POST" in answer.headers["allow"]


async def test_an_oversized_pushed_request_is_refused(books_client, bank):
    answer = await books_client.post(PAR, books_client.authenticated(books_client.asked(), x="y" * 1_100_000))
    assert answer.status_code == 413
    assert await requests_kept(bank) == 0


async def test_a_pushed_request_authenticates_the_client_before_validating_parameters(books_client):
    refused(await books_client.push(proving={"client_assertion": None}, redirect_uri=None), "invalid_client", 401)


async def test_a_dpop_proof_at_the_pushed_request_binds_the_code_to_its_key(books_client):
    bound = await books_client.code(dpop=books_client.proof_for(PAR))
    rightful, books_client.proof_key = books_client.proof_key, new_key()
    refused(await books_client.exchange(bound), "invalid_grant")
    books_client.proof_key = rightful
    assert (await books_client.exchange(bound)).status_code == 200


async def test_a_dpop_jkt_that_differs_from_the_proof_key_is_refused(books_client, bank):
    other = new_key().thumbprint
    refused(await books_client.push(dpop=books_client.proof_for(PAR), dpop_jkt=other), "invalid_dpop_proof")
    assert await requests_kept(bank) == 0
    same = await books_client.push(dpop=books_client.proof_for(PAR), dpop_jkt=books_client.proof_key.thumbprint)
    assert same.status_code == 201
