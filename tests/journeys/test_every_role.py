"""Every route of the Customer API for every role: what the role does not include is refused."""

import pytest
from tests.journeys import cases
from tests.support.customer_client import EVERYTHING, MemberDesk, Team, token_for
from tests.support.oauth_clients import new_key
from tests.support.partner_desk import UNKNOWN

from billfold.access.oauth.rules.scopes import PERSONAL_SCOPES, SCOPES
from billfold.access.team.rules import ROLES
from billfold.access.users.rules import PERMISSIONS

READS = {each for each in SCOPES if each.endswith(".read")} | PERSONAL_SCOPES
TRANSFERS = {"transfers.write", "counterparties.write"}
MANAGES = TRANSFERS | {"pockets.write", "transfers.approve"}
ADMINISTERS = {"team.write", "subscriptions.write", "approval_rules.write", "customer.write"}
WRITTEN = {
    "ADMIN": MANAGES | ADMINISTERS,
    "MANAGER": MANAGES,
    "APPROVER": {"transfers.approve"},
    "INITIATOR": TRANSFERS,
    "VIEWER": set(),
}
"""What each role may do besides reading, as the contract says it."""


NEEDED_BESIDES = {("DELETE", "/api/v1/notification-audiences/FUNDS_RECEIVED"): "team.write"}
"""What an operation asks of the role beside its scope (its PUT asks once its body is read)."""


NEEDED_INSTEAD = {("PATCH", "/api/v1/transfer-requests/{transfer_id}/status"): "transfers.approve"}
"""What an operation asks of the role in the place of its scope."""


def is_open(route, role):
    """Tell whether a role includes all that a route asks for."""
    if route in NEEDED_INSTEAD:
        return NEEDED_INSTEAD[route] in PERMISSIONS[role]
    needed = {cases.CUSTOMER[route][0], NEEDED_BESIDES.get(route, cases.CUSTOMER[route][0])}
    return needed <= PERMISSIONS[role]


def test_roles_include_what_the_contract_says():
    every = MANAGES | ADMINISTERS
    for role in ROLES:
        assert PERMISSIONS[role] & every == WRITTEN[role], role
        assert PERMISSIONS[role] >= READS
    assert "transfers.approve" not in PERMISSIONS["SERVICE"]


async def refused_with(api, table):
    """Return the routes that answer `forbidden`; ids are nobody's and bodies unreadable."""
    found = set()
    for method, path in table:
        filled = "/".join(UNKNOWN if each.startswith("{") else each for each in path.split("/"))
        body = b"" if method == "GET" else b"{"
        answer = await api.send(method, cases.as_published(filled), body)
        if answer.status_code == 403:
            assert answer.json()["code"] == "forbidden"
            found.add((method, path))
    return found


async def test_every_route_is_closed_to_exactly_the_roles_that_do_not_include_it(customer_desks):
    api = await customer_desks()
    for role in ROLES:
        member = await customer_desks(api.team.customer, role=role, scopes=EVERYTHING)
        expected = {route for route in cases.CUSTOMER if not is_open(route, role)}
        assert await refused_with(member, cases.CUSTOMER) == expected, role


@pytest.mark.parametrize("scopes", [("pockets.read", "team.read"), ("pockets.write",)])
async def test_every_route_is_closed_to_a_program_without_its_scope(customer_desks, scopes):
    api = await customer_desks()
    new = {"name": "x", "scopes": scopes, "public_key": new_key().pem, "profile": "documented"}
    made = await api.post("/api/v1/team/service-users/", new)
    its = Team(api.team.customer, made["client_id"], None, scopes=scopes)
    program = MemberDesk(api.bank, api.app, its, token=await token_for(api.bank, its))
    expected = {route for route, (scope, _) in cases.CUSTOMER.items() if scope not in scopes}
    assert await refused_with(program, cases.CUSTOMER) == expected
    await program.close()
