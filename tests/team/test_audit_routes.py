"""The audit log through the Customer API, as pages and as a file."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from tests.support.approvals import member_id_of
from tests.support.world import UNKNOWN, join, token_for

from billfold.audit import record as audit_record
from billfold.audit.rules import NewEntry
from billfold.ledger.types import Origin

PATH, FILE = "/api/v1/team/audit-logs/", "/api/v1/team/audit-logs.csv"
AGENT = {"user-agent": "books/2.1"}


def audit_path_of(member_id):
    return f"/api/v1/team/members/{member_id}/audit-logs/"


def table(answer):
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="audit-logs.csv"' in answer.headers["content-disposition"]
    return list(csv.DictReader(io.StringIO(answer.text)))


async def record(customer_desk, at, *, origin=None, details=None):
    """Record an entry for each of these details."""
    common: dict[str, Any] = {"origin": origin or Origin.operator(), "action": "a.b", "resource_type": "a"}
    customer = UUID(customer_desk.team.customer)
    entries = [NewEntry(customer_id=customer, details=each, **common) for each in details or [{}]]
    async with customer_desk.bank.pool.acquire() as conn, conn.transaction():
        await audit_record.record_all(conn, customer_desk.bank.vault, entries, now=at)


async def test_actions_of_members_and_the_partner_are_logged_with_actor_and_address(customer_desk, customer_world):
    body = {"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W"}
    made = (await customer_desk.ask("POST", "/api/v2/pockets/", body, status=201, headers=AGENT)).json()
    path = f"/api/v2/customers/{customer_desk.team.customer}/pockets/{made['id']}/"
    await customer_world.patch(path, {"name": "Theirs"})
    closing = {"status": "CLOSED", "closure_reason": "INACTIVITY"}
    await customer_desk.ask("PATCH", f"/api/v2/pockets/{made['id']}/", closing, status=422)
    failed, changed, created, *earlier = (await customer_desk.get(PATH))["items"]
    assert created | {"id": "", "timestamp": "", "ip_address": ""} == {
        "id": "",
        "timestamp": "",
        "member_id": await member_id_of(customer_desk),
        "member_name": "Anna Lind",
        "action": "pocket.created",
        "resource_type": "pocket",
        "resource_id": made["id"],
        "outcome": "SUCCESS",
        "ip_address": "",
        "user_agent": "books/2.1",
        "details": {"name": "Reserve", "deposit_weeks": 4, "reinvestment_weeks": 4},
        "actor_type": "MEMBER",
        "client_id": "books",
        "object_type": "CustomerAuditLogEntry",
    }
    assert created["ip_address"]
    assert (changed["member_id"], changed["member_name"], changed["actor_type"]) == (None, "acme", "PARTNER")
    assert (failed["action"], failed["outcome"]) == ("pocket.closed", "FAILURE")
    assert failed["details"]["refused"] == "last-open-pocket"
    assert [each["action"] for each in earlier] == ["customer.created"]


async def test_the_audit_log_of_a_member_is_separate_and_a_foreign_one_not_found(
    customer_desk, customer_desks, other_customer
):
    other = await customer_desks(customer_desk.team.customer, role="MANAGER")
    pocket = await customer_desk.pocket()
    await other.ask("PATCH", f"/api/v2/pockets/{pocket.id}/", {"name": "Mine"}, status=200)
    mine, theirs = await member_id_of(customer_desk), await member_id_of(other)
    assert [each["action"] for each in (await customer_desk.get(audit_path_of(mine)))["items"]] == ["pocket.created"]
    assert [each["action"] for each in (await customer_desk.get(audit_path_of(theirs)))["items"]] == ["pocket.updated"]
    for member_id in (UNKNOWN, await member_id_of(other_customer)):
        await customer_desk.refused("GET", audit_path_of(member_id), status=404, code="not-found")
        await customer_desk.refused("GET", FILE, status=404, code="not-found", filters={"member_id": member_id})
    rows = table(await customer_desk.ask("GET", FILE, status=200, filters={"member_id": theirs}))
    assert [(row["action"], row["member_id"]) for row in rows] == [("pocket.updated", theirs)]
    assert (await other_customer.get(PATH))["items"][0]["action"] == "customer.created"


async def test_the_audit_log_is_paged_and_filtered_by_time(customer_desk):
    noon = datetime(2099, 6, 2, 12, tzinfo=UTC)
    for number in range(7):
        await record(customer_desk, noon + timedelta(minutes=number), details=[{"number": number}])
    everything = await customer_desk.pages(PATH)
    numbers = [each["details"].get("number") for each in everything]
    assert numbers == [6, 5, 4, 3, 2, 1, 0, None]
    span = {"timestamp_from": "2099-06-02T12:02:00Z", "timestamp_to": "2099-06-02T08:05:00-04:00"}
    found = await customer_desk.pages(PATH, span)
    assert [each["details"]["number"] for each in found] == [4, 3, 2]
    rows = table(await customer_desk.ask("GET", FILE, status=200, filters=span))
    assert [row["id"] for row in rows] == [each["id"] for each in found]
    first = await customer_desk.get(PATH, {"limit": 3})
    second = await customer_desk.get(PATH, {"limit": 3, "cursor": first["next_page"]})
    back = await customer_desk.get(PATH, {"limit": 3, "cursor": second["prev_page"]})
    assert back["items"] == first["items"]


async def test_the_audit_log_csv_has_the_same_fields_and_no_formulas(customer_desk):
    for evil in ('=HYPERLINK("http://x")', "+1+1", "-1+1", "@SUM(A1)", "\tx", "\rx", " =1"):
        origin = Origin(kind="CLIENT", name=evil, user_agent=evil, ip_address="192.0.2.1")
        await record(customer_desk, datetime.now(UTC), origin=origin, details=[{"name": evil, "amount": -5}])
    answer = await customer_desk.ask("GET", FILE, status=200)
    rows = table(answer)
    items = (await customer_desk.get(PATH))["items"]
    assert list(rows[0]) == [name for name in items[0] if name != "object_type"]
    for row, item in zip(rows, items, strict=True):
        assert msgspec.json.decode(row["details"]) == item["details"]
        if item["actor_type"] == "CLIENT":
            assert row["member_name"] == "'" + item["member_name"]
            assert row["user_agent"] == "'" + item["user_agent"]


async def test_a_long_audit_log_is_downloaded_as_one_file(customer_desk):
    await record(customer_desk, datetime.now(UTC), details=[{"number": n} for n in range(1_203)])
    rows = table(await customer_desk.ask("GET", FILE, status=200))
    numbers = [msgspec.json.decode(row["details"])["number"] for row in rows if row["action"] == "a.b"]
    assert numbers == list(range(1_202, -1, -1))


async def test_an_invalid_audit_log_query_is_refused_at_its_parameter(customer_desk):
    for path, filters, loc in (
        (PATH, {"timestamp_from": "noon"}, "query.timestamp_from"),
        (PATH, {"timestamp_to": "2025-06-02T10:00:00"}, "query.timestamp_to"),
        (PATH, {"limit": 0}, "query.limit"),
        (PATH, {"cursor": "x"}, "query.cursor"),
        (PATH, {"member_id": UNKNOWN}, "query.member_id"),
        (FILE, {"member_id": "x"}, "query.member_id"),
        (FILE, {"timestamp_to": "later"}, "query.timestamp_to"),
        (audit_path_of("x"), {}, "path.member_id"),
    ):
        await customer_desk.invalid("GET", path, loc=loc, filters=filters)


async def test_a_forbidden_change_is_audited_with_its_member_and_scope(bank, customer_desk, customer_desks):
    viewer = await customer_desks(customer_desk.team.customer, role="VIEWER")
    body = {"pocket_name": "x", "deposit_strategy_id": "UST-4W"}
    await viewer.refused("POST", "/api/v2/pockets/", body, status=403, code="forbidden")
    token = await token_for(bank, customer_desk.team, scopes=("team.read",))
    await customer_desk.ask("GET", "/api/v2/pockets/", status=403, token=token)
    told = (await customer_desk.get(PATH))["items"]
    assert (told[0]["action"], told[0]["resource_id"]) == ("request.refused", "create_pocket")
    assert told[0]["outcome"] == "FAILURE"
    assert told[0]["member_id"] == await member_id_of(viewer)
    assert told[0]["details"] == {"refused": "forbidden", "scope": "pockets.write"}
    assert [each["action"] for each in told[1:]] == ["customer.created"]


async def test_a_client_without_a_user_is_logged_as_a_client(bank, customer_desk):
    team = await join(bank, customer_desk.team.customer)
    team.user_id = None
    token = await token_for(bank, team)
    body = {"pocket_name": "x", "deposit_strategy_id": "UST-4W"}
    await customer_desk.ask("POST", "/api/v2/pockets/", body, status=201, token=token)
    told = (await customer_desk.get(PATH))["items"][0]
    assert (told["member_id"], told["member_name"], told["actor_type"]) == (None, "books", "CLIENT")
