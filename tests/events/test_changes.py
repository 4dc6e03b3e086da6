"""Events of changes, raised where the change is written, or by a job of its transaction."""

import json
from typing import Any
from uuid import UUID

from tests.support import payees
from tests.support.applications import run_jobs
from tests.support.approvals import member_id_of, on_us, path_of

from billfold.accounts.customers.commands import SetCustomerState
from billfold.accounts.pockets.commands import SetPocketState
from billfold.ledger.customers import CustomerStatus
from billfold.ledger.types import PocketStatus
from billfold.platform import ids


async def told(bank, customer, *kinds):
    """Return the kind and the payload of each event of these families."""
    rows = await bank.pool.fetch("SELECT kind, payload FROM event WHERE customer_id = $1 ORDER BY event_no", customer)
    return [(row["kind"], json.loads(row["payload"])) for row in rows if row["kind"].startswith(kinds)]


async def test_changes_of_pockets_portals_payees_and_customers_raise_events(world):
    pocket = await world.pocket()
    other = await world.pocket(pocket.customer)
    customer, path = UUID(pocket.customer), f"/api/v2/customers/{pocket.customer}/pockets/{other.id}/"
    await world.patch(path, {"pocket_name": "Renamed"})
    state: dict[str, Any] = {"caller": "operator", "customers": (customer,), "key": ids.new()}
    await world.bank.engine.submit(SetPocketState(**state, pocket_id=UUID(other.id), status=PocketStatus.FROZEN))
    await world.bank.engine.submit(
        SetPocketState(**state | {"key": ids.new()}, pocket_id=UUID(other.id), status=PocketStatus.OPEN)
    )
    for _ in range(2):  # The second changes nothing.
        switch = SetPocketState(**state | {"key": ids.new()}, pocket_id=UUID(other.id), real_time_yield=True)
        await world.bank.engine.submit(switch)
    await world.patch(path, {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"})
    own = {"pocket_id": other.id}
    created = []
    for each in (pocket, other):
        made = {"pocket_id": each.id, "status": "OPEN"}
        created += [("pocket.created", made), ("portal.created", made | {"portal_id": each.portal})]
    assert await told(world.bank, customer, "pocket.", "portal.") == [
        *created,
        ("pocket.updated", {**own, "status": "OPEN"}),
        ("pocket.updated", {**own, "status": "FROZEN"}),
        *[("pocket.updated", {**own, "status": "OPEN"})] * 2,
        ("portal.updated", {**own, "portal_id": other.portal, "status": "CLOSED"}),
        ("pocket.updated", {**own, "status": "CLOSED"}),
    ]
    paid = f"/api/v2/customers/{customer}/counterparties/"
    payee = await world.post(paid, payees.wire())
    await world.patch(f"{paid}{payee['id']}/", {"display_name": "Old"})
    await world.patch(f"{paid}{payee['id']}/", {"status": "UNLINKED"})
    assert await told(world.bank, customer, "counterparty.") == [
        ("counterparty.created", {"counterparty_id": payee["id"], "status": payee["status"]}),
        ("counterparty.updated", {"counterparty_id": payee["id"], "status": "UNLINKED"}),
    ]
    for status in (CustomerStatus.FROZEN, CustomerStatus.OPEN):
        freeze = SetCustomerState(
            **state | {"key": ids.new()}, status=status, reason="Court order", references=(customer,)
        )
        await world.bank.engine.submit(freeze)
    statuses = [each["status"] for _, each in await told(world.bank, customer, "customer.")]
    assert statuses == ["FROZEN", "OPEN"]


async def test_requests_and_members_raise_the_event_of_what_is_true_when_the_job_runs(world, customer_desks):
    pocket = await world.funded(1_000_00)
    other, customer = await world.pocket(pocket.customer), UUID(pocket.customer)
    # One member may make one request a second.
    anna, ben, cara, dan = [await customer_desks(pocket.customer) for _ in range(4)]
    asked = {**on_us(pocket, 10_00, to=other), "external_id": "pay-1", "metadata": {"run": "7"}}
    request = await anna.post("/api/v1/transfer-requests/", asked)
    assert (request["external_id"], request["metadata"]) == ("pay-1", {"run": "7"})
    await run_jobs(world.bank)
    await run_jobs(world.bank)
    for filters in ({"external_id": "pay-1"}, {"metadata[run]": "7"}):
        assert [each["id"] for each in (await anna.get("/api/v1/transfer-requests/", filters))["items"]] == [
            request["id"]
        ]
    twice = {**on_us(pocket, 10_00, to=other), "external_id": "pay-1"}
    taken = await ben.refused("POST", "/api/v1/transfer-requests/", twice, status=409, code="external-id-taken")
    assert taken["id"] == request["id"]
    changed = await anna.patch(path_of(request), {"metadata": {"run": "8"}})
    assert (changed["version"], changed["external_id"], changed["metadata"]) == (1, "pay-1", {"run": "8"})
    await anna.ask("DELETE", path_of(request), status=204)
    await run_jobs(world.bank)
    events = await told(world.bank, customer, "transfers.request.")
    assert [each["status"] for _, each in events] == ["PENDING", "CANCELLED"]
    # A request that is refused leaves no note behind: its id is free for the next one.
    too_much = {**on_us(pocket, 10_00, to=other, reviewers=[str(ids.new())]), "external_id": "pay-2"}
    await cara.ask("POST", "/api/v1/transfer-requests/", too_much, status=422)
    again = {**on_us(pocket, 10_00, to=other), "external_id": "pay-2"}
    assert (await dan.post("/api/v1/transfer-requests/", again))["external_id"] == "pay-2"


async def test_each_change_of_a_member_raises_an_event_while_the_clock_stands_still(world, customer_desks):
    customer = UUID(await world.customer())
    anna, ben = [await customer_desks(str(customer)) for _ in range(2)]
    member_id = await member_id_of(ben)
    roles = ("VIEWER", "APPROVER", "VIEWER")
    for role in roles:
        await anna.ask("PUT", f"/api/v1/team/{member_id}/", {"role": role}, status=200)
        await run_jobs(world.bank)
    # An invitation that is gone when the job runs is not reported, and fails nothing.
    person = {"first_name": "Dora", "last_name": "Ode", "email": "dora@northwind.example", "role": "MANAGER"}
    invited = (await anna.ask("POST", "/api/v1/team/invite/", person, status=201)).json()["member_id"]
    await anna.ask("PUT", f"/api/v1/team/{invited}/", {"role": "VIEWER"}, status=200)
    await anna.ask("DELETE", f"/api/v1/team/{invited}/invite/", status=200)
    await run_jobs(world.bank)
    shown = [{"member_id": member_id, "role": role, "status": "ACTIVE"} for role in roles]
    assert await told(world.bank, customer, "team.") == [("team.member.updated", each) for each in shown]
