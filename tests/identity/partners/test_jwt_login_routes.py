"""Logging in with a signed assertion."""

import base64
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from billfold.identity.partners import credentials
from billfold.oauth import jwt_login_routes
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.errors import InvalidInput, Refused

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
KEYS = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "PS256": RSA,
    "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def pem_of(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def of_an_unknown_curve(key):
    """Return the PEM of a P-256 key as one of a curve (SM2) that the library does not know."""
    packed = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    other = packed.replace(bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a811ccf5501822d"))
    return f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(other).decode()}\n-----END PUBLIC KEY-----"


def private_pem(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.fixture
async def key_ids(client, bank):
    return {
        algorithm: await credentials.register_partner_key(
            bank.pool, client.partner.user_id, algorithm=algorithm, public_pem=pem_of(key), now=wall_now()
        )
        for algorithm, key in KEYS.items()
    }


def claims(**changed):
    now = int(time.time())
    full = {
        "iss": "acme-app",
        "sub": "acme-app",
        "aud": "https://acme.localhost/token/",
        "iat": now,
        "exp": now + 60,
        "jti": str(ids.new()),
    } | changed
    return {name: value for name, value in full.items() if value is not None}


def signed(kid, algorithm="ES256", key=None, **changed):
    key = key or private_pem(KEYS[algorithm])
    return jwt.encode(claims(**changed), key, algorithm=algorithm, headers={"kid": kid})


async def exchange(client, assertion, /, **changed):
    form = {"grant_type": jwt_login_routes.JWT_BEARER_GRANT, "assertion": assertion} | changed
    return await client.http.post("/token/", data={k: v for k, v in form.items() if v is not None})


@pytest.mark.parametrize("algorithm", list(KEYS))
async def test_an_assertion_is_exchanged_for_a_bearer_token(client, key_ids, algorithm):
    answer = await exchange(client, signed(key_ids[algorithm], algorithm))
    assert answer.status_code == 200
    assert answer.json()["token_type"] == "Bearer"
    assert answer.json()["expires_in"] == 3600
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"


async def test_the_issuer_and_both_token_urls_are_accepted_as_audience(client, key_ids):
    for aud in ["https://acme.localhost/token", "https://acme.localhost", ["x", "https://acme.localhost"]]:
        assert (await exchange(client, signed(key_ids["ES256"], aud=aud))).status_code == 200


async def test_an_assertion_with_a_wrong_claim_is_an_invalid_grant(client, key_ids):
    changed: Any
    for changed in [
        {"iss": "someone"},
        {"sub": "someone"},
        {"iss": None},
        {"sub": None},
        {"aud": None},
        {"aud": "https://other.localhost/token/"},
        {"jti": None},
        {"jti": ""},
        {"jti": "x" * 256},
        {"jti": "a\0b"},
        {"exp": None},
        {"iat": None},
        {"exp": "soon"},
        {"exp": 1e30},
        {"nbf": 99_999_999_999},
    ]:
        answer = await exchange(client, signed(key_ids["ES256"], **changed))
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


async def test_an_expired_future_or_overlong_assertion_is_an_invalid_grant(client, key_ids):
    # The tests are collected minutes before this one runs.
    now = int(time.time())
    for seconds_from_now in [{"exp": 3600}, {"iat": -360, "exp": -300}, {"iat": 360, "exp": 400}]:
        changed = {claim: now + seconds for claim, seconds in seconds_from_now.items()}
        answer = await exchange(client, signed(key_ids["ES256"], **changed))
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


async def test_an_assertion_with_an_impossible_key_id_is_an_invalid_grant(client, key_ids):
    for kid in ("a\0b", "", "é"):
        answer = await exchange(client, signed(kid))
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


async def test_a_repeated_assertion_is_refused_and_both_attempts_are_audited(client, key_ids, audit_log):
    assertion = signed(key_ids["ES256"])
    assert (await exchange(client, assertion)).status_code == 200
    answer = await exchange(client, assertion)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    said = {"username": "acme-app", "key_id": key_ids["ES256"]}
    assert await audit_log() == [
        ("user.login", "SUCCESS", said | {"proved": "assertion"}),
        ("user.login", "FAILURE", said | {"wrong": "The assertion was used before."}),
    ]


async def test_an_assertion_with_an_unregistered_algorithm_or_key_is_refused(client, key_ids):
    hmac_key = pem_of(KEYS["ES256"]).encode()
    header = {"alg": "HS256", "kid": key_ids["ES256"], "typ": "JWT"}
    algorithm = jwt.get_algorithm_by_name("HS256")
    parts = [jwt.utils.base64url_encode(json.dumps(each).encode()) for each in (header, claims())]
    text = b".".join(parts)
    forged = text + b"." + jwt.utils.base64url_encode(algorithm.sign(text, hmac_key))
    wrong = [
        forged.decode(),
        jwt.encode(claims(), "", algorithm="none", headers={"kid": key_ids["ES256"]}),
        signed(key_ids["PS256"], "RS256", private_pem(RSA)),
        signed(key_ids["ES256"], "ES256", private_pem(ec.generate_private_key(ec.SECP256R1()))),
        signed("no-such-key"),
        jwt.encode(claims(), private_pem(KEYS["ES256"]), algorithm="ES256"),
        "not.a.jwt",
    ]
    for assertion in wrong:
        answer = await exchange(client, assertion)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant"), assertion


async def test_an_assertion_by_a_revoked_key_is_refused(client, key_ids, bank):
    await credentials.revoke_partner_key(bank.pool, key_ids["ES256"], now=wall_now())
    assert (await exchange(client, signed(key_ids["ES256"]))).status_code == 400


async def test_token_endpoint_errors_follow_oauth(client, key_ids):
    changed: Any
    for changed, status, error in [
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": None}, 400, "invalid_request"),
        ({"assertion": None}, 400, "invalid_request"),
        ({"client_id": "someone"}, 401, "invalid_client"),
        ({"client_assertion": "x"}, 401, "invalid_client"),
    ]:
        answer = await exchange(client, signed(key_ids["ES256"]), **changed)
        assert (answer.status_code, answer.json()["error"]) == (status, error)


async def test_a_key_that_does_not_fit_its_algorithm_is_refused(client, bank, key_ids):
    for algorithm, pem in (
        ("ES256", pem_of(RSA)),
        ("EdDSA", pem_of(KEYS["ES256"])),
        ("HS256", pem_of(RSA)),
        ("ES256", pem_of(ec.generate_private_key(ec.SECP384R1()))),
        ("ES256", of_an_unknown_curve(KEYS["ES256"])),
        ("RS256", pem_of(KEYS["EdDSA"])),
    ):
        with pytest.raises(InvalidInput):
            await credentials.register_partner_key(
                bank.pool, client.partner.user_id, algorithm=algorithm, public_pem=pem, now=wall_now()
            )
    with pytest.raises(Refused):
        await credentials.register_partner_key(
            bank.pool, client.partner.user_id, algorithm="ES256", now=wall_now(), public_pem=pem_of(KEYS["ES256"])
        )
