"""Two programs for two members: one asks for a transfer and a rule, the other decides."""

from uuid import UUID

import pytest
from tests.client.bridge import in_thread

from billfold.client.responses import ApiError
from billfold.platform import ids


@pytest.fixture
async def members(customer_world, administrator):
    """Clients of two administrators, and two Pockets of their company."""
    customer = await customer_world.customer()
    calls = [await administrator(customer) for _ in range(2)]
    pockets = [await customer_world.funded(9_000_00, customer), await customer_world.pocket(customer)]
    return calls, [UUID(each.id) for each in pockets]


@in_thread
def test_a_client_requests_a_transfer_and_a_second_member_approves_it(members):
    (anna, ben), (reserve, payroll) = members
    asked = anna.request_approval_rule(name="All", required_approvals=1, approver_roles=["ADMIN"])
    assert ben.review_authorization_request(ben.authorization_request(asked.id), "APPROVED").applied_at
    (rule,) = anna.approval_rules()
    assert anna.approval_rule(rule.id) == rule
    order = {
        "id": ids.new(),
        "type": "ON_US",
        "origin_pocket_id": reserve,
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_00},
        "details": {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": payroll},
    }
    (reviewer,) = anna.transfer_reviewers()
    made = anna.request_transfer(order, reviewers=[reviewer.member_id])
    amount = {"type": "REQUESTED_AMOUNT", "amount_usdc": 2_00}
    anna.change_transfer_request(made.id, transfer=order | {"amount": amount})
    with pytest.raises(ApiError, match="content-changed"):
        ben.review_transfer_request(made, "APPROVED")
    done = ben.review_transfer_request(ben.transfer_request(made.id), "APPROVED", comment="Yes")
    assert (done.transfer.execution_status, done.transfer.amount.value) == ("COMPLETED", 2_00)
    with pytest.raises(ApiError, match="transfer-request-not-pending"):
        anna.cancel_transfer_request(made.id)
    assert [each.id for each in anna.transfer_requests(status="APPROVED")] == [made.id]
    anna.request_approval_rule_change(rule.id, required_approvals=2)
    anna.request_approval_rule_deletion(rule.id)
    waiting = ben.authorization_requests(**{"status[]": "PENDING"})
    assert {each.action for each in waiting} == {"approval_rule.update", "approval_rule.delete"}
