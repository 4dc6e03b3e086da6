"""Headers, rate limits, logs and the OpenAPI document of the authorization server."""

import httpx
from tests.support.oauth import AUTHORIZE, ISSUER, PAR, TOKEN, refused

from billfold.oauth.server.app import auth_document
from billfold.platform.clock import wall_now
from billfold.platform.settings.settings import Settings

ENDPOINTS = [
    ("GET", AUTHORIZE),
    ("POST", AUTHORIZE),
    ("POST", PAR),
    ("POST", TOKEN),
    ("POST", "/api/oauth2/introspect"),
    ("POST", "/api/oauth2/revoke"),
    ("GET", "/api/oauth2/logout?post_logout_redirect_uri=https://evil.example"),
    ("GET", "/api/v1/user"),
    ("GET", "/.well-known/openid-configuration"),
    ("GET", "/.well-known/jwks.json"),
    ("GET", "/nowhere"),
]


async def test_every_authorization_server_response_has_security_headers(books_client):
    for method, path in ENDPOINTS:
        answer = await books_client.http.request(method, path, headers={"origin": "https://evil.example"})
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["strict-transport-security"]
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-service-trace-id"]
        assert answer.headers["x-service-clock"] == "2025-06-02T13:00:00.000000Z"
        assert answer.status_code != 307
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "set-cookie" not in answer.headers
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["x-frame-options"] == "DENY"


async def test_plain_http_to_the_authorization_server_is_refused_before_reading(auth_app):
    transport = httpx.ASGITransport(auth_app, raise_app_exceptions=False)
    plain = ISSUER.replace("https", "http")
    for method, path in ENDPOINTS:
        async with httpx.AsyncClient(transport=transport, base_url=plain) as client:
            answer = await client.request(method, path)
        assert answer.status_code == 403
        assert answer.json()["code"] == "https-required"
        assert "location" not in answer.headers


async def test_authorization_requests_from_one_address_are_rate_limited(books_client, bank):
    first = await books_client.http.get(AUTHORIZE)
    left = [int(first.headers[f"x-ratelimit-{name}"]) for name in ("limit", "remaining", "reset")]
    assert left[:2] == [300, 299]
    assert 0 < left[2] - wall_now().timestamp() <= 60
    await bank.pool.execute("UPDATE rate_limit_window SET used = 300 WHERE kind = 'login'")
    answer = await books_client.push()
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert answer.headers["x-ratelimit-remaining"] == "0"
    assert answer.json()["detail"] == "Rate limit exceeded: 300 requests per minute from one address."
    assert (await books_client.http.get("/.well-known/openid-configuration")).status_code == 200
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_authorization_request") == 0


async def test_the_token_path_with_a_trailing_slash_needs_its_own_dpop_proof(books_client):
    code = await books_client.code()
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": books_client.verifier,
        "redirect_uri": "https://books.example/callback",
    }
    path = TOKEN + "/"
    answer = await books_client.post(path, books_client.authenticated(form), dpop=books_client.proof_for(TOKEN))
    refused(answer, "invalid_dpop_proof")
    answer = await books_client.post(path, books_client.authenticated(form), dpop=books_client.proof_for(path))
    assert answer.status_code == 200


async def test_oauth_secrets_are_not_logged(books_client, bank, capfd):
    tokens = await books_client.tokens()
    await books_client.refresh(tokens["refresh_token"])
    await books_client.exchange("a code of nobody")
    await books_client.push(proving={"client_assertion": "a forged assertion"})
    said = "".join(capfd.readouterr())
    secrets = [tokens[name] for name in ("access_token", "refresh_token", "id_token")]
    for secret in (*secrets, "a code of nobody", "a forged assertion", books_client.verifier):
        assert secret not in said


def test_the_authorization_server_document_describes_every_endpoint():
    paths = auth_document(Settings())["paths"]
    described = {(method.upper(), path) for path, item in paths.items() for method in item}
    hidden = {("POST", AUTHORIZE), ("GET", "/nowhere")}
    wanted = {(method, path.partition("?")[0]) for method, path in ENDPOINTS}
    assert described == wanted - hidden
