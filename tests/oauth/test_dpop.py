"""DPoP proofs: valid and invalid ones, and single use."""

import asyncio
import hashlib
import hmac
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support import oauth
from tests.support.oauth import KEYS, SPA, base64url, hash_of, new_key, raw_jwt

from billfold.oauth import dpop
from billfold.oauth.rules.public_keys import from_jwk
from billfold.oauth.types import OAuthError
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.pool import create_pool

URL = "https://api.localhost:8443/api/v2/pockets/"
NONCES = dpop.Nonces(Vault(bytes(range(32))))
NOW = int(time.time())
TOKEN = "an access token"


def proof(method, url, **changed):
    """Return a proof made at the instant at which `check` verifies it."""
    return oauth.proof(method, url, **({"iat": NOW} | changed))


def check(sent, **changed):
    fields: dict[str, Any] = {
        "method": "GET",
        "url": URL,
        "now": datetime.fromtimestamp(NOW, UTC),
        "nonces": NONCES,
        "token": None,
    } | changed
    return dpop.verify_proof(sent, **fields)


def wrong(sent, error="invalid_dpop_proof", **changed):
    with pytest.raises(OAuthError) as refused:
        check(sent, **changed)
    assert refused.value.error == error
    return refused.value.description


@pytest.mark.parametrize("algorithm", list(KEYS))
def test_a_dpop_proof_with_every_supported_key_type_is_accepted(algorithm):
    key = KEYS[algorithm]
    found = check(proof("GET", URL, key=key, token=TOKEN), token=TOKEN)
    assert found.jkt == key.thumbprint
    assert found.until - datetime.fromtimestamp(NOW, UTC) < timedelta(seconds=13)


def test_a_dpop_proof_accepts_both_algorithm_names_of_ed25519():
    key = KEYS["EdDSA"]
    assert check(proof("GET", URL, key=key, header={"alg": "Ed25519"}))
    wrong(proof("GET", URL, header={"alg": "Ed25519"}))
    wrong(proof("GET", URL, key=key, header={"alg": "ES256"}))


def test_a_jwk_thumbprint_matches_rfc_7638():
    jwk = {
        "kty": "RSA",
        "e": "AQAB",
        "alg": "RS256",
        "kid": "2011-04-29",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1"
        "L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4"
        "QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbO"
        "pbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csF"
        "Cur-kEgU8awapJzKnqDKgw",
    }
    assert from_jwk(jwk).thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


@pytest.mark.parametrize(
    "changed",
    [
        {"iat": NOW - 30},
        {"iat": NOW + 30},
        {"iat": True},
        {"iat": str(NOW)},
        {"iat": None},
        {"iat": 1e300},
        {"htm": "POST"},
        {"htm": "get"},
        {"htm": None},
        {"htu": None},
        {"htu": 7},
        {"htu": "/api/v2/pockets/"},
        {"jti": None},
        {"jti": ""},
        {"jti": 7},
        {"jti": "x" * 256},
        {"exp": NOW - 60},
        {"nbf": NOW + 60},
        {"nbf": True},
    ],
)
def test_a_dpop_proof_with_a_wrong_or_missing_claim_is_refused(changed):
    wrong(proof("GET", URL, **changed))


@pytest.mark.parametrize("seconds", [-10, -8, 0, 8, 10])
def test_a_dpop_iat_within_ten_seconds_is_accepted(seconds):
    assert check(proof("GET", URL, iat=NOW + seconds))
    assert check(proof("GET", URL, iat=NOW + 0.25 + seconds, exp=NOW + 60, nbf=NOW - 60))


@pytest.mark.parametrize(
    "htu",
    [
        "https://API.localhost:8443/api/v2/pockets/",
        "HTTPS://api.localhost:8443/api/v2/pockets/",
        URL + "?offset=30",
        URL + "#part",
    ],
)
def test_a_dpop_url_in_an_equivalent_spelling_is_accepted(htu):
    assert check(proof("GET", htu))


@pytest.mark.parametrize(
    "htu",
    [
        "http://api.localhost:8443/api/v2/pockets/",
        "https://api.localhost:9443/api/v2/pockets/",
        "https://api.localhost/api/v2/pockets/",
        "https://auth.localhost:8443/api/v2/pockets/",
        "https://api.localhost:8443/api/v2/pockets",
        "https://api.localhost:8443/api/v2/Pockets/",
        "https://api.localhost:8443/api/v2/%70ockets/",
        "https://api.localhost:8443/api/v2/x/../pockets/",
        "https://a@api.localhost:8443/api/v2/pockets/",
        " https://api.localhost:8443/api/v2/pockets/",
        "https://api.localhost:x/api/v2/pockets/",
    ],
)
def test_a_dpop_proof_for_a_different_url_is_refused(htu):
    wrong(proof("GET", htu))


def test_the_default_port_may_be_omitted_from_a_dpop_url():
    assert check(proof("GET", "https://a.example:443/x"), url="https://a.example/x")


@pytest.mark.parametrize("ath", [None, hash_of("another"), "0" * 64, hash_of(TOKEN) + "=", 7])
def test_a_dpop_proof_without_the_token_hash_is_refused(ath):
    wrong(proof("GET", URL, ath=ath), token=TOKEN)


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "JWT"},
        {"typ": "DPOP+JWT"},
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "RS256"},
        {"alg": None},
        {"jwk": None},
        {"jwk": "key"},
        {"jwk": {"kty": "oct", "k": "c2VjcmV0"}},
        {"crit": ["exp"]},
        {"b64": False},
        {"jwk": new_key().jwk},
        {"jwk": {**SPA.jwk, "d": "AAAA"}},
        {"jwk": {**SPA.jwk, "crv": "P-384"}},
        {"jwk": {**SPA.jwk, "x": SPA.jwk["x"] + "="}},
        {"jwk": {**SPA.jwk, "x": "AA"}},
        {"jwk": {**SPA.jwk, "y": SPA.jwk["x"]}},
        {"jwk": {**SPA.jwk, "kty": ["EC"]}},
    ],
)
def test_a_dpop_proof_with_a_malformed_header_is_refused(header):
    wrong(proof("GET", URL, header=header))


def test_a_dpop_proof_signed_by_hmac_with_the_public_key_is_refused():
    pem = SPA.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    sent = proof("GET", URL, header={"alg": "HS256"})
    signed = sent.rpartition(".")[0]
    digest = hmac.new(pem, signed.encode(), hashlib.sha256).digest()
    wrong(f"{signed}.{base64url(digest)}")


def test_a_dpop_proof_with_a_weak_key_is_refused():
    jwk = {"kty": "RSA", "e": "AQAB", "n": base64url(b"\xff" * 128)}
    assert "bits" in wrong(proof("GET", URL, header={"jwk": jwk}))


def test_a_dpop_proof_on_an_unsupported_curve_is_refused():
    other = ec.generate_private_key(ec.SECP384R1()).public_key().public_numbers()
    jwk = {"kty": "EC", "crv": "P-384", "x": base64url(other.x.to_bytes(48)), "y": base64url(other.y.to_bytes(48))}
    wrong(proof("GET", URL, header={"jwk": jwk, "alg": "ES384"}))


@pytest.mark.parametrize(
    "sent", [None, "", "a.b.c", "....", "é", "x" * 9000, "e30.e30.", "e30.W10.AAAA", "[" * 4000 + ".e30.AAAA"]
)
def test_a_malformed_dpop_proof_is_refused(sent):
    wrong(sent)


def test_two_dpop_headers_are_refused():
    wrong(f"{proof('GET', URL)},{proof('GET', URL)}")


def test_dpop_claims_that_are_not_an_object_are_refused():
    wrong(raw_jwt(SPA, ["htm"], {"typ": "dpop+jwt", "jwk": SPA.jwk}))


def test_a_dpop_signature_with_a_flipped_bit_is_refused():
    sent = proof("GET", URL)
    flipped = sent[:-10] + ("A" if sent[-10] != "A" else "B") + sent[-9:]
    wrong(flipped)


# -- nonces ------------------------------------------------------------------------------


def test_a_dpop_proof_without_a_required_nonce_is_challenged():
    wrong(proof("GET", URL), "use_dpop_nonce", requires_nonce=True)
    nonce = NONCES.current(datetime.fromtimestamp(NOW, UTC))
    assert check(proof("GET", URL, nonce=nonce), requires_nonce=True)


def test_an_unknown_dpop_nonce_is_refused_even_when_none_is_required():
    wrong(proof("GET", URL, nonce="made up"), "use_dpop_nonce")
    wrong(proof("GET", URL, nonce=7), "use_dpop_nonce")


@pytest.mark.parametrize(("minutes", "good"), [(-2, False), (-1, True), (0, True), (2, False)])
def test_a_dpop_nonce_is_valid_for_one_to_two_minutes(minutes, good):
    now = wall_now()
    assert NONCES.is_valid(NONCES.current(now + timedelta(minutes=minutes)), now) is good


def test_processes_with_the_same_key_accept_each_others_dpop_nonces():
    other = dpop.Nonces(Vault(bytes(range(32))))
    stranger = dpop.Nonces(Vault(bytes(range(1, 33))))
    assert other.is_valid(NONCES.current(wall_now()), wall_now())
    assert not stranger.is_valid(NONCES.current(wall_now()), wall_now())


# -- once only ---------------------------------------------------------------------------


async def test_a_dpop_proof_is_accepted_once_across_processes(database_dsn):
    one, other = [await create_pool(database_dsn, max_size=4) for _ in range(2)]
    until, jti = wall_now() + timedelta(seconds=20), str(ids.new())

    used = await asyncio.gather(
        *(dpop.consume_proof(pool, SPA.thumbprint, jti, until=until) for pool in (one, other) * 10)
    )

    assert sorted(used) == [False] * 19 + [True]
    assert await dpop.consume_proof(one, new_key().thumbprint, jti, until=until)
    await asyncio.gather(one.close(), other.close())
