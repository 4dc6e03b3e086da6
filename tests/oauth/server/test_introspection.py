"""A client asks about its own tokens, and ends them."""

import pytest
from tests.support.databases import as_owner
from tests.support.oauth import refused

INTROSPECT, REVOKE = "/api/oauth2/introspect", "/api/oauth2/revoke"


async def introspect(client, token):
    answer = await client.post(INTROSPECT, client.authenticated({"token": token}))
    assert answer.status_code == 200
    return answer.json()


async def end(client, token):
    answer = await client.post(REVOKE, client.authenticated({"token": token}))
    assert answer.status_code == 200


async def test_introspection_returns_the_claims_of_an_active_token(books_client, oauth_user):
    tokens = await books_client.tokens()
    found = await introspect(books_client, tokens["access_token"])
    assert found["active"] is True
    assert found["exp"] - found["iat"] == 900
    assert found["cnf"] == {"jkt": books_client.proof_key.thumbprint}
    assert (found["scope"], found["sub"]) == ("openid pockets.read", str(oauth_user.user_id))
    assert (found["client_id"], found["token_type"]) == ("books", "DPoP")
    assert (await introspect(books_client, tokens["refresh_token"]))["active"] is True


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
async def test_a_foreign_token_cannot_be_introspected_or_revoked(books_client, relying, which):
    tokens = await books_client.tokens()
    other = await relying("other", requires_nonce=False)
    assert await introspect(other, tokens[which]) == {"active": False}
    await end(other, tokens[which])
    assert (await introspect(books_client, tokens[which]))["active"] is True
    assert await introspect(books_client, "no token of ours") == {"active": False}


async def test_introspection_and_revocation_require_client_authentication(books_client):
    tokens = await books_client.tokens()
    for path in (INTROSPECT, REVOKE):
        answer = await books_client.post(path, {"token": tokens["access_token"], "client_id": "books"})
        refused(answer, "invalid_client", 401)
        refused(await books_client.post(path, books_client.authenticated({})), "invalid_request")
    assert await books_client.is_good(tokens["access_token"])


async def test_revoking_an_access_token_keeps_its_refresh_token(books_client):
    tokens = await books_client.tokens()
    await end(books_client, tokens["access_token"])
    assert not await books_client.is_good(tokens["access_token"])
    assert (await books_client.refresh(tokens["refresh_token"])).status_code == 200


async def test_revoking_a_refresh_token_revokes_its_access_tokens(books_client):
    tokens = await books_client.tokens()
    fresh = (await books_client.refresh(tokens["refresh_token"])).json()
    await end(books_client, tokens["refresh_token"])
    for each in (tokens, fresh):
        assert not await books_client.is_good(each["access_token"])
    refused(await books_client.refresh(tokens["refresh_token"]), "invalid_grant")


async def test_introspection_of_a_replaced_refresh_token_is_inactive(ledger_client):
    tokens = await ledger_client.tokens(dpop=None)
    await ledger_client.refresh(tokens["refresh_token"], dpop=None)
    assert await introspect(ledger_client, tokens["refresh_token"]) == {"active": False}


async def test_introspection_of_an_expired_token_is_inactive(books_client, bank):
    tokens = await books_client.tokens()
    await as_owner(bank, "UPDATE access_token SET expires_at = now(), issued_at = now() - interval '900 s'")
    assert await introspect(books_client, tokens["access_token"]) == {"active": False}
    await bank.pool.execute("UPDATE membership SET status = 'DEACTIVATED'")
    assert await introspect(books_client, tokens["refresh_token"]) == {"active": False}
