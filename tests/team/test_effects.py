"""Effects of team changes: requests without a possible approver, and service users without a creator."""

from uuid import UUID

import pytest
from tests.support.approvals import CHANGES, REQUESTS, RULES, decide, member_id_of, on_us, path_of
from tests.support.oauth import new_key

from billfold.oauth import clients
from billfold.oauth.types import NewClient
from billfold.platform.clock import wall_now
from billfold.team.cli import deactivate_everywhere

TEAM = "/api/v1/team/"
TITLES = {
    "transfer": "A transfer can no longer be approved",
    "change": "A sensitive change can no longer be approved",
    "maker": "The maker of a key of",
}


async def notification_metadata(customer_desk, about):
    """Return the metadata of the notifications of this title, the newest first."""
    items = (await customer_desk.get("/api/v1/notifications/"))["items"]
    return [each["notification_metadata"] for each in items if each["title"].startswith(TITLES[about])]


@pytest.mark.parametrize(
    "change", [("PUT", {"role": "INITIATOR"}), ("PUT", {"status": "DEACTIVATED"}), ("DELETE", b"")], ids=str
)
async def test_a_team_change_that_removes_the_last_approver_blocks_and_reports_pending_requests(
    customer_desk, manager, customer_desks, funded, payroll_pocket, change
):
    asker = await customer_desks(customer_desk.team.customer, role="INITIATOR")
    by_asker = await asker.post(REQUESTS, on_us(funded, 2_00, to=payroll_pocket))
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    rule = await customer_desk.post(RULES, {"name": "All", "required_approvals": 1}, status=202)
    assert (made["blocked_reason"], rule["blocked_reason"]) == (None, None)
    method, body = change
    path = f"{TEAM}{await member_id_of(manager)}/"
    await customer_desk.ask(method, path, body, status=200)
    shown = await customer_desk.get(path_of(made))
    assert (shown["status"], "The default rule" in shown["blocked_reason"]) == ("PENDING", True)
    assert "The default rule" in (await customer_desk.get(f"{CHANGES}{rule['id']}/"))["blocked_reason"]
    listed = (await customer_desk.get(REQUESTS))["items"]
    assert {each["id"] for each in listed if each["blocked_reason"] is None} == {by_asker["id"]}
    assert await notification_metadata(customer_desk, "transfer") == [{"transfer_request_id": made["id"]}]
    assert await notification_metadata(customer_desk, "change") == [{"authorization_request_id": rule["id"]}]
    assert await notification_metadata(asker, "transfer") == [{"transfer_request_id": made["id"]}]

    await customer_desk.ask("PUT", path, {"role": "MANAGER", "status": "ACTIVE"}, status=200)
    assert (await customer_desk.get(path_of(made)))["blocked_reason"] is None
    assert (await decide(customer_desk, by_asker))["status"] == "APPROVED"


async def test_registering_a_key_that_disqualifies_the_last_reviewer_is_reported(
    customer_desk, customer_desks, service_users, funded, payroll_pocket
):
    second = await customer_desks(customer_desk.team.customer)
    program, told = await service_users(second, "transfers.write", "transfers.read")
    made = await program.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    await customer_desk.post(f"{TEAM}service-users/{told['member_id']}/keys/", {"public_key": new_key().pem})
    assert await notification_metadata(customer_desk, "transfer") == [{"transfer_request_id": made["id"]}]


@pytest.mark.parametrize("change", [("PUT", {"role": "MANAGER"}), ("DELETE", b"")], ids=str)
async def test_administrators_are_notified_of_service_users_of_a_removed_creator(
    customer_desk, customer_desks, service_users, change
):
    second = await customer_desks(customer_desk.team.customer)
    program, first = await service_users(second, "team.read", "team.write")
    new = {"name": "By Ledger", "scopes": ["team.read"], "public_key": new_key().pem}
    inner = await program.post(f"{TEAM}service-users/", new)
    await service_users(customer_desk, "team.read")
    method, body = change
    await customer_desk.ask(method, f"{TEAM}{await member_id_of(second)}/", body, status=200)
    by_member = {each["member_id"] for each in await notification_metadata(customer_desk, "maker")}
    assert by_member == {first["member_id"], inner["member_id"]}
    assert (await program.get(TEAM))["object_type"] == "Team"
    await customer_desk.ask("DELETE", f"{TEAM}{first['member_id']}/", status=200)
    newest, *before = await notification_metadata(customer_desk, "maker")
    assert (newest["member_id"], len(before)) == (inner["member_id"], 2)


async def test_an_operator_deactivation_notifies_about_applications_of_the_member(customer_desk, customer_desks):
    second = await customer_desks(customer_desk.team.customer)
    bank, key = customer_desk.bank, new_key().pem
    new = NewClient(
        name="Books",
        scopes=("pockets.read",),
        redirect_uris=("https://books.example/",),
        owner_id=UUID(customer_desk.team.customer),
    )
    async with bank.pool.acquire() as conn, conn.transaction():
        by = UUID(await member_id_of(second))
        client, _ = await clients.register_client_with_key(conn, new, key, now=wall_now(), wall=wall_now(), by=by)
        await deactivate_everywhere(bank, conn, second.team.user_id)
    assert await notification_metadata(customer_desk, "maker") == [{"client_id": client.client_id}]
