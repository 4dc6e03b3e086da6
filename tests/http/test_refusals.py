"""Responses to refused requests: status, headers and body, to the byte.

`refusals.json` has the answers. Delete it and run this test to write them down again.
"""

import asyncio
import json
import re
from pathlib import Path
from urllib.parse import unquote

from tests.support.world import json_of, token_for

RECORDED = Path(__file__).with_name("refusals.json")
NONE = "00000000-0000-4000-8000-000000000000"
LIST, ONE, ON_US = "/api/v2/pockets/", f"/api/v2/pockets/{NONE}/", "/api/v1/transfers/on-us/"
TRANSACTIONS, DOCUMENT = "/api/v2/transactions/", f"/api/v1/documents/{NONE}/"
TOKEN, AUTHORIZE = "/api/oauth2/token", "/api/oauth2/authorize"
FORM = {"content-type": "application/x-www-form-urlencoded"}
MULTIPART = {"content-type": "multipart/form-data; boundary=x"}
POCKET = {"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W"}
TOO_MANY = 429
ONCE = "11111111-1111-4111-8111-111111111111"
_VARIES = (
    (re.compile(r'("trace_id":")[0-9a-f]{32}'), r"\1-"),
    (re.compile(r"(trace|Trace)[^<]*<[^>]*>[0-9a-f]{32}"), r"\1-"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "{id}"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "{trace}"),
    (re.compile(r"Retry after \d+ seconds"), "Retry after {n} seconds"),
)
_VARYING = {"x-service-trace-id", "x-service-clock", "dpop-nonce", "retry-after", "content-length"}
_VARYING |= {"x-ratelimit-remaining", "x-ratelimit-reset"}
_ALWAYS = {"x-content-type-options", "referrer-policy", "strict-transport-security"}

PATHS = {
    "root": ("GET", "/"),
    "unknown path": ("GET", "/api/v2/nothing/"),
    "half a path": ("GET", "/api/v2/"),
    "longer path": ("GET", f"{ONE}more/of/it/"),
    "wrong method": ("DELETE", LIST),
    "wrong method below": ("POST", ONE),
    "unknown method": ("BREW", LIST),
    "TRACE": ("TRACE", LIST),
    "OPTIONS": ("OPTIONS", LIST),
    "OPTIONS of one": ("OPTIONS", ONE),
    "OPTIONS of nothing": ("OPTIONS", "/api/v2/nothing/"),
    "HEAD of nothing": ("HEAD", "/api/v2/nothing/"),
    "HEAD of what is posted": ("HEAD", ON_US),
    "HEAD health": ("HEAD", "/health"),
    "health with slash": ("GET", "/health/"),
    "no slash": ("GET", LIST[:-1]),
    "two slashes": ("GET", LIST + "/"),
    "slashes within": ("GET", "//api//v2/pockets//"),
    "dots": ("GET", "/api/v2/./pockets/"),
    "two dots": ("GET", "/api/v2/pockets/../pockets/"),
    "escaped slash": ("GET", "/api/v2%2Fpockets/"),
    "escaped slash in an id": ("GET", "/api/v2/pockets/a%2Fb/"),
    "escaped dots": ("GET", "/api/v2/pockets/%2e%2e/"),
    "escaped letter": ("GET", "/api/v2/p%6Fckets/"),
    "control character": ("GET", "/api/v2/pockets/%00/"),
    "another case": ("GET", "/API/v2/pockets/"),
    "a star": ("OPTIONS", "*"),
    "braces": ("GET", "/api/v2/pockets/{pocket_id}/"),
    "bad id": ("GET", "/api/v2/pockets/12/"),
    "foreign id": ("GET", ONE),
    "query unknown": ("GET", f"{LIST}?colour=red"),
    "query twice": ("GET", f"{LIST}?limit=1&limit=2"),
    "query out of range": ("GET", f"{LIST}?limit=0"),
    "query not a number": ("GET", f"{LIST}?limit=many&cursor=x"),
    "query of many": ("GET", f"{LIST}?{'a=1&' * 201}"),
    "query with control": ("GET", f"{LIST}?limit=1%00&a%01=2"),
    "query bad cursor": ("GET", f"{LIST}?cursor=x"),
    "query bad date": ("GET", f"{TRANSACTIONS}?time_booked_from=yesterday"),
}
BODIES = {
    "no body": b"",
    "not JSON": b"{",
    "not UTF-8": b'{"a":"\xff"}',
    "not an object": b"[]",
    "empty object": b"{}",
    "unknown field": {"colour": "red", "pocket_name": "A"},
    "wrong types": {"type": 1, "from_account": "x", "amount": [], "pocket_name": 7, "deposit_strategy_id": {}},
    "name twice": b'{"a":1,"a":2}',
    "NaN": b'{"a":NaN}',
    "deep": b"[" * 40 + b"]" * 40,
    "control in a text": b'{"pocket_name":"a\\u0000"}',
    "half a pair": b'{"pocket_name":"\\ud800"}',
    "many items": b'{"a":[' + b"1," * 1001 + b"1]}",
    "too long": b" " * (1024 * 1024 + 1),
}
HEADERS = {
    "no token": {"authorization": None},
    "token unknown": {"authorization": "Bearer nobody"},
    "token twice": {"authorization": ["Bearer a", "Bearer b"]},
    "another scheme": {"authorization": "Basic YTpi"},
    "no host": {"host": None},
    "two hosts": {"host": ["a.localhost", "b.localhost"]},
    "bad host": {"host": "a b"},
    "another host": {"host": "initech.localhost"},
    "wrong content type": {"content-type": "text/plain"},
    "content type twice": {"content-type": ["application/json", "application/json"]},
    "encoded": {"content-encoding": "gzip"},
    "preview": {"prefer": "preview"},
}
OF_PARTNERS = {
    "no signature": {"x-service-signature": None},
    "bad signature": {"x-service-signature": "AAAA"},
    "no key": {"x-service-idempotency": None},
    "bad key": {"x-service-idempotency": "12"},
}
OF_CUSTOMERS = {
    "no proof": {"dpop": None},
    "bad proof": {"dpop": "a.b.c"},
    "as bearer": {"authorization": "Bearer {token}"},
    "bad key": {"idempotency-key": "\x7f"},
    "signed wrong": {"signature-input": "sig=()", "signature": "sig=:AA==:"},
}
OF_PROGRAMS = {
    "no form": ("POST", TOKEN, b"", {}),
    "JSON": ("POST", TOKEN, b"{}", {"content-type": "application/json"}),
    "unknown grant": ("POST", TOKEN, b"grant_type=x", FORM),
    "field twice": ("POST", TOKEN, b"grant_type=x&grant_type=y", FORM),
    "no client": ("POST", TOKEN, b"grant_type=client_credentials", FORM),
    "too long": ("POST", TOKEN, b"a=" + b"1" * (1024 * 1024), FORM),
    "GET token": ("GET", TOKEN, b"", {}),
    "HEAD token": ("HEAD", TOKEN, b"", {}),
    "OPTIONS token": ("OPTIONS", TOKEN, b"", {}),
    "slash": ("POST", TOKEN + "/", b"grant_type=x", FORM),
    "unknown": ("GET", "/api/oauth2/nothing", b"", {}),
    "metadata": ("POST", "/.well-known/openid-configuration", b"", {}),
    "authorize": ("GET", AUTHORIZE, b"", {}),
    "authorize unknown client": ("GET", f"{AUTHORIZE}?client_id=x&response_type=code", b"", {}),
    "DELETE authorize": ("DELETE", AUTHORIZE, b"", {}),
    "below authorize": ("GET", f"{AUTHORIZE}/more", b"", {}),
    "pushed": ("POST", "/api/oauth2/par", b"client_id=x", FORM),
    "user info": ("GET", "/api/oauth2/userinfo", b"", {}),
    "revoke": ("POST", "/api/oauth2/revoke", b"token=x", FORM),
}


async def call(app, host, method, path, *, headers, body=b"", scheme="https"):
    """Return status, headers and body of the response to these exact request bytes."""
    raw, _, query = path.partition("?")
    named = {"host": host, "content-length": str(len(body)) if body else None} | headers
    values = [(name, each) for name, value in named.items() for each in (value if isinstance(value, list) else [value])]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": scheme,
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), each.encode("latin-1")) for name, each in values if each is not None],
        "client": ("127.0.0.1", 123),
        "server": ("127.0.0.1", 443),
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    text = b"".join(each.get("body", b"") for each in sent[1:]).decode()
    for pattern, instead in _VARIES:
        text = pattern.sub(instead, text)
    given = [(name.decode().lower(), value.decode()) for name, value in sent[0]["headers"]]
    return {
        "status": sent[0]["status"],
        "headers": sorted([name, "" if name in _VARYING else value] for name, value in given if name not in _ALWAYS),
        "body": text,
    }


class Requests:
    """Sends requests to one API and keeps the answers; `proof` are the headers of a proper request."""

    def __init__(self, name, app, host, proof):
        self.name, self._app, self._host, self._proof = name, app, host, proof
        self.answers = {}

    async def send(self, case, method, path, body=b"", headers=None, **options):
        raw, key = json_of(body) if body else b"", options.pop("key", None)
        proven = self._proof(method, path.partition("?")[0], raw, key) | {"content-type": "application/json"}
        changed = headers or {}
        if "{token}" in str(changed.get("authorization")):
            changed = changed | {"authorization": proven["authorization"].replace("DPoP", "Bearer")}
        answer = await call(self._app, self._host, method, path, headers=proven | changed, body=raw, **options)
        self.answers[f"{self.name}: {case}"] = answer

    async def send_usual(self, create, own):
        """Send the mistakes that both APIs refuse alike; `create` is the path that opens Pockets."""
        await self.send("plain http", "GET", LIST, scheme="http")
        for case, (method, path) in PATHS.items():
            await self.send(case, method, path)
        for case, body in BODIES.items():
            await self.send(case, "POST", create, body)
            await self.send(f"transfer: {case}", "POST", own, body)
        for case, headers in HEADERS.items():
            await self.send(case, "POST", create, b"{}", headers)
        for case, body in (("file without type", b"x"), ("file missing", b"")):
            await self.send(case, "POST", DOCUMENT, body)
            await self.send(
                f"{case}, form", "POST", DOCUMENT, body, {"content-type": "multipart/form-data; boundary=x"}
            )


def signed_by(desk):
    """Return a function that makes the headers of requests signed by a partner."""
    return lambda _, path, body, key: desk.client.headers(path, body, key=key)


async def test_refusals_of_both_apis_equal_the_recorded_ones(partner_desks, customer_desks, auth_app, customer_world):
    desk, member = customer_world, await customer_desks()
    pockets = f"/api/v2/customers/{await desk.customer()}/pockets/"
    partner = Requests(
        "partner", desk.app, "acme.localhost", lambda _, path, body, key: desk.client.headers(path, body, key=key)
    )
    await partner.send_usual(pockets, ON_US)
    for case, headers in OF_PARTNERS.items():
        await partner.send(case, "POST", ON_US, b"{}", headers)
    await _send_keyed(partner, pockets, "x-service-idempotency")
    once = [partner.send(f"at once {n}", "POST", pockets, POCKET, key=ONCE) for n in (1, 2)]
    await asyncio.gather(*once)
    few = await partner_desks("initech", rate=1)
    limited = Requests(
        "limited", few.app, "initech.localhost", lambda _, path, body, key: few.client.headers(path, body, key=key)
    )
    while limited.answers.get("limited: too many", {}).get("status") != TOO_MANY:
        await limited.send("too many", "GET", LIST)
    host = member.base.removeprefix("https://")
    member.token, bound = await token_for(member.bank, member.team), member
    owner = Requests("customer", bound.app, host, lambda method, path, *_: bound.headers(method, path, bound.token))
    await owner.send_usual("/api/v2/pockets/", "/api/v1/transfer-requests/")
    for case, headers in OF_CUSTOMERS.items():
        await owner.send(case, "POST", LIST, b"{}", headers)
    await owner.send("token in the query", "GET", f"{LIST}?access_token=x")
    await _send_keyed(owner, LIST, "idempotency-key")
    bound.token = await token_for(bound.bank, bound.team, scopes=("team.read",))
    await owner.send("no scope", "POST", LIST, b"{}")
    await owner.send("no scope to read", "GET", LIST)
    auth = Requests("auth", auth_app, "auth.localhost:8443", lambda *_: {})
    for case, (method, path, body, headers) in OF_PROGRAMS.items():
        await auth.send(case, method, path, body, {"content-type": None} | headers)
    found = partner.answers | limited.answers | owner.answers | auth.answers
    if not RECORDED.exists():
        lines = [f"{json.dumps(case)}: {json.dumps(found[case])}" for case in sorted(found)]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    assert found == json.loads(RECORDED.read_text())


async def _send_keyed(requests, path, header):
    """Send a replay, and a different request, under the same idempotency key."""
    for case, sent in (("created", POCKET), ("replayed", POCKET), ("key reused", {**POCKET, "pocket_name": "Other"})):
        await requests.send(case, "POST", path, sent, {header: NONE}, key=NONE)
