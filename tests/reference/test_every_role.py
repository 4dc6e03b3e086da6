"""Every route of the Customer API for every role: what the role does not include is refused."""

import re

import pytest
from tests.reference.documents import DOCUMENTS, operations_of, scopes_of
from tests.reference.intruders import UNTRIED
from tests.support.oauth import new_key
from tests.support.world import EVERYTHING, UNKNOWN, MemberDesk, Team, token_for

from billfold.identity.members.rules import PERSONAL_SCOPES, ROLES
from billfold.identity.users.rules import PERMISSIONS
from billfold.oauth.rules.authorization_params import SCOPES

READS = {each for each in SCOPES if each.endswith(".read")} | PERSONAL_SCOPES
TRANSFERS = {"transfers.write", "counterparties.write"}
MANAGES = TRANSFERS | {"pockets.write", "transfers.approve"}
ADMINISTERS = {"team.write", "subscriptions.write", "approval_rules.write", "customer.write", "onboarding.write"}
WRITTEN = {
    "ADMIN": MANAGES | ADMINISTERS,
    "MANAGER": MANAGES,
    "APPROVER": {"transfers.approve"},
    "INITIATOR": TRANSFERS,
    "VIEWER": set(),
}
"""What each role may do besides reading, as the contract says it."""


NEEDED_BESIDES = {"clear_notification_audience": "team.write"}
"""The requirement of an operation on the role, besides its scope (its PUT asks once its body is read)."""


NEEDED_INSTEAD = dict.fromkeys(("decide_transfer_request", "decide_batch"), "transfers.approve")
"""What an operation asks of the role in the place of its scope."""


NEEDED = {
    name: {NEEDED_INSTEAD.get(name, scope), NEEDED_BESIDES.get(name, NEEDED_INSTEAD.get(name, scope))}
    for name, scope in scopes_of(DOCUMENTS["customer"]).items()
    if name not in UNTRIED
}
"""What a role must include for each operation."""


def test_role_permissions_match_the_contract():
    every = MANAGES | ADMINISTERS
    for role in ROLES:
        assert PERMISSIONS[role] & every == WRITTEN[role], role
        assert PERMISSIONS[role] >= READS
    assert "transfers.approve" not in PERMISSIONS["SERVICE"]


async def refused_to(api):
    """Return the operations that answer `forbidden`; ids are nobody's and bodies unreadable."""
    found = set()
    for name, method, path, _ in operations_of(DOCUMENTS["customer"]):
        if name in NEEDED:
            filled = re.sub(r"\{\w+\}", UNKNOWN, path.replace("{notification_type}", "FUNDS_RECEIVED"))
            answer = await api.send(method, filled, b"" if method == "GET" else b"{")
            if answer.status_code == 403:
                assert answer.json()["code"] == "forbidden"
                found.add(name)
    return found


async def test_every_route_is_forbidden_to_exactly_the_roles_without_its_permission(customer_desks):
    api = await customer_desks()
    for role in ROLES:
        member = await customer_desks(api.team.customer, role=role, scopes=EVERYTHING)
        expected = {name for name, needed in NEEDED.items() if not needed <= PERMISSIONS[role]}
        assert await refused_to(member) == expected, role


@pytest.mark.parametrize("scopes", [("pockets.read", "team.read"), ("pockets.write",)])
async def test_every_route_is_forbidden_to_a_service_user_without_its_scope(customer_desks, scopes):
    api = await customer_desks()
    new = {"name": "x", "scopes": scopes, "public_key": new_key().pem, "profile": "documented"}
    made = await api.post("/api/v1/team/service-users/", new)
    its = Team(api.team.customer, made["client_id"], None, scopes=scopes)
    program = MemberDesk(api.bank, api.app, its, token=await token_for(api.bank, its))
    expected = {name for name in NEEDED if scopes_of(DOCUMENTS["customer"])[name] not in scopes}
    assert await refused_to(program) == expected
    await program.close()
