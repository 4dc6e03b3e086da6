"""Requests of the Partner API: which are admitted, which are refused, which run only once."""

import asyncio
import base64
from datetime import timedelta

import msgspec
from tests.fixtures.sample_app import RUNS, THING
from tests.support.databases import as_owner
from tests.support.world import PartnerClient, new_partner

from billfold.identity.partners import credentials, store
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import sign_request

BODY = {"name": "a thing", "amount_usdc": 100}
ONE = THING + "1/"


def flipped(text):
    """Change one bit of a base64 signature."""
    raw = bytearray(base64.b64decode(text))
    raw[5] ^= 1
    return base64.b64encode(raw).decode()


async def keys_kept(bank):
    return await bank.pool.fetchval("SELECT count(*) FROM idempotency_key")


async def test_a_signed_request_is_accepted_with_rate_limit_trace_and_security_headers(sample_client):
    answer = await sample_client.post(THING, BODY)
    assert answer.status_code == 201
    assert answer.json()["run"] == 1
    assert answer.headers["x-ratelimit-limit"] == "10000"
    assert answer.headers["x-ratelimit-remaining"] == "9999"
    assert len(answer.headers["x-service-trace-id"]) == 32
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert "max-age" in answer.headers["strict-transport-security"]


async def test_a_path_with_and_without_trailing_slash_answers_without_redirect(sample_client):
    for path in (ONE, ONE.rstrip("/")):
        answer = await sample_client.get(path)
        assert answer.status_code == 200
        assert answer.json()["id"] == "1"


async def test_a_get_signed_over_an_empty_body_or_object_is_accepted(sample_client):
    assert (await sample_client.get(ONE)).status_code == 200
    assert (await sample_client.get(ONE, body=b"{}")).status_code == 200


async def test_a_get_signed_over_a_different_body_is_refused(sample_client):
    headers = sample_client.headers(ONE, b"{}")
    assert (await sample_client.get(ONE, headers=headers)).status_code == 401


async def test_a_request_with_an_invalid_signature_records_nothing(sample_client, bank):
    raw = msgspec.json.encode(BODY)
    key = str(ids.new())
    good = sign_request(sample_client.partner.secret, key, THING, body=raw)
    wrong = [
        flipped(good),
        sign_request(sample_client.partner.secret, str(ids.new()), THING, body=raw),
        sign_request(sample_client.partner.secret, key, THING + "2/", body=raw),
        sign_request(sample_client.partner.secret, key, THING.rstrip("/"), body=raw),
        sign_request(sample_client.partner.secret, key, THING, body=raw + b" "),
        sign_request(sample_client.partner.secret, key, THING, body=b'{"amount_usdc":100,"name":"a thing"}'),
        sign_request("another secret", key, THING, body=raw),
        good.rstrip("="),
        good + "=",
        "",
    ]
    for signature in wrong:
        headers = {"x-service-signature": signature}
        answer = await sample_client.post(THING, BODY, key=key, headers=headers)
        assert answer.status_code == 401, signature
        assert answer.json()["code"] == "invalid-signature"
        assert "without its query" in answer.json()["detail"]
    missing = await sample_client.post(THING, BODY, key=key, headers={"x-service-signature": None})
    assert missing.json()["code"] == "invalid-signature"
    assert missing.json()["detail"] == "The header x-service-signature is missing."
    assert RUNS["make"] == 0
    assert await keys_kept(bank) == 0
    assert await bank.pool.fetchval("SELECT count(*) FROM rate_limit_window") == 0
    assert (await sample_client.post(THING, BODY, key=key)).status_code == 201


async def test_characters_moved_between_path_and_body_are_refused(sample_client):
    raw = msgspec.json.encode(BODY)
    key = str(ids.new())
    path = THING + '{"name"'
    signature = sign_request(sample_client.partner.secret, key, THING, body=raw)
    answer = await sample_client.http.request(
        "POST",
        path,
        content=raw.removeprefix(b'{"name"'),
        headers=sample_client.headers(THING, raw, key=key) | {"x-service-signature": signature},
    )
    assert answer.status_code in {400, 404, 405}
    assert RUNS["make"] == 0


async def test_leading_spaces_and_a_byte_order_mark_are_part_of_the_signed_body(sample_client):
    for start in [b" ", b"\r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf "]:
        raw = start + msgspec.json.encode(BODY)
        assert (await sample_client.post(THING, raw)).status_code == 201
        headers = sample_client.headers(THING, raw) | {"content-type": "application/json"}
        bare = await sample_client.http.post(THING, content=msgspec.json.encode(BODY), headers=headers)
        assert bare.json()["code"] == "invalid-signature"


async def test_idempotency_keys_are_case_insensitive(sample_client):
    key = str(ids.new())
    first = await sample_client.get(ONE, key=key.upper())
    again = await sample_client.get(ONE, key=key.lower())
    assert first.status_code == again.status_code == 200
    assert again.headers["idempotent-replayed"] == "true"
    assert again.content == first.content
    assert RUNS["get"] == 1


async def test_a_request_without_a_known_token_is_unauthorized(sample_client):
    for sent in [None, "Bearer", "Bearer nonsense", "Basic abc", "nonsense"]:
        answer = await sample_client.get(ONE, headers={"authorization": sent})
        assert answer.status_code == 401
        assert answer.json()["code"] == "unauthorized"
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_token_on_the_host_of_a_different_partner_is_unauthorized(sample_app, bank, sample_partner):
    await new_partner(bank, "other")
    for host in ("other.localhost", "nobody.localhost", "acme.example.com", "a.acme.localhost"):
        foreign = PartnerClient(sample_app, sample_partner, host=host)
        assert (await foreign.get(ONE)).status_code == 401, host
        await foreign.close()


async def test_a_sandbox_accepts_requests_by_its_local_address(sample_app, sample_partner):
    for host in ["localhost", "127.0.0.1:8443", "[::1]:8443", "ACME.localhost"]:
        sample_client = PartnerClient(sample_app, sample_partner, host=host)
        assert (await sample_client.get(ONE)).status_code == 200
        await sample_client.close()


async def test_both_secrets_are_accepted_during_a_rotation(sample_client, bank):
    former = sample_client.partner.secret
    async with bank.pool.acquire() as conn:
        sample_client.partner.secret = await credentials.rotate_secret(
            conn, bank.vault, sample_client.partner.partner_id, now=wall_now()
        )
    assert (await sample_client.get(ONE)).status_code == 200
    assert (await sample_client.get(ONE, headers=sample_client.headers(ONE, b"", secret=former))).is_success
    late = wall_now() + timedelta(hours=25)
    token_hash = await bank.pool.fetchval("SELECT token_hash FROM partner_token")
    await as_owner(bank, "UPDATE partner_token SET expires_at = $1", late + timedelta(hours=1))
    then = await store.find_credential(bank.pool, bank.vault, token_hash, now=late)
    assert then is not None
    assert then.shared_secrets == (sample_client.partner.secret.encode(),)


async def test_a_key_reused_with_a_different_method_path_query_or_body_is_refused(sample_client):
    key = ids.new()
    assert (await sample_client.get(ONE, key=key)).status_code == 200
    await asyncio.sleep(0.05)
    others = [
        await sample_client.send("DELETE", ONE, key=key),
        await sample_client.get(THING + "2/", key=key),
        await sample_client.get(ONE.rstrip("/"), key=key),
        await sample_client.get(ONE, key=key, query="limit=2"),
        await sample_client.get(ONE, key=key, body=b"{}"),
    ]
    for answer in others:
        assert answer.status_code == 422
        assert answer.json()["code"] == "idempotency-key-reused"
    assert RUNS["delete"] == 0


async def test_an_idempotency_key_belongs_to_one_partner(sample_app, bank, sample_client):
    key = ids.new()
    other = PartnerClient(sample_app, await new_partner(bank, "other"))
    assert (await sample_client.post(THING, BODY, key=key)).status_code == 201
    assert (await other.post(THING, BODY, key=key)).status_code == 201
    assert RUNS["make"] == 2
    await other.close()


async def test_a_refused_request_binds_its_key_and_can_be_retried(sample_client):
    for kind in ["forbidden", "bug", "unavailable"]:
        key, path = ids.new(), f"/api/v2/errors/{kind}/"
        refused = await sample_client.post(path, key=key)
        for query, body in (("a=1", b"{}"), ("", b'{"a":1}')):
            answer = await sample_client.post(path, body, key=key, query=query)
            assert answer.json()["code"] == "idempotency-key-reused"
        assert (await sample_client.post(path, key=key)).json()["code"] == refused.json()["code"]
        assert RUNS[kind] == 2


async def test_concurrent_requests_with_one_idempotency_key_have_one_effect(sample_client, bank):
    key = ids.new()
    answers = await asyncio.gather(*(sample_client.post(THING, BODY, key=key) for _ in range(20)))
    statuses = sorted(answer.status_code for answer in answers)
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert RUNS["make"] == 1
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["code"] == "idempotency-in-progress"
            assert answer.headers["retry-after"] == "1"
    made = await bank.pool.fetchval("SELECT count(*) FROM customer WHERE name = 'a thing'")
    assert made == 1


async def test_refusals_are_stored_and_internal_errors_are_not(sample_client):
    for kind, status, runs in (("refused", 422, 1), ("not-found", 404, 1), ("bug", 500, 2), ("unavailable", 503, 2)):
        key = ids.new()
        for _ in range(2):
            answer = await sample_client.post(f"/api/v2/errors/{kind}/", key=key)
            assert answer.status_code == status
        assert RUNS[kind] == runs, kind


async def test_sandbox_operations_require_only_a_token(sample_client):
    path = "/api/v1/sandbox/thing/"
    bare = {"x-service-idempotency": None, "x-service-signature": None}
    assert (await sample_client.post(path, BODY, headers=bare)).status_code == 202
    unsigned = {"x-service-signature": None}
    assert (await sample_client.post(path, BODY, headers=unsigned)).status_code == 202
    wrong = {"x-service-signature": "A" * 44}
    assert (await sample_client.post(path, BODY, headers=wrong)).status_code == 401
    assert (await sample_client.post(path, BODY, headers=bare | {"authorization": None})).status_code == 401
    assert RUNS["sandbox"] == 2


async def test_a_deprecated_operation_returns_sunset_headers_and_counts_calls(sample_client, bank):
    answer = await sample_client.get("/api/v1/old-things/")
    assert answer.headers["deprecation"] == "@1735689600"
    assert answer.headers["sunset"] == "Fri, 01 Jan 2027 00:00:00 GMT"
    await sample_client.get("/api/v1/old-things/")
    await asyncio.sleep(0.1)
    row = await bank.pool.fetchrow("SELECT * FROM deprecated_call")
    assert (row["operation"], row["calls"]) == ("list_old_things", 2)
    assert row["caller"] == sample_client.partner.user_id
