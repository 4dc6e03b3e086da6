"""A client asks about its own tokens, and ends them."""

import pytest
from tests.support.databases import as_owner
from tests.support.oauth import refused

INTROSPECT, REVOKE = "/api/oauth2/introspect", "/api/oauth2/revoke"


async def told(client, token):
    answer = await client.post(INTROSPECT, client.authenticated({"token": token}))
    assert answer.status_code == 200
    return answer.json()


async def end(client, token):
    answer = await client.post(REVOKE, client.authenticated({"token": token}))
    assert answer.status_code == 200


async def test_introspection_returns_what_a_token_stands_for(books_client, oauth_user):
    tokens = await books_client.tokens()
    found = await told(books_client, tokens["access_token"])
    assert found["active"] is True
    assert found["exp"] - found["iat"] == 900
    assert found["cnf"] == {"jkt": books_client.proof_key.thumbprint}
    assert (found["scope"], found["sub"]) == ("openid pockets.read", str(oauth_user.user_id))
    assert (found["client_id"], found["token_type"]) == ("books", "DPoP")
    assert (await told(books_client, tokens["refresh_token"]))["active"] is True


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
async def test_another_clients_token_is_neither_introspected_nor_revoked(books_client, relying, which):
    tokens = await books_client.tokens()
    other = await relying("other", requires_nonce=False)
    assert await told(other, tokens[which]) == {"active": False}
    await end(other, tokens[which])
    assert (await told(books_client, tokens[which]))["active"] is True
    assert await told(books_client, "no token of ours") == {"active": False}


async def test_only_a_client_that_has_proven_itself_may_ask(books_client):
    tokens = await books_client.tokens()
    for path in (INTROSPECT, REVOKE):
        answer = await books_client.post(path, {"token": tokens["access_token"], "client_id": "books"})
        refused(answer, "invalid_client", 401)
        refused(await books_client.post(path, books_client.authenticated({})), "invalid_request")
    assert await books_client.is_good(tokens["access_token"])


async def test_an_access_token_ends_alone(books_client):
    tokens = await books_client.tokens()
    await end(books_client, tokens["access_token"])
    assert not await books_client.is_good(tokens["access_token"])
    assert (await books_client.refresh(tokens["refresh_token"])).status_code == 200


async def test_a_refresh_token_ends_with_all_that_came_of_it(books_client):
    tokens = await books_client.tokens()
    fresh = (await books_client.refresh(tokens["refresh_token"])).json()
    await end(books_client, tokens["refresh_token"])
    for each in (tokens, fresh):
        assert not await books_client.is_good(each["access_token"])
    refused(await books_client.refresh(tokens["refresh_token"]), "invalid_grant")


async def test_a_refresh_token_that_was_replaced_is_not_active(ledger_client):
    tokens = await ledger_client.tokens(dpop=None)
    await ledger_client.refresh(tokens["refresh_token"], dpop=None)
    assert await told(ledger_client, tokens["refresh_token"]) == {"active": False}


async def test_what_has_expired_is_not_active(books_client, bank):
    tokens = await books_client.tokens()
    await as_owner(bank, "UPDATE access_token SET expires_at = now(), issued_at = now() - interval '900 s'")
    assert await told(books_client, tokens["access_token"]) == {"active": False}
    await bank.pool.execute("UPDATE membership SET status = 'DEACTIVATED'")
    assert await told(books_client, tokens["refresh_token"]) == {"active": False}
