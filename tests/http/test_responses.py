"""Error responses."""

import pytest
from tests.fixtures.sample_app import RUNS, THING
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import PartnerClient, close_app, new_partner

from billfold.apis.partner_api import create_partner_app

BODY = {"name": "a thing", "amount_usdc": 100}
ONE = THING + "1/"


async def test_a_refusal_is_a_problem_document_with_its_details(sample_client):
    answer = await sample_client.post("/api/v2/errors/refused/")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["type"] == "https://acme.localhost/docs/errors/pocket-not-empty"
    assert body["code"] == "pocket-not-empty"
    assert body["instance"] == "/api/v2/errors/refused/"
    assert body["trace_id"] == answer.headers["x-service-trace-id"]
    assert body["retryable"] is False
    assert body["cash"] == 1


@pytest.mark.parametrize("kind", ["bug", "broken"])
async def test_an_internal_error_reveals_only_its_trace_id(sample_client, kind):
    answer = await sample_client.post(f"/api/v2/errors/{kind}/")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal-error"
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


async def test_an_unavailable_bank_answers_503_with_retry_after(sample_client):
    answer = await sample_client.post("/api/v2/errors/unavailable/")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")


async def test_an_unknown_path_or_method_returns_a_problem_document(sample_client):
    answer = await sample_client.get("/api/v9/nothing/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert len(answer.headers["x-service-trace-id"]) == 32
    answer = await sample_client.send("PATCH", ONE)
    assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")
    assert answer.headers["allow"] == "DELETE, GET"


@pytest.mark.parametrize(
    ("body", "kind", "loc"),
    [(b'{"name":[' + b"1," * 1000 + b"1]}", "too_long", ["body", "name"]), (b"", "missing", ["body"])],
)
async def test_a_body_list_over_its_maximum_length_is_refused(sample_client, body, kind, loc):
    answer = await sample_client.post(THING, body)
    assert answer.status_code == 422
    (mistake,) = answer.json()["detail"]
    assert (mistake["type"], mistake["loc"]) == (kind, loc)


async def test_a_body_that_is_not_application_json_is_unsupported(sample_client):
    answer = await sample_client.post(THING, BODY, headers={"content-type": "text/plain"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")
    kind = {"content-type": "application/json; charset=utf-8"}
    assert (await sample_client.post(THING, BODY, headers=kind)).status_code == 201


async def test_a_body_of_more_than_a_mebibyte_is_too_large(sample_client):
    answer = await sample_client.post(THING, b'{"name":"' + b"a" * 2 * 1024 * 1024 + b'"}')
    assert (answer.status_code, answer.json()["code"]) == (413, "payload-too-large")


async def test_a_body_without_content_length_is_refused_over_the_size_limit(sample_client):
    sent = 0

    async def endless():
        nonlocal sent
        for _ in range(1000):
            sent += 64 * 1024
            yield b"a" * 64 * 1024

    headers = sample_client.headers(THING, b"")
    answer = await sample_client.http.post(THING, content=endless(), headers=headers)
    assert answer.status_code == 413
    assert sent < 20 * 1024 * 1024


async def test_plain_http_is_refused_before_any_processing(sample_app, sample_partner):
    plain = PartnerClient(sample_app, sample_partner, scheme="http")
    answer = await plain.post(THING, BODY, headers={"x-forwarded-proto": "https"})
    assert (answer.status_code, answer.json()["code"]) == (403, "https-required")
    assert answer.headers["connection"] == "close"
    assert "x-service-clock" not in answer.headers
    assert RUNS["make"] == 0
    await plain.close()


async def test_every_sandbox_response_has_the_service_clock_header(sample_client):
    for path, headers, status in [
        (ONE, {}, 200),
        (ONE, {"authorization": None}, 401),
        (ONE, {"authorization": "Bearer nonsense"}, 401),
        (ONE, {"x-service-signature": "nonsense"}, 401),
        (ONE, {"x-service-idempotency": "1"}, 422),
        ("/api/v9/nothing/", {}, 404),
        ("/api/v1/login/", {}, 405),
        ("/health", {}, 200),
    ]:
        answer = await sample_client.get(path, headers=headers)
        assert answer.status_code == status
        assert answer.headers.get_list("x-service-clock") == ["2025-06-02T13:00:00.000000Z"]


async def test_the_service_clock_of_unauthenticated_requests_follows_clock_changes(sample_client, bank):
    for hours in range(3):
        answer = await sample_client.get(ONE, headers={"authorization": None})
        assert answer.headers["x-service-clock"] == f"2025-06-02T{13 + hours}:00:00.000000Z"
        await bank.pool.execute("UPDATE clock SET business_anchor = business_anchor + '1h'")


async def test_an_unauthenticated_request_without_database_gets_401_without_service_clock(
    sample_app, bank, sample_partner
):
    stranger = PartnerClient(sample_app, sample_partner)
    await bank.pool.close()
    answer = await stranger.get(ONE, headers={"authorization": None})
    assert answer.status_code == 401
    assert "x-service-clock" not in answer.headers
    await stranger.close()


async def test_production_responses_have_no_service_clock_header(bank_dsn):
    bank = await open_bank(bank_dsn, environment="production")
    sample_app = create_partner_app(bank, operations=[])
    caller = PartnerClient(sample_app, await new_partner(bank))
    answer = await caller.get("/health")
    assert answer.status_code == 200
    assert "x-service-clock" not in answer.headers
    await caller.close()
    await close_app(sample_app)
    await close_bank(bank)
