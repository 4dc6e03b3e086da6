"""Rules of teams: who may be invited with which role, and that a team keeps an administrator."""

from typing import Any

import pytest

from billfold.identity.members import rules
from billfold.identity.members.rules import PERSONAL_SCOPES, InviteMember
from billfold.platform.errors import InvalidInput, Refused

BEN: dict[str, Any] = {
    "first_name": " Ben ",
    "last_name": "Ode",
    "email": " Ben@Northwind.Example",
    "phone_number": "+1 202-555-0123",
    "role": "VIEWER",
}


def test_invited_member_fields_are_normalized():
    found = rules.check_invited(InviteMember(**BEN))
    assert (found.first_name, found.email, found.phone_number) == ("Ben", "ben@northwind.example", "+12025550123")
    assert rules.check_invited(InviteMember(**BEN | {"phone_number": None})).phone_number is None


def test_all_errors_of_an_invitation_are_reported_together():
    wrong = {"first_name": "", "last_name": "x" * 51, "email": "x", "phone_number": "1"}
    with pytest.raises(InvalidInput) as refused:
        rules.check_invited(InviteMember(**BEN | wrong))
    assert [each.loc for each in refused.value.errors] == [(name,) for name in wrong]


@pytest.mark.parametrize("giver", [*rules.ROLES, "SERVICE"])
def test_granting_a_role_requires_team_write_and_all_its_permissions(giver):
    own = rules.permissions_of(giver)
    for role in rules.ROLES:
        gift = rules.permissions_of(role)
        if "team.write" in own and gift <= own | PERSONAL_SCOPES:
            rules.check_grant(own, gift)
        else:
            with pytest.raises(Refused, match=r"grant more than|Only an administrator"):
                rules.check_grant(own, gift)
    assert [role for role in rules.ROLES if rules.permissions_of(role) <= rules.permissions_of("SERVICE")] == [
        "INITIATOR",
        "VIEWER",
    ]


def test_token_permissions_are_the_intersection_of_role_and_scopes():
    assert rules.permissions_of("MANAGER", {"team.write"}) == set()
    assert rules.permissions_of("SERVICE", {"transfers.write"}) == {"transfers.write", "counterparties.write"}
    assert "transfers.approve" in rules.permissions_of("APPROVER", {"transfers.write"}) - {"transfers.write"}
    assert rules.permissions_of("SERVICE", {"authorization_requests.write"}) == set()
