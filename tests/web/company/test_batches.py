"""A table is pasted in the console: corrected, previewed, requested once, approved with a passkey, and followed."""

import asyncio

from tests.support.approvals import wire_counterparty
from tests.support.browser import forms_of
from tests.web.company.test_move_money import signed, with_passkey

BATCHES = "/api/v1/batches/"


async def previewed(browser, pocket, table, mode="ATOMIC"):
    """Paste a table into the form, and return its path and the fields of the preview."""
    path = f"{browser.home}/batches/new"
    await browser.go(path)
    await browser.send(path, origin=pocket.id, mode=mode, step="preview", table=table)
    return path, forms_of(browser.page.text)[path] | {"step": "request", "table": table}


async def test_what_is_wrong_in_a_pasted_table_is_shown_in_its_cells(
    customer_desk, console, world, funded, payroll_pocket
):
    await wire_counterparty(customer_desk)
    maker = await console(customer_desk, role="INITIATOR")
    await previewed(maker, funded, "To,Colour\nPayroll,blue")
    assert maker.mistakes["table"].endswith(
        "The table has the heading 'Colour' in column 2, which is not recognized. "
        "Headings are To, Amount, Description, Reference, Key."
    )
    table = "To\tAmount ($)\tMemo\npayroll\t1,250.00\t<b>Wages</b>\nNobody\t1\t\nContoso\tmuch\t=1+1\n"
    table += "Contoso\t12,5\t\nContoso\t0\t\nContoso\t1,250.5\t\n"
    await previewed(maker, funded, table)
    assert "4 rows have a problem." in maker.text
    assert "No verified payee or Pocket has this name." in maker.text
    assert maker.text.count("The amount must be dollars like 1,250.50.") == 2  # "12,5" is not 125 dollars
    assert "0 The amount must be more than zero." in maker.text
    assert "$1,250.50" in maker.text
    assert "<b>Wages" not in maker.page.text
    assert "Request approval" not in maker.text
    await previewed(maker, funded, "to,amount\nPayroll,8000\nPayroll,8000")
    assert "cannot raise the amount" in maker.text


async def test_a_pasted_table_is_requested_once_approved_with_a_passkey_and_cancelled(
    customer_desk, console, world, funded, payroll_pocket
):
    await wire_counterparty(customer_desk)
    maker, approver = await console(customer_desk, role="INITIATOR"), await console(customer_desk)
    device = await with_passkey(approver)
    table = 'To,Amount,Description,Key\n"Payroll","1,250.00",Wages,w-1\nContoso,250,=1+1,w-2\n'
    path, form = await previewed(maker, funded, table)
    assert "2 transfers, $1,500.00 in total." in maker.text
    assert "1 approval for the whole list, by the default: one other member." in maker.text
    answers = await asyncio.gather(*(maker.post(path, form) for _ in range(2)))
    assert 303 in {each.status_code for each in answers}
    (made,) = (await customer_desk.get(BATCHES))["items"]
    await maker.go(f"{maker.home}/batches")
    assert "2 transfers" in maker.text
    await approver.go(f"{approver.home}/approvals")
    assert "Batch of 2 transfers $1,500.00 All rows or none." in approver.text
    here = f"{approver.home}/batches/{made['id']}"
    await approver.go(here)
    assert "First payment to this payee" in approver.text
    assert "What happens in the Pockets" in approver.text
    await approver.send(here, **await signed(approver, device, here))
    await world.later(seconds=1)
    await approver.go(here)
    assert "Carried out 2" in approver.text
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    path, form = await previewed(maker, funded, table)
    again = (await maker.post(path, form)).headers["location"].partition("?")[0]
    await maker.go(again)
    assert (await maker.send(f"{again}/cancel")).headers["location"].endswith("done=transfer-cancelled")
