"""Reads as of an instant: the answers that were given then, whatever has happened since."""

from datetime import datetime

import asyncpg
import pytest
from tests.accounts.life import OPERATIONS, Life

from billfold.migrations.runner import read_migrations
from billfold.platform.dates import ET


@pytest.fixture
async def world(partner_desks):
    return await partner_desks("acme", features=("wires",))


@pytest.mark.parametrize("seed", [1])
async def test_every_read_as_of_an_instant_is_what_it_answered_then(world, customer_desks, seed):
    pocket = await world.pocket()
    member, colleague = [await customer_desks(pocket.customer) for _ in range(2)]
    await world.bank.pool.execute("UPDATE membership SET created_at = '2025-01-01'")  # its clock is not the wall's
    life = Life(world, member, colleague, pocket, seed=seed)
    await life.begin()
    await life.live(15)
    wrong = await life.replay()
    assert not wrong, wrong[:3]
    unread = {(each.path, access.proof) for each in OPERATIONS for access in each.access} - life.read
    assert not unread
    days = {at.astimezone(ET).date() for _, _, _, at, _ in life.kept}
    assert len(days) > 8
    assert len({str(then) for *_, then in life.kept}) > 200


async def test_as_of_gives_no_right_that_the_caller_lacks_now_and_nothing_from_before_it_was_there(
    world, other_partner, customer_desks
):
    earlier = (await world.bank.now()).isoformat()
    await world.later(hours=1)
    pocket = await world.funded(5_000_00)
    viewer = await customer_desks(pocket.customer, role="VIEWER")
    limited = await customer_desks(pocket.customer, scopes=("transfers.read",))
    owner = f"/api/v2/customers/{pocket.customer}/"
    await world.later(hours=1)
    then = (await world.bank.now()).isoformat()
    await world.later(hours=1)
    second = await world.pocket(pocket.customer)
    for path in (pocket.path, f"{pocket.path}trades/", f"{owner}pockets/", f"{owner}portfolio/", f"{owner}portals/"):
        await world.refused("GET", path, status=404, code="not-found", filters={"as_of": earlier})
        await other_partner.refused("GET", path, status=404, code="not-found", filters={"as_of": then})
    for path in (second.path, f"{second.path}transactions/", f"{second.path}earnings/"):
        await world.refused("GET", path, status=404, code="not-found", filters={"as_of": then})
    unknown = {"pocket_id[]": second.id, "as_of": then}
    await viewer.refused("GET", "/api/v2/pockets/", status=404, code="not-found", filters=unknown)
    for path in ("ach-debits/", "transfers/on-us/", "reversal-requests/", "card-disputes/", "wires/"):
        foreign = {"customer_id": pocket.customer, "as_of": then}
        await other_partner.refused("GET", f"/api/v1/{path}", status=404, code="not-found", filters=foreign)
        await world.refused(
            "GET", f"/api/v1/{path}", status=404, code="not-found", filters={**foreign, "as_of": earlier}
        )
    (wire,) = (await world.get("/api/v1/wires/", {"as_of": then}))["items"]
    for path in (f"/api/v1/wires/{wire['id']}/", f"/api/v1/wires/{wire['id']}/explain/"):
        await world.refused("GET", path, status=404, code="not-found", filters={"as_of": earlier})
        await other_partner.refused("GET", path, status=404, code="not-found", filters={"as_of": then})
    assert (await viewer.get(pocket.path, {"as_of": then}))["portfolio"]["total_value"]["value"] > 4_999_00
    for path in (pocket.path, "/api/v1/team/", "/api/v1/approval-rules/"):
        assert (await limited.send("GET", path, filters={"as_of": then})).status_code == 403
    team = await viewer.bank.pool.execute("UPDATE membership SET status = 'DEACTIVATED' WHERE role = 'VIEWER'")
    assert team == "UPDATE 1"
    assert (await viewer.send("GET", pocket.path, filters={"as_of": then})).status_code in {401, 403}


async def test_an_instant_that_has_not_come_or_has_no_offset_is_refused(world):
    pocket = await world.funded(5_000_00)
    await world.until("2025-06-03T10:00:00-04:00")
    for wrong in ("2031-01-01T00:00:00Z", "2025-06-03", "2025-06-02T10:00:00", "", "yesterday", "2025-02-30"):
        await world.invalid("GET", pocket.path, loc="query.as_of", filters={"as_of": wrong})
    twice = ["2025-06-02", "2025-06-02"], ["2025-06-02", "2030-01-01"]
    for never in ("2025-02-29", "0001-01-01", "2300-01-01", *twice):
        await world.invalid("GET", pocket.path, loc="query.as_of", filters={"as_of": never})
    for before in ("2024-02-29", "1600-01-01", "2025-03-09", "2025-03-09T02:30:00-05:00", "2024-11-03T01:30:00-04:00"):
        for path in (pocket.path, "/api/v1/wires/", "/api/v2/pockets/"):
            answer = await world.send("GET", path, filters={"as_of": before})
            assert answer.status_code == 404 or answer.json()["items"] == [], (path, before)
    body, changed = {"pocket_name": "Later"}, f"/api/v2/customers/{pocket.customer}/pockets/{pocket.id}/"
    await world.invalid("PATCH", changed, body, loc="query.as_of", filters={"as_of": "2025-06-02"})
    await world.wire(pocket, 7_000_00)
    closed = await world.get(pocket.path, {"as_of": "2025-06-02"})
    assert closed == await world.get(pocket.path, {"as_of": "2025-06-02T17:00:00-04:00"})
    assert closed["portfolio"]["total_value"]["value"] < 6_000_00
    at = await world.bank.now()
    await world.patch(changed, {"pocket_name": "Renamed"})
    await world.later(seconds=1)
    names = [
        (await world.get(pocket.path, {"as_of": each.isoformat()}))["pocket_name"]
        for each in (at - datetime.resolution, at)
    ]
    assert names[0] != names[1] == "Renamed"
    listed = f"/api/v2/customers/{pocket.customer}/pockets/"
    await world.pocket(pocket.customer)
    await world.later(hours=1)
    page = await world.get(listed, {"limit": 1, "as_of": (now := (await world.bank.now()).isoformat())})
    await world.invalid("GET", listed, loc="query.cursor", filters={"limit": 1, "cursor": page["next_page"]})
    assert (await world.get(listed, {"limit": 1, "cursor": page["next_page"], "as_of": now}))["items"]


async def test_earnings_as_of_an_instant_leave_out_due_work_that_was_late_then(world):
    pocket = await world.funded(900_000_00)
    await world.until("2025-07-03T12:00:00-04:00")  # the fee of June is due at the opening of July 1
    reads = [
        (f"{pocket.path}values/", {"date_from": "2025-06-30"}),
        (f"{pocket.path}earnings/", {"period": "range", "date_from": "2025-06-20", "date_to": "2025-07-02"}),
        ("/api/v2/earnings/", {"period": "range", "date_from": "2025-06-20", "date_to": "2025-07-02"}),
    ]
    then = [await world.get(path, filters) for path, filters in reads]
    now = (await world.bank.now()).isoformat()
    await world.later(hours=1)
    await world.wire(pocket, 1_00)
    assert [await world.get(path, filters) for path, filters in reads[:2]] != then[:2]
    assert [await world.get(path, {**filters, "as_of": now}) for path, filters in reads] == then


async def test_a_pocket_that_the_release_before_opened_is_missing_in_lists_and_refused_by_itself(world, bank_dsn):
    pocket = await world.funded(5_000_00)
    other, recent = await world.funded(3_000_00), await world.pocket(pocket.customer)
    now = {"as_of": (await world.bank.now()).isoformat()}
    owner = f"/api/v2/customers/{pocket.customer}/"
    conn = await asyncpg.connect(bank_dsn)
    await conn.execute("DELETE FROM pocket_version WHERE pocket_id = ANY($1)", [other.id, recent.id])
    lists = ("/api/v2/pockets/", "/api/v2/earnings/", f"{owner}pockets/")
    for path in lists[:2]:
        await world.refused("GET", path, status=409, code="history-not-kept", filters=now)
    await conn.execute("UPDATE schema_migration SET applied_at = '2024-01-01' WHERE name = '0018_as_of'")
    await conn.close()
    for path in lists:
        assert [each.get("id") or each["pocket_id"] for each in (await world.get(path, now))["items"]] == [pocket.id]
    assert (await world.get(f"{owner}portfolio/", now))["pockets"] == 1
    assert (await world.get(f"{owner}trades/", now))["items"]
    for path in (other.path, recent.path, f"{other.path}trades/"):
        await world.refused("GET", path, status=409, code="history-not-kept", filters=now)


async def test_a_pocket_from_before_states_were_kept_is_read_as_it_was_when_they_began(world, bank_dsn):
    pocket = await world.pocket()
    opened = (await world.bank.now()).isoformat()
    await world.later(hours=1)
    await world.wire(pocket, 5_000_00)
    kept, now = await world.get(pocket.path), (await world.bank.now()).isoformat()
    step = next(each for each in read_migrations() if each.name.endswith("as_of"))
    owner = await asyncpg.connect(bank_dsn)
    await owner.execute("DELETE FROM pocket_version")
    for _ in range(2):  # it may be run again
        await owner.execute(step.statements[-1])
    await owner.close()
    assert await world.get(pocket.path, {"as_of": now}) == kept
    refused = {"as_of": opened}
    await world.refused("GET", pocket.path, status=409, code="history-not-kept", filters=refused)
