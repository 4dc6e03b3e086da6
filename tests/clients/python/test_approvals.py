"""Two programs for two members: one asks for a transfer and a rule, the other decides."""

from uuid import UUID

import pytest
from tests.clients.python.bridge import in_thread

from billfold.platform import ids
from billfold_client.errors import ApiError


@pytest.fixture
async def members(customer_world, administrator):
    """Clients of two administrators, and two Pockets of their company."""
    customer = await customer_world.customer()
    calls = [await administrator(customer) for _ in range(2)]
    pockets = [await customer_world.funded(9_000_00, customer), await customer_world.pocket(customer)]
    return calls, [UUID(each.id) for each in pockets]


def decide(decision, request, **fields):
    """Approve what was read."""
    return decision(request.id, status="APPROVED", content_hash=request.content_hash, **fields)


@in_thread
def test_a_client_requests_a_transfer_and_a_second_member_approves_it(members):
    (anna, ben), (reserve, payroll) = members
    asked = anna.create_approval_rule(name="All", required_approvals=1, approver_roles=["ADMIN"])
    assert decide(ben.decide_authorization_request, ben.get_authorization_request(asked.id)).applied_at
    (rule,) = anna.list_approval_rules().items
    assert anna.get_approval_rule(rule.id) == rule
    order = {
        "id": ids.new(),
        "type": "ON_US",
        "origin_pocket_id": reserve,
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_00},
        "details": {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": payroll},
    }
    (reviewer,) = anna.list_transfer_reviewers().items
    made = anna.create_transfer_request(transfer=order, reviewers=[reviewer.member_id])
    amount = {"type": "REQUESTED_AMOUNT", "amount_usdc": 2_00}
    anna.update_transfer_request(made.id, transfer=order | {"amount": amount})
    with pytest.raises(ApiError, match="content-changed"):
        decide(ben.decide_transfer_request, made)
    done = decide(ben.decide_transfer_request, ben.get_transfer_request(made.id), comment="Yes")
    assert (done.transfer.execution_status, done.transfer.amount.value) == ("COMPLETED", 2_00)
    with pytest.raises(ApiError, match="transfer-request-not-pending"):
        anna.cancel_transfer_request(made.id)
    assert [each.id for each in anna.list_transfer_requests(status="APPROVED")] == [made.id]
    anna.update_approval_rule(rule.id, required_approvals=2)
    anna.delete_approval_rule(rule.id)
    waiting = ben.list_authorization_requests(status=["PENDING"])
    assert {each.action for each in waiting} == {"approval_rule.update", "approval_rule.delete"}
