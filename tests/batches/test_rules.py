"""The strictest requirement of a list: members who meet it meet each of the others."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from billfold.approvals.rules import may_review
from billfold.approvals.types import ApprovalRequirement
from billfold.batches.rules import is_enough, strictest
from billfold.identity.users.rules import Role
from billfold.platform import ids

_ROLES: tuple[Role, ...] = ("ADMIN", "ADMIN", "MANAGER", "APPROVER")
TEAM = [(ids.new(), role) for role in _ROLES]
REQUIREMENTS = st.builds(
    ApprovalRequirement,
    rule_id=st.uuids(),
    required=st.integers(0, 3),
    roles=st.sets(st.sampled_from(["ADMIN", "MANAGER", "APPROVER"])).map(tuple),
    ids=st.sets(st.sampled_from([each for each, _ in TEAM])).map(tuple),
)


def met_by(terms, approvers):
    able = [each for each in approvers if may_review(terms, *each, needs="transfers.approve")]
    return len(able) >= terms.required


@given(st.lists(REQUIREMENTS, min_size=1, max_size=4))
def test_members_who_meet_the_strictest_requirement_meet_every_other(requirements):
    found = strictest(requirements)
    if found is None:
        assert len(requirements) > 1
        return
    for count in range(len(TEAM) + 1):
        for approvers in combinations(TEAM, count):
            able = [each for each in approvers if may_review(found, *each, needs="transfers.approve")]
            if len(able) >= found.required:
                assert all(met_by(each, able) for each in requirements)


def test_an_order_of_approvers_is_enough_for_a_number_of_them_but_not_the_reverse():
    first, second = TEAM[0][0], TEAM[2][0]
    ordered = ApprovalRequirement(rule_id=ids.new(), required=2, ids=(first, second), ordered=True)
    any_two = ApprovalRequirement(rule_id=ids.new(), required=2)
    assert is_enough(ordered, any_two)
    assert not is_enough(any_two, ordered)
    assert strictest([any_two, ordered, ApprovalRequirement(required=0)]) == ordered
    assert strictest([]) is None
