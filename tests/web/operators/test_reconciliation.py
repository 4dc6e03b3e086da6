"""Money without an owner is assigned or returned by operators who may move money, once."""

from uuid import UUID

import pytest
from tests.support.approvals import confirm_as_otto

from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Direction, Rail
from billfold.payments.adjustments import cli
from billfold.payments.suspense.rules import NOT_RETURNABLE
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments
from billfold.platform import ids
from billfold.platform.errors import Refused, Unavailable


@pytest.fixture
async def unclaimed_payments(bank):
    items = [ids.new(), ids.new()]
    unclaimed = [
        UnclaimedPayment(each, Direction.CREDIT, 700_00 + nth, reason="NO_ACCOUNT", details={"description": "x"})
        for nth, each in enumerate(items)
    ]
    await hold_unclaimed_payments(bank, unclaimed, rail=Rail.WIRE)
    return [f"/bank/suspense/{each}" for each in items]


async def see_likely_owner(bank, olga, number):
    """Let a payment arrive for an account whose last digit is wrong: its page offers the right one."""
    near = f"{number[:-1]}{(int(number[-1]) + 1) % 10}"
    details = {"company_name": "Payroll Co", "account_number": near, "description": "x"}
    slipped = UnclaimedPayment(ids.new(), Direction.CREDIT, 5_00, reason="NO_ACCOUNT", details=details)
    await hold_unclaimed_payments(bank, [slipped])
    await olga.go(f"/bank/suspense/{slipped.item_id}")
    assert f"Its account number is {number}, the payment says {near}." in olga.text
    assert f':{number}"' in olga.page.text, "it is chosen there"


async def test_suspended_money_is_assigned_to_its_owner_or_returned_once_in_the_console(
    bank, operators, customer_desk, unclaimed_payments
):
    own = await customer_desk.pocket(name="Reserve")
    (portal,) = (await customer_desk.get(f"/api/v2/pockets/{own.id}/portals/"))["items"]
    account = {name: portal[name] for name in ("routing_number", "account_number")}
    olga, otto, approver, viewer = [await operators(role) for role in ("MANAGER", "MANAGER", "APPROVER", "VIEWER")]
    for each in (approver, viewer):
        await each.go(unclaimed_payments[0])
        assert "Your role reads" in each.text
        sent = {"csrf": each.csrf, "decision": "return", "reason": "NO_ACCOUNT"}
        assert (await each.post(unclaimed_payments[0], sent)).status_code == 409
    await olga.go("/bank/reconciliation")
    assert "$700.01" in olga.text
    assert unclaimed_payments[1] in olga.page.text
    await see_likely_owner(bank, olga, account["account_number"])
    wrong = await olga.post(unclaimed_payments[0], {"csrf": olga.csrf, "decision": "assign", "routing_number": "1"})
    assert (wrong.status_code, "account number must be" in wrong.text) == (422, True)
    unknown = {"csrf": olga.csrf, "decision": "assign", "routing_number": "1", "account_number": "2"}
    assert "No portal has" in (await olga.post(unclaimed_payments[0], unknown)).text
    assign = {"csrf": olga.csrf, "decision": "assign", "account": ":".join(account.values())}
    assert (await olga.post(unclaimed_payments[0], assign)).status_code == 303
    assert (
        await olga.post(unclaimed_payments[0], assign | {"decision": "return", "reason": "NO_ACCOUNT"})
    ).status_code == 409
    await otto.go(unclaimed_payments[1])
    assert (
        await otto.post(unclaimed_payments[1], {"csrf": otto.csrf, "decision": "return", "reason": "FRAUD"})
    ).status_code == 303
    assert await _states(bank, unclaimed_payments) == ["HELD", "HELD"], "one operator moves nothing"
    await olga.go("/bank/freezes")
    assert "Credit $700.00 in suspense to the account that ends in" in olga.text
    for each, statuses in ((viewer, [409, 409]), (olga, [409, 303]), (approver, [303, 409]), (otto, [409, 409])):
        assert await _confirmed_by(each, bank) == statuses
    assert await _states(bank, unclaimed_payments) == ["ASSIGNED", "RETURNED"]
    log = await bank.pool.fetch(
        "SELECT action, user_id FROM audit_entry e JOIN membership USING (member_id)"
        " WHERE e.customer_id = $1 AND outcome = 'SUCCESS' AND action LIKE 'movement.%' ORDER BY entry_no",
        bank_customer_id(bank.seed),
    )
    done = [(verb, each.user_id) for each in (olga, approver) for verb in ("movement.confirmed", "movement.applied")]
    said = [("movement.proposed", olga.user_id), ("movement.proposed", otto.user_id), *done]
    assert [tuple(each) for each in log] == said


async def test_a_debit_without_a_return_message_is_returned_by_hand_or_written_off_in_the_console(bank, operators):
    items, stays = [ids.new(), ids.new()], {NOT_RETURNABLE: "This bank writes no returns of it."}
    debits = [UnclaimedPayment(each, Direction.DEBIT, 700_00, reason="IAT", details=stays) for each in items]
    await hold_unclaimed_payments(bank, debits)
    olga, otto = [await operators("MANAGER") for _ in range(2)]
    pages = [f"/bank/suspense/{each}" for each in items]
    for page, verb in zip(pages, ("by_hand", "write_off"), strict=True):
        await olga.go(page)
        assert "This bank writes no returns of it." in olga.text
        assert ("Propose to assign" in olga.text, "Propose to return" in olga.text) == (False, False)
        sent = {"csrf": olga.csrf, "decision": verb}
        assert "reason must be 1 to 500" in (await olga.post(page, sent | {"reason": ""})).text
        assert (
            await olga.post(page, sent | {"reason": "The ACH operator has done it, call of 2 June"})
        ).status_code == 303
    assert await _states(bank, pages) == ["HELD", "HELD"]
    await otto.go("/bank/freezes")
    for row in await bank.pool.fetch("SELECT proposal_id FROM freeze_proposal"):
        decision = {"csrf": otto.csrf, "decision": "confirm"}
        assert (await otto.post(f"/bank/freezes/{row['proposal_id']}", decision)).status_code == 303
    assert sorted(await _states(bank, pages)) == ["RETURNED", "WRITTEN_OFF"]


@pytest.mark.parametrize("is_carried_out", [False, True])
async def test_an_interrupted_confirmation_books_a_movement_once(bank, customer_desk, monkeypatch, is_carried_out):
    pocket, submit = UUID((await customer_desk.pocket()).id), bank.engine.submit
    said = await cli.create(bank, pocket, 25_00, description="Welcome")

    async def cut_off(command):
        if is_carried_out:
            await submit(command)
        raise Unavailable("The database is unavailable.")

    with monkeypatch.context() as patch, pytest.raises(Unavailable):
        patch.setattr(bank.engine, "submit", cut_off)
        await confirm_as_otto(bank, said)
    await confirm_as_otto(bank, said)
    with pytest.raises(Refused, match="APPLIED"):
        await confirm_as_otto(bank, said)
    credited = "SELECT count(*), sum(amount) FROM transaction WHERE pocket_id = $1"
    assert tuple(await bank.pool.fetchrow(credited, pocket)) == (1, 25_00)


async def _confirmed_by(browser, bank):
    """Return the statuses that an operator gets who confirms the assignment, then the return."""
    rows = await bank.pool.fetch("SELECT proposal_id FROM freeze_proposal ORDER BY movement::json->>'kind'")
    await browser.go("/bank/freezes")
    sent = {"csrf": browser.csrf, "decision": "confirm"}
    return [(await browser.post(f"/bank/freezes/{row['proposal_id']}", sent)).status_code for row in rows]


def _id(page):
    return UUID(page.rpartition("/")[2])


async def _states(bank, held):
    rows = await bank.pool.fetch(
        "SELECT status FROM suspense_item WHERE item_id = ANY($1) ORDER BY amount", [_id(each) for each in held]
    )
    return [row["status"] for row in rows]
