"""What callers read when something is wrong."""

import pytest
from tests.interfaces.http.conftest import RUNS, THING
from tests.interfaces.partner_client import PartnerClient, close_app, new_partner
from tests.whole_bank import close_bank, open_bank

from billfold.interfaces.partner_api.app import create_partner_app

BODY = {"name": "a thing", "amount_usdc": 100}
ONE = THING + "1/"


async def test_a_broken_rule_is_a_problem_document_with_its_facts(client):
    answer = await client.post("/api/v2/errors/refused/")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["type"] == "https://acme.localhost/docs/errors/pocket-not-empty"
    assert body["code"] == "pocket-not-empty"
    assert body["instance"] == "/api/v2/errors/refused/"
    assert body["trace_id"] == answer.headers["x-service-trace-id"]
    assert body["retryable"] is False
    assert body["cash"] == 1
    assert (await client.http.get("/docs/errors/pocket-not-empty")).status_code == 200


@pytest.mark.parametrize("kind", ["bug", "broken"])
async def test_an_accident_tells_nothing_but_its_trace(client, kind):
    answer = await client.post(f"/api/v2/errors/{kind}/")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal-error"
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


async def test_a_bank_that_is_away_says_when_to_come_back(client):
    answer = await client.post("/api/v2/errors/unavailable/")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")


async def test_an_unknown_path_and_method_are_problems(client):
    answer = await client.get("/api/v9/nothing/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert len(answer.headers["x-service-trace-id"]) == 32
    answer = await client.send("PATCH", ONE)
    assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")
    assert answer.headers["allow"] == "DELETE, GET"


@pytest.mark.parametrize(
    ("body", "mistakes"),
    [
        (b"{}", [("name", "missing"), ("amount_usdc", "missing")]),
        (b'{"name":1,"amount_usdc":"1","x":2}',
         [("name", "type_error"), ("amount_usdc", "type_error"), ("x", "extra_forbidden")]),
        (b'{"name":"a","amount_usdc":0}', [("amount_usdc", "value_error")]),
        (b'{"name":"a","amount_usdc":1.5}', [("amount_usdc", "type_error")]),
        (b'{"name":"a","amount_usdc":1,"size":{"width":0}}', [("size", "width", "value_error")]),
        (b'{"name":"a","amount_usdc":1,"size":{"y":1,"width":1}}',
         [("size", "y", "extra_forbidden")]),
        (b"[]", [("type_error",)]),
    ],
)  # fmt: skip
async def test_every_mistake_of_a_body_is_named_when_its_shape_is_wrong(client, body, mistakes):
    answer = await client.post(THING, body)
    assert answer.status_code == 422
    found = [(*each["loc"][1:], each["type"]) for each in answer.json()["detail"]]
    assert found == mistakes
    assert all(each["loc"][0] == "body" and each["msg"] for each in answer.json()["detail"])
    assert RUNS["make"] == 0


@pytest.mark.parametrize(
    "body",
    [
        b"{", b'{"name":}', b'{"name":"a","name":"b","amount_usdc":1}', b'{"name":"\xff"}',
        b'{"amount_usdc":NaN}', b"[" * 33 + b"]" * 33, b'{"a":' * 5000 + b"1" + b"}" * 5000,
    ],
)  # fmt: skip
async def test_what_is_not_json_is_malformed(client, body):
    answer = await client.post(THING, body)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")


async def test_a_list_too_long_is_refused(client):
    body = b'{"name":[' + b"1," * 1000 + b"1]}"
    answer = await client.post(THING, body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["type"] == "too_long"


async def test_a_body_of_another_type_is_unsupported(client):
    answer = await client.post(THING, BODY, headers={"content-type": "text/plain"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")
    kind = {"content-type": "application/json; charset=utf-8"}
    assert (await client.post(THING, BODY, headers=kind)).status_code == 201


async def test_a_missing_body_is_told(client):
    answer = await client.post(THING, b"")
    assert answer.json()["detail"][0]["loc"] == ["body"]


async def test_a_body_of_more_than_a_mebibyte_is_too_large(client):
    answer = await client.post(THING, b'{"name":"' + b"a" * 2 * 1024 * 1024 + b'"}')
    assert (answer.status_code, answer.json()["code"]) == (413, "payload-too-large")


async def test_a_body_without_a_length_is_cut_off_when_it_grows_too_large(client):
    sent = 0

    async def endless():
        nonlocal sent
        for _ in range(1000):
            sent += 64 * 1024
            yield b"a" * 64 * 1024

    headers = client.headers(THING, b"")
    answer = await client.http.post(THING, content=endless(), headers=headers)
    assert answer.status_code == 413
    assert sent < 20 * 1024 * 1024


async def test_query_names_that_are_not_declared_are_refused(client):
    answer = await client.get(ONE, query="limit=2&limt=3&x%5B%5D=1")
    assert answer.status_code == 422
    assert [each["loc"] for each in answer.json()["detail"]] == [
        ["query", "limt"],
        ["query", "x[]"],
    ]
    answer = await client.get(ONE, query="limit=2&omit%5B%5D=A&omit[]=B")
    assert (answer.json()["limit"], answer.json()["omit"]) == (2, ["A", "B"])


async def test_a_query_name_that_takes_one_value_is_there_once(client):
    answer = await client.get(ONE, query="limit=2&omit[]=A&%6Cimit=3&omit[]=B")
    assert answer.status_code == 422
    (mistake,) = answer.json()["detail"]
    assert (mistake["loc"], mistake["msg"]) == (["query", "limit"], "may be there only once")


async def test_a_query_value_of_another_type_is_named(client):
    answer = await client.get(ONE, query="limit=many")
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", "limit"]


async def test_plain_http_is_refused_before_anything_else(app, acme):
    plain = PartnerClient(app, acme, scheme="http")
    answer = await plain.post(THING, BODY, headers={"x-forwarded-proto": "https"})
    assert (answer.status_code, answer.json()["code"]) == (403, "https-required")
    assert answer.headers["connection"] == "close"
    assert "x-service-clock" not in answer.headers
    assert RUNS["make"] == 0
    await plain.close()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (ONE, {}, 200),
        (ONE, {"authorization": None}, 401),
        (ONE, {"authorization": "Bearer nonsense"}, 401),
        (ONE, {"x-service-signature": "nonsense"}, 401),
        (ONE, {"x-service-idempotency": "1"}, 422),
        ("/api/v9/nothing/", {}, 404),
        ("/api/v1/login/", {}, 405),
        ("/health", {}, 200),
    ],
)
async def test_every_answer_says_what_time_it_is_in_the_bank(client, path, headers, status):
    answer = await client.get(path, headers=headers)
    assert answer.status_code == status
    assert answer.headers.get_list("x-service-clock") == ["2025-06-02T13:00:00.000000Z"]


async def test_the_time_is_todays_when_strangers_ask_before_and_after_the_clock_moved(client, bank):
    for hours in range(3):
        answer = await client.get(ONE, headers={"authorization": None})
        assert answer.headers["x-service-clock"] == f"2025-06-02T{13 + hours}:00:00.000000Z"
        await bank.pool.execute("UPDATE clock SET business_anchor = business_anchor + '1h'")


async def test_strangers_are_refused_without_the_time_when_the_database_is_away(app, bank, acme):
    stranger = PartnerClient(app, acme)
    await bank.pool.close()
    answer = await stranger.get(ONE, headers={"authorization": None})
    assert answer.status_code == 401
    assert "x-service-clock" not in answer.headers
    await stranger.close()


async def test_production_tells_no_time_of_its_own(market_dsn):
    bank = await open_bank(market_dsn, environment="production")
    app = create_partner_app(bank, operations=[])
    caller = PartnerClient(app, await new_partner(bank))
    answer = await caller.get("/health")
    assert answer.status_code == 200
    assert "x-service-clock" not in answer.headers
    await caller.close()
    await close_app(app)
    await close_bank(bank)


async def test_the_pages_of_the_product_need_no_token(client):
    for path, kind in (
        ("/health", "text/plain"), ("/docs/", "text/html"), ("/docs", "text/html"),
        ("/docs/errors/", "text/html"), ("/docs/errors/not-found.md", "text/markdown"),
        ("/docs/errors.md", "text/markdown"), ("/openapi.json", "application/json"),
    ):  # fmt: skip
        answer = await client.http.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["content-type"].startswith(kind)
    assert (await client.http.get("/docs/errors/no-such-code")).status_code == 404
