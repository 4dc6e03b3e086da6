"""Audiences through the Customer API: default, chosen, empty, cleared."""

from uuid import UUID

from tests.support.events import tell
from tests.support.world import UNKNOWN

from billfold.events.notifications.kinds import NOTIFICATION_TYPES
from billfold.identity.members.store import deactivate_member
from billfold.platform.clock import wall_now

PATH = "/api/v1/notification-audiences/"
FUNDS = f"{PATH}FUNDS_RECEIVED/"
DEFAULT = {
    "notification_type": "FUNDS_RECEIVED",
    "roles": ["ADMIN", "MANAGER"],
    "user_ids": [],
    "is_default": True,
    "object_type": "NotificationAudience",
}


async def put(customer_desk, body, path=FUNDS):
    return (await customer_desk.ask("PUT", path, body, status=200)).json()


async def test_every_configurable_notification_type_is_listed_with_its_audience(customer_desk):
    listed = await customer_desk.get(PATH)
    assert listed["object_type"] == "List"
    names = [each["notification_type"] for each in listed["items"]]
    assert names == [kind.name for kind in NOTIFICATION_TYPES.values() if kind.configurable]
    assert all(each["is_default"] for each in listed["items"])
    await put(customer_desk, {"roles": ["VIEWER"], "user_ids": []})
    chosen = [each for each in (await customer_desk.get(PATH))["items"] if not each["is_default"]]
    assert chosen == [DEFAULT | {"roles": ["VIEWER"], "is_default": False}]


async def test_an_empty_audience_notifies_no_member_and_clearing_it_restores_the_default(customer_desk):
    assert await customer_desk.get(FUNDS) == DEFAULT
    nobody = DEFAULT | {"roles": [], "user_ids": [], "is_default": False}
    assert await put(customer_desk, {"roles": [], "user_ids": []}) == nobody
    assert await customer_desk.get(FUNDS) == nobody
    assert await tell(customer_desk) == 0
    await customer_desk.ask("DELETE", FUNDS, status=204)
    await customer_desk.ask("DELETE", FUNDS, status=204)
    assert await customer_desk.get(FUNDS) == DEFAULT
    assert await tell(customer_desk) == 1
    log = (await customer_desk.get("/api/v1/team/audit-logs/"))["items"]
    assert [each["action"] for each in log[:2]] == ["notification_audience.cleared", "notification_audience.updated"]


async def test_an_audience_of_roles_and_users_notifies_each_member_once(customer_desk, customer_desks):
    viewer = await customer_desks(customer_desk.team.customer, role="VIEWER")
    him, me = str(viewer.team.user_id), str(customer_desk.team.user_id)
    chosen = await put(customer_desk, {"roles": ["ADMIN", "ADMIN"], "user_ids": [him, me, him]})
    assert (chosen["roles"], chosen["user_ids"]) == (["ADMIN"], [him, me])
    assert await tell(customer_desk) == 2
    assert await put(customer_desk, {"user_ids": [him]}) | {"user_ids": []} == DEFAULT | {
        "roles": [],
        "is_default": False,
    }
    assert await tell(customer_desk) == 1


async def test_a_deactivated_member_of_an_audience_is_not_notified(customer_desk, customer_desks):
    viewer = await customer_desks(customer_desk.team.customer, role="VIEWER")
    await put(customer_desk, {"roles": [], "user_ids": [str(viewer.team.user_id)]})
    left = UUID(customer_desk.team.customer), viewer.team.user_id
    await deactivate_member(customer_desk.bank.pool, *left, now=wall_now())
    assert await tell(customer_desk) == 0
    body = {"roles": [], "user_ids": [str(viewer.team.user_id)]}
    await customer_desk.invalid("PUT", FUNDS, body, loc="body.user_ids.0")


async def test_unknown_roles_and_users_of_an_audience_are_reported(customer_desk, other_customer):
    me = str(customer_desk.team.user_id)
    for body, loc in (
        ({"roles": ["ADMIN", "OWNER"], "user_ids": []}, "body.roles.1"),
        ({"roles": ["SERVICE"], "user_ids": []}, "body.roles.0"),
        ({"roles": [], "user_ids": [me, UNKNOWN]}, "body.user_ids.1"),
        ({"roles": [], "user_ids": [str(other_customer.team.user_id)]}, "body.user_ids.0"),
        ({"roles": [], "user_ids": ["x"]}, "body.user_ids.0"),
        ({}, "body"),
    ):
        await customer_desk.invalid("PUT", FUNDS, body, loc=loc)
    assert await customer_desk.get(FUNDS) == DEFAULT


async def test_a_fixed_audience_is_readable_but_not_configurable(customer_desk):
    fixed = f"{PATH}SECURITY_ALERT/"
    told = await customer_desk.get(fixed)
    assert (told["roles"], told["is_default"]) == (["ADMIN"], True)
    code = "notification-type-not-configurable"
    await customer_desk.refused("PUT", fixed, {"roles": [], "user_ids": []}, status=403, code=code)
    await customer_desk.refused("DELETE", fixed, status=403, code=code)
    log = (await customer_desk.get("/api/v1/team/audit-logs/"))["items"]
    assert [each["outcome"] for each in log[:2]] == ["FAILURE", "FAILURE"]


async def test_an_unknown_notification_type_is_not_found(customer_desk):
    unknown = f"{PATH}BIRTHDAY/"
    for method, body in (("GET", b""), ("PUT", {"roles": [], "user_ids": []}), ("DELETE", b"")):
        await customer_desk.refused(method, unknown, body, status=404, code="not-found")


async def test_changing_an_audience_requires_an_administrator(customer_desk, customer_desks):
    manager = await customer_desks(customer_desk.team.customer, role="MANAGER")
    body: dict[str, list[str]] = {"roles": [], "user_ids": []}
    await manager.refused("PUT", FUNDS, body, status=403, code="forbidden")
    await manager.refused("DELETE", FUNDS, status=403, code="forbidden")
    assert await manager.get(FUNDS) == DEFAULT
