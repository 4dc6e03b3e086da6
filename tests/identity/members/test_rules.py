"""Who may be invited and given what, and what a team never loses."""

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


def test_what_was_typed_is_kept_in_one_form():
    found = rules.check_invited(InviteMember(**BEN))
    assert (found.first_name, found.email, found.phone_number) == ("Ben", "ben@northwind.example", "+12025550123")
    assert rules.check_invited(InviteMember(**BEN | {"phone_number": None})).phone_number is None


def test_every_mistake_is_told_at_once():
    wrong = {"first_name": "", "last_name": "x" * 51, "email": "x", "phone_number": "1"}
    with pytest.raises(InvalidInput) as refused:
        rules.check_invited(InviteMember(**BEN | wrong))
    assert [each.loc for each in refused.value.errors] == [(name,) for name in wrong]


@pytest.mark.parametrize("giver", [*rules.ROLES, "SERVICE"])
def test_a_role_is_given_by_whoever_may_change_the_team_and_has_all_of_it(giver):
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


def test_a_token_carries_what_role_and_scopes_both_include():
    assert rules.permissions_of("MANAGER", {"team.write"}) == set()
    assert rules.permissions_of("SERVICE", {"transfers.write"}) == {"transfers.write", "counterparties.write"}
    assert "transfers.approve" in rules.permissions_of("APPROVER", {"transfers.write"}) - {"transfers.write"}
    assert rules.permissions_of("SERVICE", {"authorization_requests.write"}) == set()
