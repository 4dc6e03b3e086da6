"""The rule that decides, and who may review when."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from billfold.approvals import rules
from billfold.approvals.types import (
    DEFAULT_REQUIREMENT,
    ApprovalRequirement,
    Reviewer,
    ReviewRow,
    Rule,
    StoredRequest,
    Verdict,
)
from billfold.identity.users.rules import Role
from billfold.platform import ids
from billfold.platform.errors import InvalidInput, Refused

NOW = datetime(2025, 6, 2, 13, tzinfo=UTC)
ANNA, BEN, CLEO = (ids.new() for _ in range(3))
NEEDS = rules.MAY_APPROVE


def rule(name, required=1, *, age=0, **fields):
    return Rule(
        rule_id=ids.new(),
        name=name,
        required_approvals=required,
        created_at=NOW - timedelta(days=age),
        updated_at=NOW,
        **fields,
    )


def refusal_of(check, *values, **fields):
    """Return the code with which a check refuses, or None."""
    try:
        check(*values, **fields)
    except Refused as refused:
        return refused.code


def decides(given, type_, cents):
    return [each.name for each in rules.matching_rules(given, "TRANSFER", type_=type_, amount=cents)]


def test_the_highest_tier_reached_by_the_amount_decides():
    tiers = [rule("small", 0), rule("large", 2, min_amount=10_000_00), rule("huge", 3, min_amount=100_000_00)]
    assert decides(tiers, "WIRE", 9_999_99) == ["small"]
    assert decides(tiers, "WIRE", 10_000_00) == ["large", "small"]
    assert decides(tiers, "ON_US", 100_000_00) == ["huge", "large", "small"]


def test_a_rule_for_the_transfer_type_takes_precedence_over_a_general_rule():
    given = [rule("all", 3), rule("wires", 1, transfer_types=("WIRE",))]
    assert decides(given, "WIRE", 1) == ["wires", "all"]
    assert decides(given, "USDC", 1) == ["all"]


def test_the_stricter_of_two_rules_with_different_specifics_decides():
    given = [rule("wires", 1, transfer_types=("WIRE",)), rule("large", 3, min_amount=1_000_00)]
    assert decides(given, "WIRE", 5_000_00) == ["large", "wires"]


@pytest.mark.parametrize(
    ("fields", "other", "order"),
    [
        ({"transfer_types": ("WIRE",), "min_amount": 5}, {"transfer_types": ("WIRE",)}, ["one", "other"]),
        ({"transfer_types": ("WIRE",), "min_amount": 1}, {"transfer_types": ("WIRE",)}, ["one", "other"]),
        ({"transfer_types": ("WIRE",), "min_amount": 5}, {"min_amount": 5}, ["one", "other"]),
        ({"transfer_types": ("WIRE", "ON_US"), "min_amount": 5}, {"transfer_types": ("WIRE",)}, ["other", "one"]),
        ({"min_amount": 9}, {"transfer_types": ("WIRE",)}, ["other", "one"]),
        ({}, {}, ["other", "one"]),
    ],
)
def test_the_more_specific_rule_decides_and_among_equals_the_stricter(fields, other, order):
    assert decides([rule("one", 1, **fields), rule("other", 2, **other)], "WIRE", 10) == order


def test_a_transfer_without_an_amount_reaches_no_tier():
    assert decides([rule("tier", 2, min_amount=1)], "WIRE", None) == []


def test_an_approval_requirement_carries_all_terms_of_its_rule():
    one = rule("Wires", 2, approver_roles=("MANAGER",), approver_ids=(ANNA, BEN), ordered=True)
    assert rules.requirement_of(one) == ApprovalRequirement(
        rule_id=one.rule_id, rule_name="Wires", required=2, roles=("MANAGER",), ids=(ANNA, BEN), ordered=True
    )


def test_disabled_rules_and_rules_for_a_different_action_do_not_apply():
    given = [rule("off", 3, enabled=False), rule("roles", 2, actions=("MEMBER_ROLE",))]
    assert decides(given, "WIRE", 1) == []
    assert [each.name for each in rules.matching_rules(given, "MEMBER_ROLE")] == ["roles"]


def test_only_a_stricter_rule_replaces_a_rule_that_cannot_be_met():
    small, large = rule("small", 0), rule("large", 2, min_amount=100)
    assert rules.stricter_requirements([large, small], large) == []
    assert rules.stricter_requirements([small], small) == [DEFAULT_REQUIREMENT]
    assert rules.stricter_requirements([small], rule("usual", 1)) == []
    assert [each.required for each in rules.stricter_requirements([small, large], small)] == [2, 1]


def test_approvals_out_of_order_are_refused():
    by_role = ApprovalRequirement(required=2, roles=("MANAGER", "ADMIN"), ordered=True)
    rules.check_turn(by_role, ANNA, "MANAGER", approvals=0)
    rules.check_turn(by_role, BEN, "ADMIN", approvals=1)
    by_id = ApprovalRequirement(required=2, ids=(ANNA, BEN), ordered=True)
    rules.check_turn(by_id, BEN, "APPROVER", approvals=1)
    for terms, awaited in ((by_role, "a member in the role MANAGER"), (by_id, "another member")):
        with pytest.raises(Refused, match=awaited) as refusal:
            rules.check_turn(terms, BEN, "ADMIN", approvals=0)
        assert refusal.value.code == "approval-out-of-order"


TEAM: dict[UUID, Role] = {ANNA: "MANAGER", BEN: "APPROVER"}


@pytest.mark.parametrize(
    ("terms", "approvals", "possible"),
    [
        ({"required": 2}, 0, True),
        ({"required": 3}, 0, False),
        ({"required": 3}, 1, True),
        ({"required": 2, "roles": ("APPROVER", "MANAGER"), "ordered": True}, 0, True),
        ({"required": 2, "roles": ("APPROVER", "APPROVER"), "ordered": True}, 0, False),
        ({"required": 2, "roles": ("APPROVER", "MANAGER"), "ordered": True}, 1, True),
        ({"required": 2, "ids": (BEN, ANNA), "ordered": True}, 0, True),
        ({"required": 2, "ids": (BEN, CLEO), "ordered": True}, 1, False),
        ({"required": 2, "ids": (CLEO, BEN), "ordered": True}, 1, True),
    ],
)
def test_a_request_is_blocked_when_the_remaining_approvers_cannot_approve_it(terms, approvals, possible):
    blocker = rules.find_blocker(ApprovalRequirement(rule_name="Wires", **terms), TEAM, approvals=approvals)
    assert (blocker is None) == possible
    assert possible or "The rule 'Wires'" in str(blocker)
    assert (" in its order" in str(blocker)) == (not possible and "ordered" in terms)


@pytest.mark.parametrize(
    ("fields", "place", "kind"),
    [
        ({"approver_roles": ("ADMIN", "VIEWER")}, ("approver_roles", 1), "enum"),
        ({"approver_ids": (ANNA, CLEO)}, ("approver_ids", 1), "value_error"),
        ({"approver_ids": (ANNA,), "required": 2}, ("approver_ids",), "too_short"),
        ({"ordered": True}, ("ordered",), "value_error"),
        ({"ordered": True, "approver_roles": ("ADMIN",), "required": 2}, ("ordered",), "value_error"),
        ({"ordered": True, "approver_ids": (ANNA, ANNA), "required": 2}, ("ordered",), "value_error"),
        ({"actions": ("MEMBER_ROLE",), "min_amount": 1}, ("min_amount_usdc",), "value_error"),
        ({"actions": ("MEMBER_ROLE",), "daily_cap": 1}, ("daily_cap_usdc",), "value_error"),
        ({"actions": ("MEMBER_ROLE",), "transfer_types": ("WIRE",)}, ("transfer_types",), "value_error"),
    ],
)
def test_an_approval_rule_that_the_team_cannot_meet_is_refused(fields, place, kind):
    with pytest.raises(InvalidInput) as wrong:
        rules.check_rule(rule("x", **fields), {ANNA, BEN})
    assert [(each.loc, each.type) for each in wrong.value.errors] == [(place, kind)]


def test_every_error_in_an_approval_rule_is_reported():
    wrong = rule("x", approver_roles=("VIEWER",), actions=("MEMBER_ROLE",), min_amount=1)
    with pytest.raises(InvalidInput) as refused:
        rules.check_rule(wrong, set())
    assert [(each.loc[0], each.type) for each in refused.value.errors] == [
        ("approver_roles", "enum"),
        ("min_amount_usdc", "value_error"),
    ]


def test_an_approval_rule_that_the_team_can_meet_is_accepted():
    rules.check_rule(rule("x", transfer_types=("WIRE",), min_amount=1, daily_cap=2), set())
    rules.check_rule(rule("x", 2, approver_ids=(ANNA, BEN)), {ANNA, BEN})
    rules.check_rule(rule("x", 2, approver_ids=(ANNA, BEN), ordered=True), {ANNA, BEN})
    rules.check_rule(rule("x", 2, approver_roles=("APPROVER", "APPROVER"), ordered=True), set())


@pytest.mark.parametrize(
    ("terms", "role", "may"),
    [
        ({}, "APPROVER", True),
        ({}, "INITIATOR", False),
        ({"roles": ("MANAGER",)}, "APPROVER", False),
        ({"roles": ("APPROVER",)}, "APPROVER", True),
        ({"ids": (BEN,)}, "APPROVER", True),
        ({"ids": (ANNA,)}, "APPROVER", False),
        ({"candidates": {ANNA: "APPROVER"}}, "APPROVER", False),
        ({"candidates": {BEN: "MANAGER"}}, "APPROVER", True),
        ({"candidates": {BEN: "MANAGER"}, "roles": ("APPROVER", "MANAGER")}, "APPROVER", True),
        ({"candidates": {BEN: "MANAGER"}, "roles": ("APPROVER", "MANAGER"), "ordered": True}, "APPROVER", False),
        ({"candidates": {BEN: "APPROVER"}, "roles": ("APPROVER", "MANAGER"), "ordered": True}, "APPROVER", True),
        ({"candidates": {BEN: "MANAGER"}, "ids": (BEN, ANNA), "ordered": True}, "APPROVER", True),
    ],
)
def test_only_eligible_members_review_and_in_an_ordered_rule_only_in_their_former_role(terms, role, may):
    requirement = ApprovalRequirement(**terms)
    fields: dict[str, Any] = {"user_id": None, "first_name": "", "last_name": "", "email": None, "role": role}
    for named in ((), (BEN,), (CLEO,)):
        found = rules.find_candidates([Reviewer(member_id=BEN, **fields)], requirement, named=named, needs=NEEDS)
        assert found == ({BEN: role} if may and CLEO not in named else {})
        refused = refusal_of(rules.check_reviewer, requirement, BEN, role, named=named, needs=NEEDS, is_requester=False)
        assert refused == (None if found else "forbidden" if role == "INITIATOR" else "not-a-reviewer")
    of_own = refusal_of(rules.check_reviewer, requirement, BEN, role, named=(), needs=NEEDS, is_requester=True)
    assert of_own == "self-approval"


@pytest.mark.parametrize(
    ("version", "decision", "names", "accepted"),
    [
        (None, "APPROVED", (None, None), True),
        (None, "APPROVED", (b"hash", 1), True),
        (None, "APPROVED", (None, 2), False),
        (2, "APPROVED", (b"hash", None), True),
        (2, "APPROVED", (None, 2), True),
        (2, "APPROVED", (b"hash", 1), False),
        (2, "APPROVED", (b"other", 2), False),
        (2, "APPROVED", (None, None), False),
        (2, "DENIED", (None, None), True),
    ],
)
def test_a_decision_about_other_content_is_refused(version, decision, names, accepted):
    request = StoredRequest(
        customer_id=CLEO,
        request_id=CLEO,
        content="{}",
        content_hash=b"hash",
        member_id=ANNA,
        user_id=None,
        client_id="",
        terms=DEFAULT_REQUIREMENT,
        status="PENDING",
        version=version,
        created_at=NOW,
        updated_at=NOW,
        expires_at=NOW,
    )
    refused = refusal_of(rules.check_content, Verdict(decision, None, *names), request)
    assert refused == (None if accepted else "content-changed")


def test_the_last_valid_approval_approves_and_one_denial_denies():
    row: dict[str, Any] = {"user_id": ANNA, "role": "ADMIN", "comment": None, "created_at": NOW}
    reviews = [
        *(ReviewRow(member_id=ANNA, decision="APPROVED", holds=holds, **row) for holds in (True, True, False)),
        ReviewRow(member_id=ANNA, decision="DENIED", holds=True, **row),
    ]
    approvals, three = rules.approvals_in(reviews), ApprovalRequirement(required=3)
    assert approvals == 2
    assert [rules.status_after(three, each, "APPROVED") for each in (1, approvals)] == ["PENDING", "APPROVED"]
    assert rules.status_after(three, approvals, "DENIED") == "DENIED"


@pytest.mark.parametrize(("role", "may"), [(None, False), ("VIEWER", False), ("INITIATOR", True)])
def test_a_request_is_blocked_when_its_requester_may_not_request(role, may):
    assert (rules.find_requester_blocker(role) is None) == may
