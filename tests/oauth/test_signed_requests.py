"""Signed requests (RFC 9421), on top of the access token."""

import base64
import hashlib
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from tests.support.apps import lend_auth_app, take_back
from tests.support.oauth import ISSUER, KEYS, Relying, company, member, new_key, program, proof

from billfold.oauth import grants
from billfold.platform.clock import wall_now

PATH = "/api/v1/user"
COVERED = ("@method", "@authority", "@target-uri", "authorization")


@pytest.fixture
async def books(bank):
    anna = await member(bank.pool, await company(bank.pool))
    sample_client = await program(
        bank.pool, "books", keys=("ES256", "EdDSA"), requires_nonce=False, requires_signature=True
    )
    sample_app = await lend_auth_app(bank)
    made = Relying(bank, sample_app, sample_client, person=anna)
    yield made
    await made.close()
    await take_back(sample_app)


@pytest.fixture
async def token(books):
    return await grants.issue_access(
        books.bank.pool,
        client_id="books",
        customer_id=books.person.customer_id,
        user_id=books.person.user_id,
        scopes=("openid",),
        now=wall_now(),
        jkt=books.proof_key.thumbprint,
    )


def signature_of(key, signed):
    if key.algorithm == "EdDSA":
        return key.private.sign(signed)
    r, s = decode_dss_signature(key.private.sign(signed, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def in_base64(value):
    return base64.b64encode(value).decode()


def signed(token, *, key="ES256", method="GET", proven=None, body=b"", covered=COVERED, query="", **changed):
    """Return the headers of a signed request; `changed` replaces parameters and values."""
    key = KEYS[key] if isinstance(key, str) else key
    headers = {"authorization": f"DPoP {token}", "dpop": proof(proven or method, ISSUER + PATH, token=token)}
    if body:
        digest = in_base64(hashlib.sha256(body).digest())
        headers["content-digest"] = changed.get("digest", f"sha-256=:{digest}:")
        covered = (*covered, "content-digest")
    names = " ".join(f'"{each}"' for each in covered)
    alg = {"ES256": "ecdsa-p256-sha256", "EdDSA": "ed25519"}[key.algorithm]
    parameters = (
        f"({names});created={changed.get('created', int(time.time()))}"
        f';keyid="{changed.get("keyid", key.thumbprint)}";alg="{changed.get("alg", alg)}"'
    )
    values = {"@method": method, "@authority": "auth.localhost:8443", "@target-uri": ISSUER + PATH + query, **headers}
    lines = [f'"{each}": {values[each]}' for each in covered]
    text = "\n".join([*lines, f'"@signature-params": {parameters}'])
    headers["signature-input"] = f"sig1={parameters}"
    headers["signature"] = f"sig1=:{in_base64(signature_of(key, text.encode()))}:"
    return headers


async def send_request(books, headers, method="GET", body=b"", query=""):
    return await books.http.request(method, PATH + query, headers=headers, content=body)


def refused(answer):
    assert answer.status_code == 401, answer.text
    assert answer.json()["code"] == "invalid-signature"


@pytest.mark.parametrize("key", ["ES256", "EdDSA"])
async def test_a_request_with_an_http_message_signature_is_accepted(books, token, key):
    assert (await send_request(books, signed(token, key=key))).status_code == 200
    with_query = signed(token, key=key, query="?x=1")
    assert (await send_request(books, with_query, query="?x=1")).status_code == 200


async def test_an_unsigned_request_of_a_client_that_must_sign_is_refused(books, token):
    headers = {"authorization": f"DPoP {token}", "dpop": proof("GET", ISSUER + PATH, token=token)}
    refused(await send_request(books, headers))
    # The proof was not used up by a request that was refused for something else.
    headers |= {name: value for name, value in signed(token).items() if name.startswith("signature")}
    assert (await send_request(books, headers)).status_code == 200


async def test_an_invalid_http_message_signature_is_refused(books, token):
    changed: Any
    for changed in [
        {"created": 1},
        {"created": int(time.time()) + 86_400},
        {"created": "x"},
        {"keyid": "unknown"},
        {"alg": "ed25519"},
        {"alg": "hmac-sha256"},
        {"key": new_key()},
        {"covered": COVERED[1:]},
        {"covered": COVERED[:3]},
        {"covered": (*COVERED, "@method")},
        {"query": "?x=1"},
        {"method": "POST", "proven": "GET"},
    ]:
        refused(await send_request(books, signed(token, **changed)))


async def test_an_optional_http_message_signature_is_verified_when_present(books, token, bank):
    await bank.pool.execute("UPDATE oauth_client SET requires_signature = false")
    refused(await send_request(books, signed(token, key=new_key())))
    refused(await send_request(books, signed(token) | {"signature": "sig1=:AAAA:"}))
    refused(await send_request(books, signed(token) | {"signature-input": "sig1=()"}))
    assert (await send_request(books, signed(token))).status_code == 200


async def test_a_signed_body_must_match_its_content_digest(books, token):
    body = b"some text"
    answer = await send_request(books, signed(token, method="POST", body=body), "POST", body=body)
    assert answer.status_code == 200
    refused(await send_request(books, signed(token, method="POST", body=body), "POST", body=b"other"))
    refused(await send_request(books, signed(token, method="POST"), "POST", body=body))
    wrong = signed(token, method="POST", body=body, digest="md5=:AAAA:")
    refused(await send_request(books, wrong, "POST", body=body))
