"""A table is pasted in the console: corrected, previewed, requested once, approved with a passkey, and followed."""

import asyncio
import re
from uuid import UUID

import pytest
from tests.support.approvals import hold_roles, wire_counterparty
from tests.support.browser import first_match, forms_of
from tests.web.company.test_move_money import signed, with_passkey

BATCHES = "/api/v1/batches/"


async def previewed(browser, pocket, table, mode="ATOMIC"):
    """Paste a table into the form, and return its path and the fields of the preview."""
    path = f"{browser.home}/batches/new"
    await browser.go(f"{path}?entry=table")
    await browser.send(path, origin=pocket.id, mode=mode, step="preview", table=table)
    return path, forms_of(browser.page.text).get(path, {}) | {"step": "request", "table": table}


async def correct_rows(maker, funded, ach):
    """Correct rows in the preview of a table: a payee by one press for all rows of its name, and an amount."""
    path, form = await previewed(
        maker, funded, f"To,Amount,Hue\nCONTOSO.,5,blue\n{ach},5\nContoso Inc,5\nContoso Inc,7."
    )
    assert "Ignored, because its heading is not known: Hue." in maker.text
    assert "1 of 4 payments ready, $5.00" in maker.text  # of two of this name, the one that can be paid
    assert "3 rows have a problem." in maker.text
    assert "ACH account: it receives ACH by the Partner API only and cannot be paid here." in maker.text
    meant = first_match(r'name="fix" value="(fix.4.to=[^"]+)"', maker.page.text)
    assert "Did you mean Contoso Domestic wire ending in" in maker.text
    assert "Add Contoso Inc as a new payee" in maker.text
    await maker.post(path, form)  # nothing is sent as long as a row has a problem
    await maker.send(path, step="preview", fix=meant, leave_out="3", **{"fix.5.amount": "7.10"})
    table = forms_of(maker.page.text)[path]["table"]
    assert table.split() == ["To,Amount,Hue", "CONTOSO.,5,blue", "Contoso,5,", "Contoso,7.10,"]
    assert "3 payments, $17.10 A preview." in maker.text
    await maker.send(path, step="request", **{"fix.2.amount": "6"})
    assert "3 payments, $18.10 A preview." in maker.text  # what is corrected is shown before it is sent


async def test_what_is_wrong_in_a_pasted_table_is_corrected_in_its_preview(
    customer_desk, console, world, funded, payroll_pocket
):
    await wire_counterparty(customer_desk)
    ach = await wire_counterparty(customer_desk, kind="ach")
    maker = await console(customer_desk, role="INITIATOR")
    await maker.go(f"{maker.home}/counterparties/{ach}")
    assert "Cannot be paid here ACH account: it receives ACH by the Partner API only" in maker.text
    await maker.go(f"{maker.home}/counterparties/import")
    assert "accounts that are not verified" not in maker.text
    assert 'href="data:text/csv;charset=utf-8,Name%2CRouting%20number%2C' in maker.page.text
    await correct_rows(maker, funded, ach)
    assert (await customer_desk.get(BATCHES))["items"] == []
    await previewed(maker, funded, "To,Colour\nPayroll,blue")
    assert maker.mistakes["table"].endswith(
        "The table must begin with headings, among them To and Amount "
        "('Colour' is not recognized; headings are To, Amount, Description, Reference, Key)."
    )
    table = "To\tAmount ($)\tMemo\npayroll\t1,250.00\t<b>Wages</b>\nNobody\t1\t\nContoso\tmuch\t=1+1\n"
    table += "Contoso\t12,5\t\nContoso\t0\t\nContoso\t1,250.5\t\n"
    path, _ = await previewed(maker, funded, table)
    assert "4 rows have a problem." in maker.text
    assert "No payee or Pocket has this name." in maker.text
    assert maker.text.count("The amount must be dollars like 1,250.50.") == 2  # "12,5" is not 125 dollars
    assert "The amount must be more than zero." in maker.text
    assert "$1,250.50" in maker.text
    assert "<b>Wages" not in maker.page.text
    assert 'value="request"' not in maker.page.text
    await maker.send(path, step="preview", fix="fix.3.to", leave_out="9" * 5000, **{"fix.9.amount": "1"})
    assert "4 rows have a problem." in maker.text  # lines and columns that the table does not have
    await previewed(maker, funded, "to,amount\nPayroll,8000\nPayroll,8000")
    assert "cannot raise the amount" in maker.text


async def test_payments_are_typed_row_by_row_to_chosen_payees(customer_desk, console, funded, payroll_pocket):
    payee = await wire_counterparty(customer_desk)
    maker = await console(customer_desk, role="INITIATOR")
    path = f"{maker.home}/batches/new"
    await maker.go(path)
    assert "Contoso, Domestic wire ending in" in maker.text
    await maker.send(path, origin=funded.id, step="preview")
    assert "The payments must have a payee and an amount in a row." in maker.text
    typed = {"row.1.to": f"counterparty:{payee}", "row.1.amount": "12.50", "row.3.to": f"pocket:{payroll_pocket.id}"}
    await maker.send(path, entry="rows", origin=funded.id, mode="ATOMIC", step="more", **typed)
    assert 'value="Contoso" selected' in maker.page.text
    await maker.send(path, step="preview", mode="ATOMIC", **{"row.4.to": "Wingtip Toys", "row.4.amount": "640"})
    assert "1 of 3 payments ready, $12.50" in maker.text
    assert "Add Wingtip Toys as a new payee" in maker.text
    assert 'aria-label="Payee in line 3"' in maker.page.text  # counted as they were typed, without headings
    await maker.send(path, step="change")
    assert 'name="row.2.to"' in maker.page.text
    assert 'value="Payroll" selected' in maker.page.text


async def test_a_pasted_table_is_requested_once_approved_with_a_passkey_and_cancelled(
    customer_desk, console, world, funded, payroll_pocket
):
    await wire_counterparty(customer_desk)
    maker, approver = await console(customer_desk, role="INITIATOR"), await console(customer_desk)
    device = await with_passkey(approver)
    table = 'To,Amount,Description,Key\n"Payroll","1,250.00",Wages,w-1\nContoso,250,=1+1,w-2\n'
    path, form = await previewed(maker, funded, table)
    assert "2 payments, $1,500.00 A preview." in maker.text
    assert "1 approval for the whole list, by the default: one other member." in maker.text
    answers = await asyncio.gather(*(maker.post(path, form) for _ in range(2)))
    assert 303 in {each.status_code for each in answers}
    (made,) = (await customer_desk.get(BATCHES))["items"]
    await maker.go(f"{maker.home}/batches")
    assert "2 payments" in maker.text
    await approver.go(f"{approver.home}/approvals")
    assert "2 payments in a batch $1,500.00 All or none." in approver.text
    here = f"{approver.home}/batches/{made['id']}"
    await approver.go(here)
    assert "First payment to this payee" in approver.text
    assert "What happens in the Pockets" in approver.text
    await approver.send(here, **await signed(approver, device, here))
    await world.later(seconds=1)
    await approver.go(here)
    assert "2 sent" in approver.text
    for page, words in (
        ("notifications?about=Payments", f'href="{here}">A transfer of $1,250.00 to Payroll was sent'),
        ("audit-log?kind=Payments", f'created the batch of <a href="{here}">2 transfers, $1,500.00</a>'),
    ):
        assert words in (await approver.go(f"{approver.home}/{page}")).text
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    path, form = await previewed(maker, funded, table)
    again = (await maker.post(path, form)).headers["location"].partition("?")[0]
    await maker.go(again)
    assert (await maker.send(f"{again}/cancel")).headers["location"].endswith("done=batch-cancelled")


async def confirm_deposits(maker):
    """Try to confirm deposits that have not been sent, of two accounts of three on one page."""
    verify = f"{maker.home}/counterparties/verify"
    await maker.go(verify)
    assert "Acme Cleaning ending in 0277" in maker.text
    payee = first_match(rf'href="({maker.home}/counterparties/[0-9a-f-]{{36}})">Acme', maker.page.text)
    names = [each for each in forms_of(maker.page.text)[verify] if each.startswith(("first.", "second."))]
    assert len(names) == 6
    page = await maker.send(verify, **dict.fromkeys(names[:2], "0.11"), **{names[2]: "a lot"})
    assert (page.status_code, maker.text.count("Each amount must be dollars like 1,250.50.")) == (409, 1)
    assert "deposits" in maker.text
    await maker.go(payee)
    assert {"ending in 0277", "ending in 1122"} <= {*re.findall("ending in [0-9]{4}", maker.text)}  # of look-alikes


async def import_table(maker, path):
    """Paste a table of payees, correct it in its preview, and return where its batch is."""
    table = (
        "Vendor,Bank routing number,Account #,Type,Hue\n"
        "Acme Cleaning,021000021,44100277,checking,blue\nAcme Cleanlng,021000022,1,\n<b>Wren,121000358,7712,other\n"
    )
    await maker.go(path)
    await maker.send(path, step="preview", kind="ach", table=table)
    assert "2 rows have a problem." in maker.text
    assert "This is not an ABA routing number" in maker.text
    assert "Easily taken for another" in maker.text
    assert "<b>Wren" not in maker.page.text
    fixes = {"fix.3.routing_number": "121000358", "fix.3.account": "99001122", "fix.3.account_type": "savings"}
    await maker.send(path, step="preview", **fixes, **{"fix.4.type": "savings"})
    table = forms_of(maker.page.text)[path]["table"]
    assert "Acme Cleanlng,121000358,99001122,,,savings" in table
    answer = await maker.send(path, **(forms_of(maker.page.text)[path] | {"step": "request", "table": table}))
    return answer.headers["location"]


async def check_filters(browser, batch):
    """Check that batches are filtered by status, kind and day, and that a wrong filter is shown with its error."""
    for query, found in (
        ("status=PENDING", True),
        ("status=pending&kind=COUNTERPARTIES", None),
        ("status=PENDING&kind=COUNTERPARTIES&from=2020-01-01&to=2099-12-31", True),
        ("status=COMPLETED", False),
        ("kind=POCKETS", False),
        ("from=2099-01-01", False),
        ("from=x", None),
    ):
        page = await browser.go(f"{browser.home}/batches?{query}")
        assert page.status_code == (422 if found is None else 200), query
        assert (batch in browser.text, "No batch matches" in browser.text) == (found is True, found is False), query


@pytest.mark.usefixtures("funded")
async def test_payees_are_imported_from_a_table_with_look_alikes_and_approved_as_one(customer_desk, console, world):
    await hold_roles(customer_desk.bank, UUID(customer_desk.team.customer), "NEW_COUNTERPARTY")
    maker, approver = await console(customer_desk, role="INITIATOR"), await console(customer_desk)
    device, path = await with_passkey(approver), f"{maker.home}/counterparties/import"
    made = await import_table(maker, path)
    await maker.go(made)
    assert "3 payees sent for approval." in maker.text
    await maker.go(f"{maker.home}/batches")
    assert "Acme Cleaning and 2 others" in maker.text
    await check_filters(maker, "Acme Cleaning and 2 others")
    here = made.partition("?")[0]
    await approver.go(here)
    assert "In this list, too" in approver.text
    assert "Compare 1 pair" in approver.text
    assert "Approve 3 payees" in approver.text
    await approver.send(here, **await signed(approver, device, here))
    await approver.go(f"{here}?done=request-approved")
    assert "You approved 3 payees." in approver.text
    await world.later(seconds=1)
    await approver.go(f"{here}?state=COMPLETED")
    assert "3 added" in approver.text
    await check_results(customer_desk, approver, here)
    await confirm_deposits(maker)
    viewer = await console(customer_desk, role="VIEWER")
    assert (await viewer.go(f"{maker.home}/counterparties/verify")).status_code == 403
    for to in (here, f"{here}/cancel"):
        assert (await viewer.post(to, {"csrf": viewer.csrf, "decision": "DENIED"})).status_code == 403
    await check_opened(customer_desk, maker, world)


async def check_results(customer_desk, approver, here):
    """Check the file of results of imported payees."""
    await approver.go(f"{here}/results.csv")
    assert approver.page.text.splitlines()[1].startswith("1,Acme Cleaning,ach,,COMPLETED,")
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")


async def check_opened(customer_desk, maker, world):
    """Check the page of a batch that has opened a Pocket."""
    rent = {"pocket_name": "Rent", "trading_strategy_id": "UST-4W"}
    opened = await customer_desk.post(BATCHES, {"kind": "POCKETS", "mode": "ATOMIC", "rows": [rent]})
    await world.later(seconds=1)
    await maker.go(f"{maker.home}/batches/{opened['id']}")
    for shown in ("1 Pocket", "1 opened", "Rent", "4-week bills"):
        assert shown in maker.text
