"""Notifications through the Customer API: users read their own, service users all of them."""

from uuid import UUID

from tests.support.events import tell
from tests.support.world import join, token_for

from billfold.events.email.outbox import claim_emails, open_email
from billfold.events.notifications import payment_notifications
from billfold.identity.members.store import deactivate_member
from billfold.identity.users.store import find_user_by_email
from billfold.platform.clock import wall_now
from billfold.platform.errors import Unavailable

PATH = "/api/v1/notifications/"


async def titles(customer_desk, **filters):
    return [each["title"] for each in (await customer_desk.get(PATH, filters))["items"]]


async def test_a_member_reads_notifications_and_marks_them(customer_desk):
    assert (await customer_desk.get(PATH))["items"] == []
    assert await tell(customer_desk, metadata={"amount_usdc": 100}) == 1
    bank = customer_desk.bank
    assert "wire" not in await bank.pool.fetchval("SELECT description FROM notification")
    (told,) = (await customer_desk.get(PATH))["items"]
    assert told | {"id": "", "created_at": ""} == {
        "id": "",
        "title": "Money arrived",
        "description": "A wire of $1.00.",
        "type": "FUNDS_RECEIVED",
        "status": "UNREAD",
        "created_at": "",
        "notification_metadata": {"amount_usdc": 100},
        "object_type": "CustomerNotification",
    }
    one = f"{PATH}{told['id']}/"
    assert await customer_desk.get(one) == told
    for status in ("READ", "READ", "UNREAD", "READ"):
        assert await customer_desk.patch(one, {"status": status}) == told | {"status": status}
        other = "UNREAD" if status == "READ" else "READ"
        assert await titles(customer_desk, status=status) == ["Money arrived"]
        assert await titles(customer_desk, status=other) == []
    log = (await customer_desk.get("/api/v1/team/audit-logs/"))["items"]
    marked = [each["details"] for each in log if each["action"] == "notification.updated"]
    assert marked == [{"status": "READ"}, {"status": "UNREAD"}, {"status": "READ"}]
    assert await tell(customer_desk) == 1
    for unread in (1, 0):
        assert (await customer_desk.get(f"{PATH}unread/"))["count"] == unread
        assert (await customer_desk.post(f"{PATH}mark-all-read/", {}, status=200))["count"] == 0
    log = (await customer_desk.get("/api/v1/team/audit-logs/"))["items"]
    assert len([each for each in log if each["action"] == "notification.updated"]) == len(marked) + 1


async def test_incoming_money_raises_a_notification_immediately(customer_desk, customer_world, monkeypatch):
    async def no_node(_):
        raise Unavailable("a node does not answer")

    pocket = await customer_desk.pocket(name="Payroll")
    await customer_world.wire(pocket, 25_000_00)
    await customer_world.ach(pocket, 12_50)
    with monkeypatch.context() as away:
        away.setattr(payment_notifications, "await_prepared", no_node)
        assert (await customer_desk.get(PATH))["items"] == []
        assert (await customer_desk.get(f"{PATH}unread/"))["count"] == 0
    ach, wire = (await customer_desk.get(PATH))["items"]
    assert wire["description"] == "A wire of $25,000.00 from Contoso arrived in the Pocket Payroll."
    assert ach["description"] == "An ACH credit of $12.50 from FakeCompany arrived in the Pocket Payroll."
    assert {wire["type"], ach["type"]} == {"FUNDS_RECEIVED"}
    assert wire["notification_metadata"]["amount_usdc"] == 25_000_00
    entry = {"portal_id": pocket.portal, "amount_usdc": 3_00, "direction": "DEBIT"}
    await customer_world.ask("POST", "/api/v1/sandbox/ach/entries/", entry, status=202)
    debit = (await customer_desk.get(PATH))["items"][0]
    assert debit["description"] == "An ACH debit of $3.00 by FAKECOMPANY was collected from the Pocket Payroll."
    assert debit["type"] == "TRANSFER_COMPLETED"
    assert (await customer_desk.get(PATH, {"type[]": "TRANSFER_COMPLETED"}))["items"] == [debit]


async def test_notifications_have_a_separate_list_and_status_for_each_member(
    customer_desk, customer_desks, other_customer
):
    manager = await customer_desks(customer_desk.team.customer, role="MANAGER")
    viewer = await customer_desks(customer_desk.team.customer, role="VIEWER")
    assert await tell(customer_desk) == 2
    (mine,) = (await customer_desk.get(PATH))["items"]
    await customer_desk.patch(f"{PATH}{mine['id']}/", {"status": "READ"})
    assert (await manager.get(f"{PATH}{mine['id']}/"))["status"] == "UNREAD"
    for who in (viewer, other_customer):
        assert await titles(who) == []
        for method, body in (("GET", b""), ("PATCH", {"status": "READ"})):
            await who.refused(method, f"{PATH}{mine['id']}/", body, status=404, code="not-found")


async def test_notifications_are_paged_and_filtered_by_status(customer_desk):
    for number in range(5):
        await tell(customer_desk, title=f"{number}")
    everything = await customer_desk.pages(PATH)
    assert [each["title"] for each in everything] == ["4", "3", "2", "1", "0"]
    for each in everything[::2]:
        await customer_desk.patch(f"{PATH}{each['id']}/", {"status": "READ"})
    assert [each["title"] for each in await customer_desk.pages(PATH, {"status": "UNREAD"})] == ["3", "1"]
    assert [each["title"] for each in await customer_desk.pages(PATH, {"status": "READ"})] == ["4", "2", "0"]
    cursor = (await customer_desk.get(PATH, {"limit": 1}))["next_page"]
    await customer_desk.invalid("GET", PATH, loc="query.cursor", filters={"cursor": cursor, "status": "READ"})


async def test_a_service_user_sees_all_notifications_and_cannot_mark_them_read(bank, customer_desk):
    await tell(customer_desk)
    team = await join(bank, customer_desk.team.customer, role="VIEWER")
    team.user_id = None
    token = await token_for(bank, team)
    (told,) = (await customer_desk.ask("GET", PATH, status=200, token=token)).json()["items"]
    assert told["status"] is None
    one = f"{PATH}{told['id']}/"
    assert (await customer_desk.ask("GET", one, status=200, token=token)).json() == told
    await customer_desk.refused("PATCH", one, {"status": "READ"}, status=403, code="forbidden", token=token)
    filters = {"status": "UNREAD"}
    empty = await customer_desk.ask("GET", PATH, status=200, token=token, filters=filters)
    assert empty.json()["items"] == []


async def test_an_email_goes_to_the_audience_and_not_to_former_members(customer_desk, customer_desks):
    manager = await customer_desks(customer_desk.team.customer, role="MANAGER")
    await deactivate_member(
        customer_desk.bank.pool, UUID(customer_desk.team.customer), manager.team.user_id, now=wall_now()
    )
    assert await tell(customer_desk) == 1
    bank = customer_desk.bank
    [letter] = [open_email(row, bank.vault) for row in await claim_emails(bank.pool, wall_now())]
    user = await find_user_by_email(bank.pool, bank.vault, letter.recipient)
    assert user
    assert user.user_id == customer_desk.team.user_id
