"""The signature of a request of the Partner API: the parts it covers, and when it may be left out."""

from typing import Any

import pytest

from billfold.http.raw_request import RawRequest
from billfold.identity.partners.caller import MISMATCH, check_signature
from billfold.identity.partners.rules import Credential
from billfold.platform.crypto import sign_request
from billfold.platform.errors import BillfoldError, InvalidInput

KEY = "6f9619ff-8b86-4011-b42d-00cf4fc964ff"
PATH = "/api/v2/customers/"
BODY = b'{"a":1}'
SECRETS = (b"a secret while it is changed", b"the secret from now on")
CREDENTIAL: Any = Credential(partner=None, user_id=None, expires_at=None, shared_secrets=SECRETS)  # type: ignore[arg-type]


def received(*, path=PATH, body=BODY, **headers):
    named = {f"x-service-{name}": value for name, value in headers.items() if value is not None}
    scope: Any = {
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    request = RawRequest(scope, "trace", "127.0.0.1")
    request.body = body
    return request


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("required", [True, False])
def test_a_signature_by_either_valid_secret_is_accepted(secret, required):
    signature = sign_request(secret, KEY, PATH, body=BODY)

    assert check_signature(received(idempotency=KEY, signature=signature), CREDENTIAL, required=required) == KEY


def test_key_and_signature_may_be_omitted_when_no_signature_is_required():
    assert check_signature(received(), CREDENTIAL, required=False) is None
    assert check_signature(received(idempotency=KEY), CREDENTIAL, required=False) == KEY
    # A key without a signature binds nothing to the path or the body: these may be of any form.
    assert check_signature(received(idempotency=KEY, body=b"text"), CREDENTIAL, required=False) == KEY


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize(
    ("signed", "sent"),
    [
        ({"idempotency_key": KEY.replace("6", "7")}, {}),
        ({"path": PATH + "1/"}, {}),
        ({"body": BODY + b" "}, {}),
        ({"secret": b"another"}, {}),
        ({}, {"signature": ""}),
    ],
)
def test_a_mismatched_signature_is_refused_even_when_optional(signed, sent, required):
    parts = {"secret": SECRETS[0], "idempotency_key": KEY, "path": PATH, "body": BODY} | signed
    request = received(**{"idempotency": KEY, "signature": sign_request(**parts)} | sent)

    with pytest.raises(BillfoldError) as refused:
        check_signature(request, CREDENTIAL, required=required)

    assert (refused.value.code, refused.value.detail) == ("invalid-signature", MISMATCH)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"signature": None}, "invalid-signature"),
        ({"path": "/api/%31/"}, "ambiguous-signature"),
        ({"body": b"text"}, "ambiguous-signature"),
        ({"body": b'"text"'}, "ambiguous-signature"),
        ({"body": b"/things/{}"}, "ambiguous-signature"),
        ({"body": b"\x00{}"}, "ambiguous-signature"),
        ({"body": b"text", "signature": None}, "ambiguous-signature"),
    ],
)
def test_a_missing_or_ambiguous_signature_is_refused(changed, code):
    sent = {"idempotency": KEY, "signature": "x", "path": PATH, "body": BODY} | changed

    with pytest.raises(BillfoldError) as refused:
        check_signature(received(**sent), CREDENTIAL, required=True)

    assert refused.value.code == code


@pytest.mark.parametrize("key", [None, "", "1", KEY + "0", f"{{{KEY}}}", KEY.replace("-", ""), f"urn:uuid:{KEY}"])
@pytest.mark.parametrize("required", [True, False])
def test_a_missing_or_non_uuid_idempotency_key_is_reported_at_its_header(key, required):
    with pytest.raises(InvalidInput) as refused:
        check_signature(received(idempotency=key, signature="x"), CREDENTIAL, required=required)

    (mistake,) = refused.value.errors
    assert (mistake.loc, mistake.type) == (
        ("header", "x-service-idempotency"),
        "missing" if key is None else "uuid_parsing",
    )
