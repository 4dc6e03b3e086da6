"""An administrator's program looks after the team; a service user it makes works, until it ends."""

import pytest
from tests.clients.python.bridge import in_thread
from tests.clients.python.test_customer_api import as_program, registration_of
from tests.support.oauth import new_key

from billfold_client.errors import ApiError

BEN = {"first_name": "Ben", "last_name": "Ode", "email": "ben@northwind.example", "role": "VIEWER"}


@pytest.fixture
async def calls(customer_world, administrator):
    """A client of the only administrator of a customer."""
    return await administrator(await customer_world.customer())


@in_thread
def test_members_are_invited_changed_and_deactivated(calls):
    first, *others = [each.members for each in calls.get_team().groups]
    assert (len(first), others) == (1, [[], [], []])
    made = calls.invite_team_member(**BEN, idempotency_key="ben")
    again = calls.invite_team_member(**BEN, idempotency_key="ben")
    assert made == again
    assert calls.update_team_member(made.member_id, role="APPROVER").role == "APPROVER"
    assert calls.resend_invite(made.member_id).status == "PENDING"
    assert calls.cancel_invite(made.member_id).member_id == made.member_id
    with pytest.raises(ApiError, match="404"):
        calls.get_team_member(made.member_id)
    with pytest.raises(ApiError, match="last-administrator"):
        calls.deactivate_team_member(first[0].member_id)


@in_thread
def test_a_service_user_works_with_its_scopes_until_its_key_or_membership_ends(bank, calls, make_client):
    key, next_key = new_key(), new_key()
    made = calls.create_service_user(name="Ledger", scopes=["customer.read", "team.read"], public_key=key.pem)
    its, tokens = as_program(bank, make_client, registration_of(bank, made.client_id, made.key_id, key=key))
    assert set(tokens.scope.split()) == {"customer.read", "team.read"}
    assert its.get_customer().name
    assert its.get_team_member(made.member_id).is_service_user
    with pytest.raises(ApiError, match="403 forbidden"):
        list(its.list_pockets())
    added = calls.rotate_service_user_keys(made.member_id, public_key=next_key.pem)
    kept = calls.list_service_user_keys(made.member_id).items
    assert [each.key_id for each in kept] == [added.key_id, made.key_id]
    assert its.get_customer().name
    calls.revoke_service_user_key(made.member_id, made.key_id)
    with pytest.raises(ApiError, match="invalid_client"):
        its.get_customer()
    made = calls.get_service_user(made.member_id)
    its, _ = as_program(bank, make_client, registration_of(bank, made.client_id, made.key_id, key=next_key))
    assert calls.deactivate_team_member(made.member_id).status == "DEACTIVATED"
    with pytest.raises(ApiError, match="invalid_client"):
        its.get_customer()
    assert calls.update_team_member(made.member_id, status="ACTIVE").status == "ACTIVE"
    assert its.get_customer().name
