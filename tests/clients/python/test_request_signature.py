"""Signed requests of the client: a token is had once, kept while it is good, and had again when it ends."""

from urllib.parse import parse_qs

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from billfold.platform.crypto import verify_signature
from billfold_client.errors import ApiError
from billfold_client.signing import PartnerAuth

SECRET = "the partner's shared secret"
PRIVATE_KEY = ec.generate_private_key(ec.SECP256R1())
PEM = PRIVATE_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
URL = "https://acme.localhost"


class Api:
    """Issues tokens and answers 200, after the responses in `answers`."""

    def __init__(self, *answers, seconds=3600, token_status=200):
        self.answers, self.seconds, self.token_status = list(answers), seconds, token_status
        self.tokens: list[httpx.Request] = []
        self.requests: list[httpx.Request] = []
        self.used_tokens: list[str] = []
        auth = PartnerAuth(url=f"{URL}/", username="acme-app", shared_secret=SECRET, private_key=PEM, kid="a-key")
        self.client = httpx.Client(transport=httpx.MockTransport(self.answer), auth=auth, base_url=URL)

    def answer(self, request):
        if request.url.path == "/token/":
            self.tokens.append(request)
            body = {"access_token": f"token-{len(self.tokens)}", "expires_in": self.seconds}
            return httpx.Response(self.token_status, json=body)
        self.requests.append(request)
        self.used_tokens.append(request.headers["authorization"])
        return self.answers.pop(0) if self.answers else httpx.Response(200)


def refusal(**headers):
    return httpx.Response(401, headers=headers)


def test_a_token_is_obtained_with_a_private_key_assertion():
    api = Api()
    api.client.get("/api/v2/things/")

    (request,) = api.tokens
    assert (request.method, str(request.url)) == ("POST", f"{URL}/token/")
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    form = {name: value for name, (value,) in parse_qs(request.content.decode()).items()}
    assertion = form.pop("assertion")
    assert form == {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}
    assert jwt.get_unverified_header(assertion)["kid"] == "a-key"
    claims = jwt.decode(
        assertion, PRIVATE_KEY.public_key(), algorithms=["ES256"], audience=f"{URL}/token/", issuer="acme-app"
    )
    assert (claims["sub"], claims["exp"] - claims["iat"]) == ("acme-app", 120)


def test_a_request_signature_covers_key_path_and_body_but_not_the_query():
    api = Api()
    api.client.post("/api/v2/things/?limit=1", content=b'{"a":1}', headers={"x-service-idempotency": "a key"})
    api.client.get("/api/v2/things/")

    for request, key, body in zip(api.requests, ("a key", None), (b'{"a":1}', b""), strict=True):
        sent = request.headers["x-service-idempotency"]
        assert len(sent) == 36 if key is None else sent == key
        signature = request.headers["x-service-signature"]
        assert verify_signature([SECRET], sent, "/api/v2/things/", body=body, signature=signature)


@pytest.mark.parametrize(("seconds", "tokens"), [(3600, 1), (62, 1), (58, 3)])
def test_a_token_is_reused_until_a_minute_before_it_expires(seconds, tokens):
    api = Api(seconds=seconds)
    for _ in range(3):
        api.client.get("/")

    assert len(api.tokens) == tokens
    assert api.used_tokens[-1] == f"Bearer token-{tokens}"


def test_a_rejected_token_is_renewed_once_per_request():
    api = Api(httpx.Response(200), refusal(**{"www-authenticate": "Bearer"}), refusal(**{"www-authenticate": "Bearer"}))
    api.client.get("/")

    assert api.client.get("/").status_code == 401
    assert api.used_tokens == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]
    assert api.client.get("/").status_code == 200


@pytest.mark.parametrize("answer", [refusal(), httpx.Response(403, headers={"www-authenticate": "Bearer"})])
def test_a_refusal_without_a_bearer_challenge_is_returned_to_the_caller(answer):
    api = Api(httpx.Response(200), answer)
    api.client.get("/")

    assert api.client.get("/").status_code == answer.status_code
    assert len(api.tokens) == 1


def test_a_rejected_fresh_token_is_not_renewed_and_a_failed_token_request_raises():
    api = Api(refusal(**{"www-authenticate": "Bearer"}))
    assert api.client.get("/").status_code == 401
    assert len(api.requests) == 1
    with pytest.raises(ApiError):
        Api(token_status=400).client.get("/")
