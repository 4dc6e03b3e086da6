"""The modules of the FAPI 2.0 security profile's conformance suite, one test for each.

A test bears the name of its module; what several modules try alike is tried by one line each.
"""

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest
from tests.support.oauth_clients import REDIRECT, hash_of, new_key, proof
from tests.support.relying_party import AUTHORIZE, ISSUER, PAR, TOKEN, refused

from billfold.access.oauth import consent
from billfold.platform.clock import wall_now

USER = ISSUER + "/api/v1/user"


async def test_happy_flow(books_client):
    back = await books_client.approved(scope="openid profile")
    assert back.address == REDIRECT
    assert (back.fields["state"], back.fields["iss"]) == ("a state", ISSUER)
    tokens = (await books_client.exchange(back.fields["code"])).json()
    assert await books_client.is_good(tokens["access_token"])


async def test_discovery_endpoint_verification(books_client):
    told = (await books_client.http.get("/.well-known/openid-configuration")).json()
    weak = {"RS256", "HS256", "none"}
    assert not weak & set(told["token_endpoint_auth_signing_alg_values_supported"])
    assert not weak & set(told["dpop_signing_alg_values_supported"])
    assert told["pushed_authorization_request_endpoint"] == ISSUER + PAR
    assert told["code_challenge_methods_supported"] == ["S256"]


NEGATIVE: dict[str, dict[str, Any]] = {
    "no typ": {"header": {"typ": None}},
    "typ": {"header": {"typ": "JWT"}},
    "no alg": {"header": {"alg": None}},
    "alg none": {"header": {"alg": "none"}},
    "alg HS256": {"header": {"alg": "HS256"}},
    "alg RS256": {"header": {"alg": "RS256"}},
    "no jwk": {"header": {"jwk": None}},
    "jwk of another": {"header": {"jwk": new_key().jwk}},
    "jwk is text": {"header": {"jwk": "key"}},
    "jwk is empty": {"header": {"jwk": {}}},
    "symmetric jwk": {"header": {"jwk": {"kty": "oct", "k": "c2VjcmV0"}}},
    "private jwk": {"header": {"jwk": {**new_key().jwk, "d": "AAAA"}}},
    "crit": {"header": {"crit": ["exp"]}},
    "no jti": {"jti": None},
    "jti is number": {"jti": 7},
    "jti is empty": {"jti": ""},
    "no htm": {"htm": None},
    "htm": {"htm": "PUT"},
    "htm in lower case": {"htm": "get"},
    "no htu": {"htu": None},
    "htu": {"htu": ISSUER + "/other"},
    "htu host": {"htu": "https://a.b"},
    "htu http": {"htu": USER.replace("https", "http")},
    "htu is number": {"htu": 7},
    "no iat": {"iat": None},
    "iat is text": {"iat": "now"},
    "iat is bool": {"iat": True},
    "iat long ago": {"iat": 1},
    "iat far ahead": {"iat": int(time.time()) + 7200},
    "no ath": {"ath": None},
    "ath of another": {"ath": hash_of("another")},
    "ath is hex": {"ath": "0" * 64},
    "nonce is made up": {"nonce": "made up"},
}


async def test_dpop_negative_tests(books_client):
    token = (await books_client.tokens())["access_token"]
    for name, changed in NEGATIVE.items():
        sent = proof("GET", USER, token=token, **changed)
        answer = await books_client.userinfo(token, dpop=sent)
        assert answer.status_code == 401, name
        assert answer.headers["www-authenticate"].startswith("DPoP"), name
    assert await books_client.is_good(token)


@pytest.mark.parametrize("seconds", [-10, 10])
async def test_ensure_dpop_proof_with_iat_10_seconds_off_succeeds(books_client, seconds):
    code = await books_client.code()
    sent = books_client.proof_for(TOKEN, iat=int(time.time()) + seconds)
    assert (await books_client.exchange(code, dpop=sent)).status_code == 200


async def test_check_dpop_proof_nbf_exp(books_client):
    code, now = await books_client.code(), int(time.time())
    for changed in ({"exp": now - 60}, {"nbf": now + 60}):
        sent = books_client.proof_for(TOKEN, **changed)
        refused(await books_client.exchange(code, dpop=sent), "invalid_dpop_proof")
    sent = books_client.proof_for(TOKEN, exp=now + 60, nbf=now - 60)
    assert (await books_client.exchange(code, dpop=sent)).status_code == 200


async def test_ensure_dpop_auth_code_binding_success(books_client):
    tokens = await books_client.tokens(dpop_jkt=books_client.proof_key.thumbprint)
    assert await books_client.is_good(tokens["access_token"])


async def test_ensure_dpop_proof_at_par_endpoint_binding_success(books_client):
    code = await books_client.code(dpop=books_client.proof_for(PAR))
    assert (await books_client.exchange(code)).status_code == 200


async def test_ensure_mismatched_dpop_jkt_fails(books_client):
    answer = await books_client.push(dpop=books_client.proof_for(PAR), dpop_jkt=new_key().thumbprint)
    refused(answer, "invalid_dpop_proof")


async def test_ensure_token_endpoint_fails_with_mismatched_dpop_jkt(books_client, bank):
    code = await books_client.code(dpop_jkt=new_key().thumbprint)
    refused(await books_client.exchange(code), "invalid_grant")
    assert await bank.pool.fetchval("SELECT count(*) FROM access_token") == 0


async def test_ensure_token_endpoint_fails_with_mismatched_dpop_proof_jkt(books_client, bank):
    code = await books_client.code(dpop=books_client.proof_for(PAR))
    books_client.proof_key = new_key()
    refused(await books_client.exchange(code), "invalid_grant")
    assert await bank.pool.fetchval("SELECT count(*) FROM access_token") == 0


async def test_ensure_holder_of_key_required(books_client):
    refused(await books_client.exchange(await books_client.code(), dpop=None), "invalid_dpop_proof")


async def test_access_token_type_header_case_sensitivity(books_client):
    token = (await books_client.tokens())["access_token"]
    for scheme in ("DPoP", "dpop", "DPOP", "dPoP"):
        assert await books_client.is_good(token, scheme=scheme)


async def test_attempt_reuse_authorization_code_after_one_second(books_client):
    code = await books_client.code()
    token = (await books_client.exchange(code)).json()["access_token"]
    await asyncio.sleep(1)
    refused(await books_client.exchange(code), "invalid_grant")
    assert not await books_client.is_good(token)


async def test_attempt_to_use_expired_auth_code(books_client, bank):
    code = await books_client.code()
    await bank.pool.execute("UPDATE authorization_code SET expires_at = now()")
    refused(await books_client.exchange(code), "invalid_grant")


async def test_ensure_authorization_code_is_bound_to_client(books_client, relying):
    second = await relying("second", requires_nonce=False)
    second.verifier = books_client.verifier
    refused(await second.exchange(await books_client.code()), "invalid_grant")


async def test_ensure_client_id_in_token_endpoint(books_client):
    code = await books_client.code()
    answer = await books_client.exchange(code, proving={"client_id": "second"})
    refused(answer, "invalid_client", 401)


async def test_ensure_client_assertion_in_token_endpoint(books_client):
    code = await books_client.code()
    answer = await books_client.exchange(code, proving={"client_assertion": None})
    refused(answer, "invalid_client", 401)


async def asserted(books_client, **changed):
    code = await books_client.code()
    proving = {"client_assertion": books_client.assertion(**changed)}
    refused(await books_client.exchange(code, proving=proving), "invalid_client", 401)


async def test_ensure_client_assertion_with_exp_is_5_minutes_in_past_fails(books_client):
    await asserted(books_client, exp=int(time.time()) - 300)


async def test_ensure_client_assertion_with_no_sub_fails(books_client):
    await asserted(books_client, sub=None)


async def test_ensure_client_assertion_with_wrong_aud_fails(books_client):
    await asserted(books_client, aud="https://other.example")


async def test_par_endpoint_as_audience_fails(books_client):
    await asserted(books_client, aud=ISSUER + PAR)


async def test_as_array_audience_fails(books_client):
    await asserted(books_client, aud=[ISSUER])


async def test_token_endpoint_as_audience_fails(books_client):
    await asserted(books_client, aud=ISSUER + TOKEN)


async def test_par_ensure_pkce_required(books_client):
    refused(await books_client.push(code_challenge=None, code_challenge_method=None), "invalid_request")


async def test_ensure_pkce_code_verifier_required(books_client):
    refused(await books_client.exchange(await books_client.code(), code_verifier=None), "invalid_grant")


async def test_par_plain_pkce_rejected(books_client):
    plain = {"code_challenge": books_client.verifier, "code_challenge_method": "plain"}
    refused(await books_client.push(**plain), "invalid_request")


async def test_incorrect_pkce_code_verifier_rejected(books_client):
    refused(await books_client.exchange(await books_client.code(), code_verifier="x" * 43), "invalid_grant")


async def test_par_attempt_reuse_request_uri(books_client):
    uri = await books_client.pushed()
    first = await books_client.browse(request_uri=uri)
    await books_client.approved(request_of(first))
    again = await books_client.browse(request_uri=uri)
    assert again.status_code == 400
    assert "location" not in again.headers


async def test_par_attempt_to_use_expired_request_uri(books_client, bank):
    uri = await books_client.pushed()
    await bank.pool.execute("UPDATE oauth_authorization_request SET uri_expires_at = now()")
    assert (await books_client.browse(request_uri=uri)).status_code == 400


async def test_ensure_server_accepts_reused_request_uri_before_authentication_completion(books_client):
    uri = await books_client.pushed()
    seen = [request_of(await books_client.browse(request_uri=uri)) for _ in range(3)]
    assert len(set(seen)) == 1
    assert (await books_client.approved(seen[0])).fields["code"]


async def test_par_reject_invalid_http_verb(books_client):
    for method in ("GET", "PUT", "DELETE"):
        assert (await books_client.http.request(method, PAR)).status_code == 405


async def test_par_reject_request_uri_in_par_authorization_form_params(books_client):
    uri = await books_client.pushed()
    refused(await books_client.push(request_uri=uri), "request_uri_not_supported")


async def test_par_without_duplicate_parameters(books_client):
    """Parameters are in the pushed request alone; beside its reference nothing else is read."""
    uri = await books_client.pushed(state="pushed")
    answer = await books_client.browse(request_uri=uri)
    assert (await books_client.approved(request_of(answer))).fields["state"] == "pushed"
    other = await books_client.browse(request_uri=await books_client.pushed(state="pushed"), state="other")
    assert (await books_client.approved(request_of(other))).fields["state"] == "pushed"


async def test_ensure_unsigned_authorization_request_without_using_par_fails(books_client):
    answer = await books_client.http.get(AUTHORIZE, params=books_client.asked())
    assert "error=invalid_request" in answer.headers["location"]
    assert "code=" not in answer.headers["location"]


async def test_ensure_redirect_uri_in_authorization_request(books_client):
    refused(await books_client.push(redirect_uri=None), "invalid_request")


async def test_ensure_registered_redirect_uri(books_client):
    refused(await books_client.push(redirect_uri=REDIRECT + "/unregistered"), "invalid_request")


@pytest.mark.parametrize("wanted", ["code id_token", "token", "code token"])
async def test_ensure_response_type_code_id_token_and_token_fail(books_client, wanted):
    refused(await books_client.push(response_type=wanted), "unsupported_response_type")


async def test_ensure_other_scope_order_succeeds(books_client):
    tokens = await books_client.tokens(scope="pockets.read openid")
    assert set(tokens["scope"].split()) == {"openid", "pockets.read"}


@pytest.mark.parametrize(
    "changed",
    [{"nonce": None}, {"state": None}, {"state": "x" * 1000}, {"nonce": "n" * 64}],
    ids=["without nonce", "without state", "long state", "nonce of 64"],
)
async def test_ensure_authorization_request_with_and_without_state_and_nonce(books_client, changed):
    back = await books_client.approved(**changed)
    assert back.fields.get("state") == changed.get("state", "a state")
    assert (await books_client.exchange(back.fields["code"])).status_code == 200


async def test_refresh_token(books_client, relying):
    tokens = await books_client.tokens()
    fresh = (await books_client.refresh(tokens["refresh_token"])).json()
    assert await books_client.is_good(fresh["access_token"])
    second = await relying("second", requires_nonce=False)
    refused(await second.refresh(tokens["refresh_token"]), "invalid_grant")


async def test_user_rejects_authentication(books_client, bank):
    request_id = await books_client.waiting()
    async with bank.pool.acquire() as conn:
        address = await consent.deny(conn, request_id, issuer=ISSUER, now=wall_now())
    assert address.startswith(REDIRECT + "?error=access_denied")
    assert "iss=https%3A%2F%2Fauth.localhost%3A8443" in address
    assert "state=a+state" in address
    assert await bank.pool.fetchval("SELECT count(*) FROM authorization_code") == 0


def request_of(answer):
    """Return the id of the request that a browser was sent on with."""
    assert answer.status_code == 303, answer.text
    return UUID(answer.headers["location"].rpartition("=")[2])
