"""The request log shows failed requests of its own programs only, without their bodies."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest
from tests.accounts.explain.test_routes import explain
from tests.support.oauth import new_key
from tests.support.world import UNKNOWN, token_for

from billfold.platform import ids
from billfold.platform.clock import monotonic, wall_now
from billfold.request_log import recorder
from billfold.request_log.store import LoggedRequest, add_requests, purge_requests

PATH = "/api/v2/request-log/"
PAN = "4111111111111111"


@pytest.fixture(params=["partner_desk", "customer_desk"])
def desk(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def other_desk(request, desk):
    is_partner = request.node.callspec.params["desk"] == "partner_desk"
    return request.getfixturevalue("other_partner" if is_partner else "other_customer")


async def logged(desk, path=PATH, **filters):
    await desk.app.request_log.write()
    return (await desk.get(path, filters))["items"]


async def test_the_request_log_shows_errors_but_no_sent_values_and_only_own_requests(desk, other_desk, bank):
    await desk.get("/api/v2/pockets/")
    sent = {"pocket_name": 7, PAN: PAN, "deposit_strategy_id": PAN}
    path = "/api/v2/pockets/" if hasattr(desk, "team") else f"/api/v2/customers/{await desk.customer()}/pockets/"
    wrong = await desk.ask("POST", path, sent, status=422, key=(key := str(ids.new())))
    missing = await desk.refused("GET", f"/api/v2/pockets/{UNKNOWN}/", status=404, code="not-found")
    newest, second, *_ = await logged(desk)
    assert (newest["trace_id"], newest["error_code"], newest["path"]) == (
        missing["trace_id"],
        "not-found",
        "/api/v2/pockets/{pocket_id}/",
    )
    assert (second["status"], second["error_code"], second["has_idempotency_key"]) == (422, "invalid-input", True)
    assert {"body.pocket_name", "body.*"} <= set(second["fields"])
    who = ("client_id", "member_id") if hasattr(desk, "team") else ("user_id",)
    assert all(second[name] for name in who)
    assert await desk.get(f"{PATH}{second['trace_id']}/") == second
    assert await logged(desk, idempotency_key=key, status="4xx", operation="create_pocket") == [second]
    assert await logged(other_desk, idempotency_key=key) == await logged(desk, idempotency_key=str(UNKNOWN)) == []
    assert second["trace_id"] == wrong.headers["x-service-trace-id"]
    for nobody in (second["trace_id"], UNKNOWN):
        await other_desk.refused("GET", f"{PATH}{nobody}/", status=404, code="not-found")
    assert missing["trace_id"] not in {each["trace_id"] for each in await logged(other_desk)}
    rows = await bank.pool.fetch("SELECT request_log::text FROM request_log")
    assert not [row for row in rows if PAN in row[0] or str(UNKNOWN) in row[0]]
    await check_explained(desk, other_desk, wrong=second, missing=newest)


async def check_explained(desk, other_desk, wrong, missing):
    """Check why requests were refused: by their trace, found by their keys, and told to nobody else."""
    found = await explain(desk, f"{PATH}{wrong['trace_id']}/")
    assert found["value"] == "invalid-input"
    assert "body.pocket_name" in {each["value"] for each in found["steps"]}
    assert PAN not in str(found)
    found = await explain(desk, f"{PATH}{missing['trace_id']}/")
    assert [each["label"] for each in found["steps"]] == ["Requested", "Reason", "Refused"]
    assert str(UNKNOWN) not in str(found)
    answered = next(each for each in await logged(desk) if each["status"] == 200)
    for of, path in ((desk, answered["trace_id"]), (other_desk, missing["trace_id"]), (desk, UNKNOWN)):
        await of.refused("GET", f"{PATH}{path}/explain/", status=404, code="not-found")


async def test_the_request_log_is_filtered_paged_and_grouped_by_error(desk, bank):
    tenant = UUID(desk.team.customer) if hasattr(desk, "team") else desk.partner.partner_id
    now = wall_now()
    await add_requests(bank.pool, [row_of(tenant, now - timedelta(minutes=each), each) for each in range(12)])
    old = {"timestamp_to": now.isoformat(), "timestamp_from": (now - timedelta(hours=1)).isoformat()}
    ages = [each["duration_ms"] for each in await desk.pages(PATH, old, limit=5)]
    assert ages == list(range(1, 12))
    for filters, expected in (
        ({"status": "5xx"}, [6]),
        ({"status": "4xx"}, [3, 9]),
        ({"operation": "list_pockets", "status": "2xx"}, [2, 4, 8, 10]),
        ({"error_code": "not-found"}, [3, 9]),
        ({"operation": "list_pockets", "error_code": "not-found"}, []),
        ({"operation": "get_pocket", "error_code": "not-found"}, [3, 9]),
    ):
        assert [each["duration_ms"] for each in await logged(desk, **old, **filters)] == expected, filters
    groups = await logged(desk, f"{PATH}errors/", **old)
    assert [(each["operation"], each["error_code"], each["count"]) for each in groups] == [
        ("get_pocket", "not-found", 2),
        ("list_pockets", "internal-error", 1),
    ]
    assert groups[0]["last"]["duration_ms"] == 3
    await desk.invalid("GET", PATH, filters={"status": "9xx"}, loc="query.status")
    assert await purge_requests(bank.pool, now - timedelta(minutes=8), limit=2) == 3


def row_of(tenant, at, number):
    """A request: each third one fails, each sixth of these on the side of the bank."""
    status, code = {0: (500, "internal-error"), 3: (404, "not-found")}.get(number % 6, (200, None))
    operation = "get_pocket" if number % 2 else "list_pockets"
    return LoggedRequest(
        *(ids.new(), tenant, at, ids.new(), "GET", "/", operation, status, code, [], False, False, None, None, None),
        "::1",
        number,
    )


async def test_refused_requests_cannot_flood_the_request_log_of_a_tenant(desk, bank, monkeypatch):
    monkeypatch.setattr(recorder, "REFUSED_PER_MINUTE", 3)
    monkeypatch.setattr(recorder, "QUEUED_OF_TENANT_MAX", 6)
    for sent in ("Bearer unknown", None):
        await desk.ask("GET", PATH, status=401, headers={"authorization": sent or ""})
    wrong = {"x-service-signature": "AAAA"}
    if hasattr(desk, "team"):
        stolen = await token_for(bank, desk.team)
        stolen.key = new_key()
        attempts = [await desk.send("GET", PATH, token=stolen) for _ in range(5)]
    else:
        attempts = [await desk.send("GET", PATH, headers=wrong) for _ in range(5)]
    assert {each.status_code for each in attempts} == {401}
    await desk.app.request_log.write()
    assert await bank.pool.fetchval("SELECT count(*) FROM request_log WHERE status = 401") == 3
    for _ in range(10):
        await desk.get(PATH)
    await desk.app.request_log.write()
    assert await bank.pool.fetchval("SELECT count(*) FROM request_log WHERE status = 200") == 6
    monkeypatch.setattr(recorder, "monotonic", lambda: monotonic() + 60)
    now = wall_now().replace(second=30)
    monkeypatch.setattr("billfold.http.admission.wall_now", lambda: now)
    await desk.send("GET", PATH)
    await bank.pool.execute("UPDATE rate_limit_window SET used = 1000000")
    limited = [await desk.send("GET", PATH) for _ in range(5)]
    assert {each.status_code for each in limited} == {429}
    await desk.app.request_log.write()
    assert await bank.pool.fetchval("SELECT count(*) FROM request_log WHERE status = 429") == 3


async def test_requests_of_one_trace_are_separate_rows_and_an_invalid_row_is_dropped_without_others(desk, bank):
    tenant = UUID(desk.team.customer) if hasattr(desk, "team") else desk.partner.partner_id
    at, trace = wall_now() - timedelta(minutes=1), ids.new()
    older, newer, *others = [row_of(tenant, at + timedelta(seconds=each), each) for each in range(9)]
    older, newer = older._replace(trace_id=trace), newer._replace(trace_id=trace)
    refused = [others[2]._replace(ip_address="\0"), others[4]._replace(error_code=None, status=500)]
    batch = [older, newer, others[0], refused[0], *others[1:4], refused[1]]
    assert await add_requests(bank.pool, batch) == 2
    assert (await desk.get(f"{PATH}{trace}/"))["duration_ms"] == newer.duration_ms
    listed = await logged(desk, timestamp_to=(at + timedelta(minutes=1)).isoformat(), limit=6)
    assert sum(each["trace_id"] == trace.hex for each in listed) == 2


async def test_stopping_a_process_finishes_writing_the_request_log(desk, bank, monkeypatch):
    going, may_end = asyncio.Event(), asyncio.Event()

    async def slowly(pool, batch):
        going.set()
        await may_end.wait()
        return await add_requests(pool, batch)

    monkeypatch.setattr(recorder, "WRITE_SECONDS", 0)
    monkeypatch.setattr("billfold.request_log.store.add_requests", slowly)
    await desk.get("/api/v2/pockets/")
    await going.wait()
    closing = asyncio.create_task(desk.app.request_log.close())
    await asyncio.sleep(0)
    may_end.set()
    await closing
    assert await bank.pool.fetchval("SELECT count(*) FROM request_log WHERE operation = 'list_pockets'") == 1
