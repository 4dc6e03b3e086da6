"""The user info endpoint, and every way to present a token that is refused."""

import pytest
from tests.support.databases import as_owner
from tests.support.oauth import ISSUER, hash_of, new_key, proof

from billfold.oauth import grants
from billfold.platform.clock import wall_now

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


async def test_userinfo_with_a_bound_token_and_no_proof_by_its_key_is_refused(books_client, token):
    refused(await books_client.userinfo(token, scheme="Bearer", dpop=None), "invalid_token")
    refused(await books_client.userinfo(token, scheme="Bearer"), "invalid_token")
    refused(await books_client.userinfo(token, dpop=None), "invalid_token")
    books_client.proof_key = new_key()
    refused(await books_client.userinfo(token), "invalid_token")


async def test_userinfo_with_an_invalid_dpop_proof_is_refused(books_client, token):
    for changed in [{"ath": hash_of("another")}, {"htm": "POST"}, {"htu": "https://evil.example" + USER}]:
        sent = proof("GET", ISSUER + USER, token=token, **changed)
        refused(await books_client.userinfo(token, dpop=sent), "invalid_dpop_proof", "invalid-dpop-proof")


async def test_a_dpop_proof_at_userinfo_is_accepted_once(books_client, token):
    sent = proof("GET", ISSUER + USER, token=token)
    assert (await books_client.userinfo(token, dpop=sent)).status_code == 200
    refused(await books_client.userinfo(token, dpop=sent), "invalid_dpop_proof", "invalid-dpop-proof")


async def test_userinfo_challenges_a_strict_client_with_a_nonce(relying):
    strict = await relying("strict")
    token = await grants.issue_access(
        strict.bank.pool,
        client_id="strict",
        customer_id=strict.person.customer_id,
        user_id=strict.person.user_id,
        scopes=("openid",),
        now=wall_now(),
        jkt=strict.proof_key.thumbprint,
    )
    first = await strict.userinfo(token)
    refused(first, "use_dpop_nonce", "invalid-dpop-proof")
    sent = proof("GET", ISSUER + USER, token=token, nonce=first.headers["dpop-nonce"])
    assert (await strict.userinfo(token, dpop=sent)).status_code == 200


async def test_a_bearer_token_with_a_dpop_proof_is_refused(ledger_client):
    token = (await ledger_client.tokens(dpop=None))["access_token"]
    refused(await ledger_client.userinfo(token), "invalid_token", scheme="Bearer")


async def test_userinfo_answers_a_missing_token_like_a_wrong_one(books_client, token, bank):
    refused(await books_client.http.get(USER), None)
    refused(await books_client.userinfo("no token of ours"), "invalid_token")
    refused(await books_client.http.get(USER, headers={"authorization": "Basic YTpi"}), "invalid_token")
    await as_owner(
        bank,
        "UPDATE access_token SET issued_at = issued_at - interval '901 s', expires_at = expires_at - interval '901 s'",
    )
    refused(await books_client.userinfo(token), "invalid_token")


@pytest.mark.parametrize("query", ["access_token={}", "a=b&access%5Ftoken={}"])
async def test_a_token_in_the_userinfo_query_is_refused_and_never_logged(books_client, token, query, capfd):
    answer = await books_client.http.get(f"{USER}?{query.format(token)}")
    assert answer.status_code == 400
    sent = proof("GET", ISSUER + USER, token=token)
    both = {"authorization": f"DPoP {token}", "dpop": sent}
    answer = await books_client.http.get(f"{USER}?{query.format(token)}", headers=both)
    assert answer.status_code == 400
    told = capfd.readouterr()
    assert token not in told.out + told.err + answer.text


async def test_a_token_in_a_form_body_is_not_accepted(books_client, token):
    refused(await books_client.http.post(USER, data={"access_token": token}), None)


async def test_userinfo_without_the_openid_scope_is_refused(books_client):
    token = (await books_client.tokens(scope="pockets.read"))["access_token"]
    answer = await books_client.userinfo(token)
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert 'scope="openid"' in answer.headers["www-authenticate"]
