"""Who may be invited and given what, and what a team never loses."""

from typing import Any

import pytest

from billfold.access.team import rules
from billfold.access.team.types import InviteMember
from billfold.access.users.rules import PERMISSIONS
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


def test_a_person_gives_everything_and_a_program_what_it_has():
    rules.check_grantable(None, PERMISSIONS["ADMIN"])
    rules.check_grantable({"team.write"}, PERMISSIONS["VIEWER"])
    rules.check_grantable({"transfers.write"}, PERMISSIONS["INITIATOR"])
    for scopes, wanted in (
        ({"team.write"}, PERMISSIONS["INITIATOR"]),
        ({"team.write", "transfers.write"}, PERMISSIONS["MANAGER"]),
        ({"team.read"}, {"team.write"}),
    ):
        with pytest.raises(Refused, match="more than its own scopes"):
            rules.check_grantable(scopes, wanted)
