"""Signatures of RFC 9421: what they cover, when they expire, and that any change after signing is refused."""

import hashlib
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.oauth.test_signed_requests import COVERED, in_base64, signature_of
from tests.support.oauth import KEYS

from billfold.oauth.rules.http_message_signatures import InvalidSignature, Message, verify_message
from billfold.oauth.types import ClientKey

NOW = datetime(2025, 6, 2, 13, tzinfo=UTC)
BODY = b'{"amount": "1.00"}'
VALUES = {
    "@method": "POST",
    "@authority": "bank.example",
    "@target-uri": "https://Bank.Example/api/pay/?a=1",
    "@scheme": "https",
    "@path": "/api/pay/",
    "@query": "?a=1",
    "authorization": "Bearer token",
    "x-idempotency-key": "one",
}


def client_key(algorithm):
    key = KEYS[algorithm]
    pem = key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return ClientKey("books", key.thumbprint, algorithm, pem, created_at=NOW, expires_at=None, registered_by=None)


def verify(*, covered=(*VALUES, "content-digest"), created=NOW, more="", sha="sha-256", body=BODY, **sent):
    """Sign a request with these parameters, and verify it as it is `sent` with other values."""
    key = KEYS["ES256"]
    digest = in_base64(hashlib.new(sha.replace("-", ""), body).digest())
    values = {**VALUES, "content-digest": f"{sha}=:{digest}:"}
    names = " ".join(f'"{each}"' for each in covered)
    since = "" if created is None else f";created={int(created.timestamp())}"
    parameters = f'({names}){since};keyid="{sent.get("keyid", key.thumbprint)}";alg="ecdsa-p256-sha256"{more}'
    lines = [f'"{each}": {values[each]}' for each in covered]
    text = "\n".join([*lines, f'"@signature-params": {parameters}'])
    values |= {
        "signature-input": f"sig1={parameters}",
        "signature": f"sig1=:{in_base64(signature_of(key, text.encode()))}:",
    }
    values |= sent.get("headers", {})
    url, method = sent.get("url", VALUES["@target-uri"]), sent.get("method", "POST")
    message = Message(method, url, sent.get("arrived", body), values.get)
    verify_message(message, [client_key("EdDSA"), client_key("ES256")], sent.get("now", NOW))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"sha": "sha-512"},
        {"body": b"", "covered": tuple(VALUES)},
        {"body": b"", "covered": COVERED},
        {"created": datetime.fromtimestamp(NOW.timestamp() - 300, UTC)},
        {"created": datetime.fromtimestamp(NOW.timestamp() + 300, UTC)},
    ],
)
def test_an_http_message_signature_is_valid_for_five_minutes(fields):
    verify(**fields)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"created": datetime.fromtimestamp(NOW.timestamp() - 301, UTC)}, "created"),
        ({"created": datetime.fromtimestamp(NOW.timestamp() + 301, UTC)}, "created"),
        ({"created": None}, "created"),
        *(
            ({"created": None, "more": f";created={digits}"}, "created")
            for digits in ("9" * 400, "9" * 5_000, "\N{ARABIC-INDIC DIGIT ONE}")
        ),
        ({"keyid": "unknown"}, "registered key"),
        ({"more": ";expires=1"}, "expires"),
        ({"covered": tuple(VALUES)}, "content-digest"),
        ({"arrived": b"{}"}, "not that of the body"),
        ({"headers": {"content-digest": None}}, "needs a Content-Digest"),
        ({"headers": {"content-digest": "sha-256=:a:"}}, "not base64"),
        ({"headers": {"x-idempotency-key": None}}, "covers x-idempotency-key"),
        ({"headers": {"x-idempotency-key": "two"}}, "registered key"),
        ({"headers": {"signature": None}}, "labelled sig1"),
        ({"headers": {"signature-input": None}}, "labelled sig1"),
        ({"method": "PUT"}, "registered key"),
        ({"url": "https://Bank.Example/api/pay/?a=2"}, "registered key"),
    ],
)
def test_an_altered_or_expired_http_message_signature_is_refused(fields, why):
    with pytest.raises(InvalidSignature, match=why):
        verify(**fields)
