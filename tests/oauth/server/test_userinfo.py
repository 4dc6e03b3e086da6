"""The user info endpoint, and every way to present a token that is refused."""

import pytest

USER = "/api/v1/user"


@pytest.fixture
async def token(books_client):
    return (await books_client.tokens(scope="openid profile email"))["access_token"]


def refused(answer, error, code="unauthorized", scheme="DPoP"):
    """Check that a response is 401 with a challenge."""
    assert answer.status_code == 401, answer.text
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith(scheme + " ")
    assert (f'error="{error}"' in challenge) if error else ("error=" not in challenge)
    assert answer.json()["code"] == code


async def test_userinfo_returns_only_the_granted_claims(books_client, token, oauth_user):
    told = (await books_client.userinfo(token)).json()
    assert told["sub"] == str(oauth_user.user_id)
    assert (told["name"], told["member_id"]) == ("Anna Lind", str(oauth_user.member_id))
    assert told["email_verified"] is True
    assert "phone_number" not in told
    slash = await books_client.userinfo(token, path=USER + "/")
    assert slash.json() == told


async def test_the_authorization_scheme_is_case_insensitive(books_client, token):
    for scheme in ("DPoP", "dpop", "DPOP"):
        assert (await books_client.userinfo(token, scheme=scheme)).status_code == 200


async def test_a_bearer_token_with_a_dpop_proof_is_refused(ledger_client):
    token = (await ledger_client.tokens(dpop=None))["access_token"]
    refused(await ledger_client.userinfo(token), "invalid_token", scheme="Bearer")


async def test_a_token_in_a_form_body_is_not_accepted(books_client, token):
    refused(await books_client.http.post(USER, data={"access_token": token}), None)


async def test_userinfo_without_the_openid_scope_is_refused(books_client):
    token = (await books_client.tokens(scope="pockets.read"))["access_token"]
    answer = await books_client.userinfo(token)
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert 'scope="openid"' in answer.headers["www-authenticate"]
