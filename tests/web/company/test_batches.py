"""A table is pasted in the console: corrected, previewed, requested once, approved with a passkey, and followed."""

import asyncio

from tests.support.approvals import wire_counterparty
from tests.support.browser import forms_of
from tests.web.company.test_move_money import signed, with_passkey

BATCHES = "/api/v1/batches/"


async def test_a_pasted_table_is_corrected_requested_once_and_approved_as_one(
    customer_desk, console, world, funded, payroll_pocket
):
    await wire_counterparty(customer_desk)
    maker, approver = await console(customer_desk, role="INITIATOR"), await console(customer_desk)
    device = await with_passkey(approver)
    path = f"{maker.home}/batches/new"
    await maker.go(path)
    sent = {"origin": funded.id, "mode": "ATOMIC", "step": "preview"}
    await maker.send(path, **sent, table="To,Colour\nPayroll,blue")
    assert maker.mistakes == {
        "table": "The table has the heading 'Colour' in column 2, which is not recognized. "
        "Headings are To, Amount, Description, Reference, Key."
    }
    table = "To\tAmount ($)\tMemo\npayroll\t1,250.00\t<b>Wages</b>\nNobody\t1\t\nContoso\tmuch\t=1+1\n"
    page = await maker.send(path, **sent, table=table)
    assert page.status_code == 200
    assert "2 rows have a problem." in maker.text
    assert "No verified payee or Pocket has this name." in maker.text
    assert "The amount must be dollars like 1,250.50." in maker.text
    assert "<b>Wages" not in page.text
    assert "Request approval" not in maker.text
    await maker.go(path)
    await maker.send(path, **sent, table="to,amount\nPayroll,8000\nPayroll,8000")
    assert "cannot raise the amount" in maker.text
    table = 'To,Amount,Description,Key\n"Payroll","1,250.00",Wages,w-1\nContoso,250,=1+1,w-2\n'
    await maker.go(path)
    await maker.send(path, **sent, table=table)
    assert "2 transfers, $1,500.00 together." in maker.text
    assert "1 approval for the whole list, by the default: one other member." in maker.text
    form = forms_of(maker.page.text)[path]
    answers = await asyncio.gather(*(maker.post(path, form | {"step": "request", "table": table}) for _ in range(2)))
    assert 303 in {each.status_code for each in answers}
    (made,) = (await customer_desk.get(BATCHES))["items"]
    await maker.go(f"{maker.home}/batches")
    assert "2 transfers" in maker.text
    await approver.go(f"{approver.home}/approvals")
    assert "Batch of 2 transfers $1,500.00 all rows or none." in approver.text
    here = f"{approver.home}/batches/{made['id']}"
    await approver.go(here)
    await approver.send(here, **await signed(approver, device, here))
    await world.later(seconds=1)
    await approver.go(here)
    assert "Completed" in approver.text
    assert "Carried out 2" in approver.text
    await maker.go(path)
    await maker.send(path, **sent, table=table)
    form = forms_of(maker.page.text)[path]
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    answer = await maker.post(path, form | {"step": "request", "table": table})
    again = answer.headers["location"].partition("?")[0]
    await maker.go(again)
    answer = await maker.send(f"{again}/cancel")
    assert answer.headers["location"].endswith("done=transfer-cancelled")
