"""Money without an owner is assigned or returned by operators who may move money, once."""

from uuid import UUID

import pytest

from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.ledger.types import Direction, Rail
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments
from billfold.platform import ids


@pytest.fixture
async def held(bank):
    items = [ids.new(), ids.new()]
    unclaimed = [
        UnclaimedPayment(each, Direction.CREDIT, 700_00 + nth, reason="NO_ACCOUNT", details={"description": "x"})
        for nth, each in enumerate(items)
    ]
    await hold_unclaimed_payments(bank, unclaimed, rail=Rail.WIRE)
    return [f"/bank/suspense/{each}" for each in items]


async def test_money_in_suspense_is_assigned_to_its_owner_or_returned_once(bank, operators, customer_desk, held):
    own = await customer_desk.pocket(name="Reserve")
    (portal,) = (await customer_desk.get(f"/api/v2/pockets/{own.id}/portals/"))["items"]
    account = {name: portal[name] for name in ("routing_number", "account_number")}
    olga, otto, approver, viewer = [await operators(role) for role in ("MANAGER", "MANAGER", "APPROVER", "VIEWER")]
    for each in (approver, viewer):
        await each.go(held[0])
        assert "Your role reads" in each.text
        sent = {"csrf": each.csrf, "decision": "return", "reason": "NO_ACCOUNT"}
        assert (await each.post(held[0], sent)).status_code == 409
    await olga.go("/bank/reconciliation")
    assert "$700.01" in olga.text
    assert held[1] in olga.page.text
    await olga.go(held[0])
    wrong = await olga.post(held[0], {"csrf": olga.csrf, "decision": "assign", "routing_number": "1"})
    assert (wrong.status_code, "account number must be" in wrong.text) == (422, True)
    unknown = {"csrf": olga.csrf, "decision": "assign", "routing_number": "1", "account_number": "2"}
    assert "No portal has" in (await olga.post(held[0], unknown)).text
    assign = {"csrf": olga.csrf, "decision": "assign", **account}
    assert (await olga.post(held[0], assign)).status_code == 303
    assert (await olga.post(held[0], assign | {"decision": "return", "reason": "NO_ACCOUNT"})).status_code == 409
    await otto.go(held[0])
    assert (await otto.post(held[0], assign | {"csrf": otto.csrf})).status_code == 409, "who was second did nothing"
    back = {"decision": "return", "reason": "NO_ACCOUNT"}
    for each, reason, status in ((olga, "NO_ACCOUNT", 303), (olga, "FRAUD", 409), (otto, "NO_ACCOUNT", 409)):
        await each.go(held[1])
        assert (await each.post(held[1], back | {"csrf": each.csrf, "reason": reason})).status_code == status
    states = await bank.pool.fetch(
        "SELECT status FROM suspense_item WHERE item_id = ANY($1) ORDER BY amount",
        [UUID(each.rpartition("/")[2]) for each in held],
    )
    assert [row["status"] for row in states] == ["ASSIGNED", "RETURNED"]
    log = await bank.pool.fetch(
        "SELECT action, user_id FROM audit_entry e JOIN membership USING (member_id)"
        " WHERE e.customer_id = $1 AND outcome = 'SUCCESS'"
        " AND action LIKE 'suspense.%' AND action NOT LIKE '%_begun' ORDER BY entry_no",
        bank_customer_id(bank.seed),
    )
    said = [f"suspense.{each}" for each in ("assigned", "assign", "returned", "return")]
    assert [each["action"] for each in log] == said, "with the money, and when it was done"
    assert {each["user_id"] for each in log} == {olga.user_id}
