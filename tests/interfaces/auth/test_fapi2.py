"""The modules of the FAPI 2.0 security profile's conformance suite, one test for each.

A test bears the name of its module; what several modules try alike is tried by one line each.
"""

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest
from tests.domain.oauth.programs import REDIRECT, hash_of, new_key, proof
from tests.interfaces.auth.relying import AUTHORIZE, ISSUER, PAR, TOKEN, refused

from billfold.domain import oauth
from billfold.kit.clock import wall_now

USER = ISSUER + "/api/v1/user"


async def test_happy_flow(books):
    back = await books.approved(scope="openid profile")
    assert back.address == REDIRECT
    assert (back.fields["state"], back.fields["iss"]) == ("a state", ISSUER)
    tokens = (await books.exchange(back.fields["code"])).json()
    assert await books.is_good(tokens["access_token"])


async def test_discovery_endpoint_verification(books):
    told = (await books.http.get("/.well-known/openid-configuration")).json()
    weak = {"RS256", "HS256", "none"}
    assert not weak & set(told["token_endpoint_auth_signing_alg_values_supported"])
    assert not weak & set(told["dpop_signing_alg_values_supported"])
    assert told["pushed_authorization_request_endpoint"] == ISSUER + PAR
    assert told["code_challenge_methods_supported"] == ["S256"]


NEGATIVE: dict[str, dict[str, Any]] = {
    "no typ": {"header": {"typ": None}}, "typ": {"header": {"typ": "JWT"}},
    "no alg": {"header": {"alg": None}}, "alg none": {"header": {"alg": "none"}},
    "alg HS256": {"header": {"alg": "HS256"}}, "alg RS256": {"header": {"alg": "RS256"}},
    "no jwk": {"header": {"jwk": None}}, "jwk of another": {"header": {"jwk": new_key().jwk}},
    "jwk is text": {"header": {"jwk": "key"}}, "jwk is empty": {"header": {"jwk": {}}},
    "symmetric jwk": {"header": {"jwk": {"kty": "oct", "k": "c2VjcmV0"}}},
    "private jwk": {"header": {"jwk": {**new_key().jwk, "d": "AAAA"}}},
    "crit": {"header": {"crit": ["exp"]}},
    "no jti": {"jti": None}, "jti is number": {"jti": 7}, "jti is empty": {"jti": ""},
    "no htm": {"htm": None}, "htm": {"htm": "PUT"}, "htm in lower case": {"htm": "get"},
    "no htu": {"htu": None}, "htu": {"htu": ISSUER + "/other"}, "htu host": {"htu": "https://a.b"},
    "htu http": {"htu": USER.replace("https", "http")}, "htu is number": {"htu": 7},
    "no iat": {"iat": None}, "iat is text": {"iat": "now"}, "iat is bool": {"iat": True},
    "iat long ago": {"iat": 1}, "iat far ahead": {"iat": int(time.time()) + 7200},
    "no ath": {"ath": None}, "ath of another": {"ath": hash_of("another")},
    "ath is hex": {"ath": "0" * 64}, "nonce is made up": {"nonce": "made up"},
}  # fmt: skip


async def test_dpop_negative_tests(books):
    token = (await books.tokens())["access_token"]
    for name, changed in NEGATIVE.items():
        sent = proof("GET", USER, token=token, **changed)
        answer = await books.userinfo(token, dpop=sent)
        assert answer.status_code == 401, name
        assert answer.headers["www-authenticate"].startswith("DPoP"), name
    assert await books.is_good(token)


@pytest.mark.parametrize("seconds", [-10, 10])
async def test_ensure_dpop_proof_with_iat_10_seconds_off_succeeds(books, seconds):
    code = await books.code()
    sent = books.proof_for(TOKEN, iat=int(time.time()) + seconds)
    assert (await books.exchange(code, dpop=sent)).status_code == 200


async def test_check_dpop_proof_nbf_exp(books):
    code, now = await books.code(), int(time.time())
    for changed in ({"exp": now - 60}, {"nbf": now + 60}):
        sent = books.proof_for(TOKEN, **changed)
        refused(await books.exchange(code, dpop=sent), "invalid_dpop_proof")
    sent = books.proof_for(TOKEN, exp=now + 60, nbf=now - 60)
    assert (await books.exchange(code, dpop=sent)).status_code == 200


async def test_ensure_dpop_auth_code_binding_success(books):
    tokens = await books.tokens(dpop_jkt=books.proof_key.thumbprint)
    assert await books.is_good(tokens["access_token"])


async def test_ensure_dpop_proof_at_par_endpoint_binding_success(books):
    code = await books.code(dpop=books.proof_for(PAR))
    assert (await books.exchange(code)).status_code == 200


async def test_ensure_mismatched_dpop_jkt_fails(books):
    answer = await books.push(dpop=books.proof_for(PAR), dpop_jkt=new_key().thumbprint)
    refused(answer, "invalid_dpop_proof")


async def test_ensure_token_endpoint_fails_with_mismatched_dpop_jkt(books, bank):
    code = await books.code(dpop_jkt=new_key().thumbprint)
    refused(await books.exchange(code), "invalid_grant")
    assert await bank.pool.fetchval("SELECT count(*) FROM access_token") == 0


async def test_ensure_token_endpoint_fails_with_mismatched_dpop_proof_jkt(books, bank):
    code = await books.code(dpop=books.proof_for(PAR))
    books.proof_key = new_key()
    refused(await books.exchange(code), "invalid_grant")
    assert await bank.pool.fetchval("SELECT count(*) FROM access_token") == 0


async def test_ensure_holder_of_key_required(books):
    refused(await books.exchange(await books.code(), dpop=None), "invalid_dpop_proof")


async def test_access_token_type_header_case_sensitivity(books):
    token = (await books.tokens())["access_token"]
    for scheme in ("DPoP", "dpop", "DPOP", "dPoP"):
        assert await books.is_good(token, scheme=scheme)


async def test_attempt_reuse_authorization_code_after_one_second(books):
    code = await books.code()
    token = (await books.exchange(code)).json()["access_token"]
    await asyncio.sleep(1)
    refused(await books.exchange(code), "invalid_grant")
    assert not await books.is_good(token)


async def test_attempt_to_use_expired_auth_code(books, bank):
    code = await books.code()
    await bank.pool.execute("UPDATE authorization_code SET expires_at = now()")
    refused(await books.exchange(code), "invalid_grant")


async def test_ensure_authorization_code_is_bound_to_client(books, relying):
    second = await relying("second", requires_nonce=False)
    second.verifier = books.verifier
    refused(await second.exchange(await books.code()), "invalid_grant")


async def test_ensure_client_id_in_token_endpoint(books):
    code = await books.code()
    answer = await books.exchange(code, proving={"client_id": "second"})
    refused(answer, "invalid_client", 401)


async def test_ensure_client_assertion_in_token_endpoint(books):
    code = await books.code()
    answer = await books.exchange(code, proving={"client_assertion": None})
    refused(answer, "invalid_client", 401)


async def asserted(books, **changed):
    code = await books.code()
    proving = {"client_assertion": books.assertion(**changed)}
    refused(await books.exchange(code, proving=proving), "invalid_client", 401)


async def test_ensure_client_assertion_with_exp_is_5_minutes_in_past_fails(books):
    await asserted(books, exp=int(time.time()) - 300)


async def test_ensure_client_assertion_with_no_sub_fails(books):
    await asserted(books, sub=None)


async def test_ensure_client_assertion_with_wrong_aud_fails(books):
    await asserted(books, aud="https://other.example")


async def test_par_endpoint_as_audience_fails(books):
    await asserted(books, aud=ISSUER + PAR)


async def test_as_array_audience_fails(books):
    await asserted(books, aud=[ISSUER])


async def test_token_endpoint_as_audience_fails(books):
    await asserted(books, aud=ISSUER + TOKEN)


async def test_par_ensure_pkce_required(books):
    refused(await books.push(code_challenge=None, code_challenge_method=None), "invalid_request")


async def test_ensure_pkce_code_verifier_required(books):
    refused(await books.exchange(await books.code(), code_verifier=None), "invalid_grant")


async def test_par_plain_pkce_rejected(books):
    plain = {"code_challenge": books.verifier, "code_challenge_method": "plain"}
    refused(await books.push(**plain), "invalid_request")


async def test_incorrect_pkce_code_verifier_rejected(books):
    refused(await books.exchange(await books.code(), code_verifier="x" * 43), "invalid_grant")


async def test_par_attempt_reuse_request_uri(books):
    uri = await books.pushed()
    first = await books.browse(request_uri=uri)
    await books.approved(request_of(first))
    again = await books.browse(request_uri=uri)
    assert again.status_code == 400
    assert "location" not in again.headers


async def test_par_attempt_to_use_expired_request_uri(books, bank):
    uri = await books.pushed()
    await bank.pool.execute("UPDATE authorization_request SET uri_expires_at = now()")
    assert (await books.browse(request_uri=uri)).status_code == 400


async def test_ensure_server_accepts_reused_request_uri_before_authentication_completion(books):
    uri = await books.pushed()
    seen = [request_of(await books.browse(request_uri=uri)) for _ in range(3)]
    assert len(set(seen)) == 1
    assert (await books.approved(seen[0])).fields["code"]


async def test_par_reject_invalid_http_verb(books):
    for method in ("GET", "PUT", "DELETE"):
        assert (await books.http.request(method, PAR)).status_code == 405


async def test_par_reject_request_uri_in_par_authorization_form_params(books):
    uri = await books.pushed()
    refused(await books.push(request_uri=uri), "request_uri_not_supported")


async def test_par_without_duplicate_parameters(books):
    """Parameters are in the pushed request alone; beside its reference nothing else is read."""
    uri = await books.pushed(state="pushed")
    answer = await books.browse(request_uri=uri)
    assert (await books.approved(request_of(answer))).fields["state"] == "pushed"
    other = await books.browse(request_uri=await books.pushed(state="pushed"), state="other")
    assert (await books.approved(request_of(other))).fields["state"] == "pushed"


async def test_ensure_unsigned_authorization_request_without_using_par_fails(books):
    answer = await books.http.get(AUTHORIZE, params=books.asked())
    assert "error=invalid_request" in answer.headers["location"]
    assert "code=" not in answer.headers["location"]


async def test_ensure_redirect_uri_in_authorization_request(books):
    refused(await books.push(redirect_uri=None), "invalid_request")


async def test_ensure_registered_redirect_uri(books):
    refused(await books.push(redirect_uri=REDIRECT + "/unregistered"), "invalid_request")


@pytest.mark.parametrize("wanted", ["code id_token", "token", "code token"])
async def test_ensure_response_type_code_id_token_and_token_fail(books, wanted):
    refused(await books.push(response_type=wanted), "unsupported_response_type")


async def test_ensure_other_scope_order_succeeds(books):
    tokens = await books.tokens(scope="pockets.read openid")
    assert set(tokens["scope"].split()) == {"openid", "pockets.read"}


@pytest.mark.parametrize(
    "changed",
    [{"nonce": None}, {"state": None}, {"state": "x" * 1000}, {"nonce": "n" * 64}],
    ids=["without nonce", "without state", "long state", "nonce of 64"],
)
async def test_ensure_authorization_request_with_and_without_state_and_nonce(books, changed):
    back = await books.approved(**changed)
    assert back.fields.get("state") == changed.get("state", "a state")
    assert (await books.exchange(back.fields["code"])).status_code == 200


async def test_refresh_token(books, relying):
    tokens = await books.tokens()
    fresh = (await books.refresh(tokens["refresh_token"])).json()
    assert await books.is_good(fresh["access_token"])
    second = await relying("second", requires_nonce=False)
    refused(await second.refresh(tokens["refresh_token"]), "invalid_grant")


async def test_user_rejects_authentication(books, bank):
    request_id = await books.waiting()
    async with bank.pool.acquire() as conn:
        address = await oauth.deny(conn, request_id, issuer=ISSUER, now=wall_now())
    assert address.startswith(REDIRECT + "?error=access_denied")
    assert "iss=https%3A%2F%2Fauth.localhost%3A8443" in address
    assert "state=a+state" in address
    assert await bank.pool.fetchval("SELECT count(*) FROM authorization_code") == 0


def request_of(answer):
    """Return the id of the request that a browser was sent on with."""
    assert answer.status_code == 303, answer.text
    return UUID(answer.headers["location"].rpartition("=")[2])
