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
    olga, approver, viewer = [await operators(role) for role in ("MANAGER", "APPROVER", "VIEWER")]
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
    for again in (assign | {"decision": "return", "reason": "NO_ACCOUNT"},):
        assert (await olga.post(held[0], again)).status_code == 409
    await olga.go(held[1])
    back = {"csrf": olga.csrf, "decision": "return", "reason": "NO_ACCOUNT"}
    assert (await olga.post(held[1], back)).status_code == 303
    states = await bank.pool.fetch(
        "SELECT status FROM suspense_item WHERE item_id = ANY($1) ORDER BY amount",
        [UUID(each.rpartition("/")[2]) for each in held],
    )
    assert [row["status"] for row in states] == ["ASSIGNED", "RETURNED"]
    done = "SELECT count(*) FROM audit_entry WHERE customer_id = $1 AND action LIKE 'suspense.%' AND outcome = $2"
    assert await bank.pool.fetchval(f"{done} AND member_id IS NOT NULL", bank_customer_id(bank.seed), "SUCCESS") == 2
