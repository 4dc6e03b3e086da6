"""The sandbox's operations over HTTP: money arrives, customers appear, the clock moves."""

import asyncio
import json
from datetime import UTC, date, datetime
from uuid import UUID

from tests.support.cases import in_one_bank
from tests.support.world import PartnerClient, new_partner

from billfold.accounts.portals.commands import UpdatePortal
from billfold.platform import ids


async def bare_post(client, path, body):
    """Send what asks for the token only: neither key nor signature."""
    without = {"x-service-idempotency": None, "x-service-signature": None}
    return await client.post(path, body, headers=without)


async def activities(bank, pocket):
    return await bank.pool.fetch(
        "SELECT * FROM transaction WHERE pocket_id = $1 ORDER BY entry_no", UUID(pocket["pocket_id"])
    )


async def test_funding_a_sandbox_pocket_creates_ach_credits_and_returns_no_body(bank, client, pocket):
    body = {"account_id": pocket["pocket_id"], "amount_usdc": 4_999_999, "count": 3}
    answer = await bare_post(client, "/api/v1/sandbox/fund/", body)
    assert (answer.status_code, answer.content) == (202, b"")
    rows = await activities(bank, pocket)
    assert [(row["type"], row["amount"]) for row in rows] == [("ACH", 4_999_999)] * 3
    details = [json.loads(row["details"]) for row in rows]
    assert {each["company_name"] for each in details} == {"FakeCompany"}
    assert len({each["trace_number"] for each in details}) == 3


async def test_a_repeated_sandbox_funding_request_is_booked_once(bank, client, pocket):
    body = {"account_id": pocket["pocket_id"], "amount_usdc": 100, "company_name": "Contoso"}
    key = ids.new()
    for _ in range(2):
        answer = await client.post("/api/v1/sandbox/fund/", body, key=key)
        assert answer.status_code == 202
    assert len(await activities(bank, pocket)) == 1


async def test_a_sandbox_wire_arrives_at_its_portal(bank, client, pocket):
    body = {
        "portal_id": pocket["portal_id"],
        "amount_usdc": 25_000_000,
        "sender_name": "Contoso",
        "sender_account_number": "123456789",
        "sender_routing_number": "021000021",
    }
    answer = await bare_post(client, "/api/v1/sandbox/wire/", body)
    assert (answer.status_code, answer.content) == (202, b"")
    (row,) = await activities(bank, pocket)
    assert (row["type"], row["amount"]) == ("WIRE", 25_000_000)
    assert json.loads(row["details"])["counterparty_name"] == "Contoso"


async def test_a_sandbox_wire_over_the_fedwire_maximum_is_refused(bank, client, pocket):
    body = {"portal_id": pocket["portal_id"], "amount_usdc": 9_999_999_999_99, "sender_name": "A"}
    too_much = body | {"amount_usdc": 10_000_000_000_00}
    assert (await bare_post(client, "/api/v1/sandbox/wire/", too_much)).status_code == 422
    assert (await bare_post(client, "/api/v1/sandbox/wire/", body)).status_code == 202
    (row,) = await activities(bank, pocket)
    assert row["amount"] == 9_999_999_999_99


async def test_sandbox_funding_without_an_open_portal_is_refused(bank, client, pocket):
    await bank.engine.submit(
        UpdatePortal(
            caller="test",
            key=ids.new(),
            customers=(UUID(pocket["customer_id"]),),
            portal_id=UUID(pocket["portal_id"]),
            close=True,
        )
    )
    body = {"account_id": pocket["pocket_id"], "amount_usdc": 100}
    answer = await bare_post(client, "/api/v1/sandbox/fund/", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "no-open-portal")
    wire = {"portal_id": pocket["portal_id"], "amount_usdc": 100, "sender_name": "A"}
    answer = await bare_post(client, "/api/v1/sandbox/wire/", wire)
    assert (answer.status_code, answer.json()["code"]) == (409, "no-open-portal")


async def test_a_sandbox_request_sets_the_status_and_real_time_yield_of_a_pocket(bank, client, pocket):
    path = f"/api/v1/sandbox/pockets/{pocket['pocket_id']}/"
    answer = await bare_post(client, path, {"status": "FROZEN", "real_time_yield": True})
    assert answer.status_code == 200
    assert answer.json() == {
        "id": pocket["pocket_id"],
        "status": "FROZEN",
        "real_time_yield": True,
        "object_type": "PocketState",
    }
    answer = await bare_post(client, path, {"status": "OPEN"})
    assert (answer.json()["status"], answer.json()["real_time_yield"]) == ("OPEN", True)
    assert (await bare_post(client, path, {})).status_code == 422


async def test_the_sandbox_clock_is_shown_advanced_and_frozen(client, pocket):
    clock = (await client.get("/api/v1/sandbox/clock/")).json()
    assert clock == {
        "now": "2025-06-02T13:00:00.000000Z",
        "frozen": True,
        "business_date": "2025-06-02",
        "next_event_at": "2025-06-02T21:00:00.000000Z",
        "happened": {},
        "object_type": "Clock",
    }
    moved = await bare_post(client, "/api/v1/sandbox/clock/advance/", {"seconds": 3600})
    assert moved.json()["now"] == "2025-06-02T14:00:00.000000Z"
    moved = await bare_post(client, "/api/v1/sandbox/clock/advance/", {"business_days": 2})
    assert moved.json()["now"] == "2025-06-04T14:00:00.000000Z"
    assert moved.json()["happened"] == {"house-day": 2, "daily-root": 2}
    until = {"until": "2025-06-04T17:00:00-04:00"}
    moved = await bare_post(client, "/api/v1/sandbox/clock/advance/", until)
    assert moved.json()["business_date"] == str(date(2025, 6, 5))
    moved = await bare_post(client, "/api/v1/sandbox/clock/set/", {"now": "2025-06-05T12:00:00Z"})
    assert moved.json()["now"] == "2025-06-05T12:00:00.000000Z"
    moved = await bare_post(client, "/api/v1/sandbox/clock/run-to-next-event/", b"")
    assert moved.json()["now"] == "2025-06-05T21:00:00.000000Z"
    assert not (await bare_post(client, "/api/v1/sandbox/clock/resume/", b"")).json()["frozen"]
    assert (await bare_post(client, "/api/v1/sandbox/clock/freeze/", b"")).json()["frozen"]


async def test_a_long_clock_advance_reports_progress_and_ends_when_the_clock_is_frozen(client, pocket):
    walk = asyncio.create_task(bare_post(client, "/api/v1/sandbox/clock/set/", {"now": "2097-12-31T00:00:00Z"}))
    while (await client.get("/api/v1/sandbox/clock/")).json()["now"] < "2025-06-06":
        await asyncio.sleep(0)
    frozen = (await bare_post(client, "/api/v1/sandbox/clock/freeze/", b"")).json()
    stopped = await walk
    assert (stopped.status_code, stopped.json()["code"]) == (409, "clock-stopped")
    reached, shown = (datetime.fromisoformat(each["now"]) for each in (stopped.json(), frozen))
    assert reached == shown < datetime(2097, 1, 1, tzinfo=UTC)
    moved = await bare_post(client, "/api/v1/sandbox/clock/advance/", {"business_days": 1})
    assert moved.json()["happened"]["house-day"] == 1


async def test_run_to_next_event_advances_to_a_maturity_or_reports_nothing_ahead(client, pocket):
    async def run_to(kind):
        return await bare_post(client, "/api/v1/sandbox/clock/run-to-next-event/", {"kind": kind})

    # A Pocket without money pays no fee.
    for kind in ("maturity", "settlement", "wire", "fee"):
        answer = await run_to(kind)
        assert (answer.status_code, answer.json()["code"]) == (409, "nothing-ahead")
    assert (await run_to("payday")).status_code == 422
    funding = {"account_id": pocket["pocket_id"], "amount_usdc": 40_000_00}
    assert (await client.post("/api/v1/sandbox/fund/", funding)).status_code == 202
    seen = [(await run_to(kind)).json() for kind in ("day-end", "settlement", "maturity", "fee")]
    # Bought on June 2, the 4-week bill of that week matures on June 24; its successor runs into July.
    assert [each["now"] for each in seen] == [
        "2025-06-02T21:00:00.000000Z",
        "2025-06-03T04:00:00.000000Z",
        "2025-06-24T12:30:00.000000Z",
        "2025-07-01T12:00:00.000000Z",
    ]
    assert (seen[2]["happened"]["mature"], seen[3]["happened"]["charge"]) == (1, 1)


@in_one_bank(
    "body",
    [
        {},
        {"seconds": 1, "business_days": 1},
        {"seconds": -1},
        {"business_days": 0},
        {"until": "2025-06-04T17:00:00"},
        {"until": "tomorrow"},
    ],
)
async def test_an_ambiguous_clock_advance_is_refused(client, body):
    answer = await bare_post(client, "/api/v1/sandbox/clock/advance/", body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][0] == "body"


async def test_a_second_partner_changing_the_sandbox_clock_is_refused(bank, client):
    """A second partner of one sandbox cannot change the clock or the money of the first."""
    other = PartnerClient(client.http._transport.app, await new_partner(bank, "globex"))
    before = await bank.now()
    for path, body in (
        ("clock/advance/", {"business_days": 1}),
        ("clock/set/", {"now": "2030-01-02T10:00:00Z"}),
        ("clock/run-to-next-event/", {}),
        ("clock/freeze/", {}),
        ("clock/resume/", {}),
    ):
        answer = await bare_post(other, f"/api/v1/sandbox/{path}", body)
        assert (answer.status_code, answer.json()["code"]) == (403, "sandbox-of-another-partner"), path
    assert await bank.now() == before
