"""The trading desk in the console: one operator enters what dealers did, another confirms it."""

import re

import pytest
from tests.support.whole_bank import close_bank, expect_clean, open_bank
from tests.trading.desk_by_hand import DeskByHand

from billfold.platform.dates import ET
from billfold.platform.money import cents_for, format_price

ORDER = re.compile(r'href="(/bank/desk/orders/[0-9a-f-]{36})"')
EXECUTION = re.compile(r'href="(/bank/desk/executions/[0-9a-f-]{36})"')
PROPOSAL = re.compile(r'href="(/bank/freezes/[0-9a-f-]{36})"')


@pytest.fixture
async def bank(bank_dsn):
    """A founded bank at 2025-06-02 09:00 ET with two dealers."""
    opened = await open_bank(bank_dsn, dealers=("citadel", "jpm"))
    yield opened
    await close_bank(opened)


@pytest.fixture
async def order(bank, new_holder):
    """An order on the list of the desk."""
    await (await new_holder()).deposit(100_000_00)
    [order] = await DeskByHand(bank).send_orders()
    return order


async def fields_of(bank, order, units, reference="T-1", **more):
    """Return the form of an execution."""
    return {
        "decision": "execution",
        "dealer": "citadel",
        "reference": reference,
        "side": order.side,
        "cusip": order.cusip,
        "face": f"{units * 100:,}",
        "price": format_price(order.mark_micros),
        "money": f"{cents_for(units, order.mark_micros) / 100:.2f}",
        "traded_at": f"{(await bank.now()).astimezone(ET):%Y-%m-%dT%H:%M}",
    } | more


async def sent(browser, path, form, status=303):
    """Send a form with the token of the desk's page, and return the page."""
    await browser.go("/bank/desk")
    page = await browser.post(path, {"csrf": browser.csrf, **form})
    assert page.status_code == status, re.findall(r'role="alert">([^<]*)|-mistake">([^<]*)', page.text)
    return page


async def confirmed_by(browser):
    """Confirm the first proposal on the page of proposals."""
    await browser.go("/bank/freezes")
    await sent(browser, PROPOSAL.findall(browser.page.text)[0], {"decision": "confirm"})


async def test_an_execution_is_entered_by_one_operator_and_confirmed_by_another(bank, order, operators):
    olga, otto, viewer = [await operators(role) for role in ("MANAGER", "APPROVER", "VIEWER")]
    await olga.go("/bank/desk")
    assert f"Buy {order.units * 100:,} of {order.cusip}" in olga.text
    [path] = set(ORDER.findall(olga.page.text))
    await viewer.go(path)
    assert "Your role reads" in viewer.text
    form = await fields_of(bank, order, 400)
    for each in (viewer, otto):
        await sent(each, path, form, status=409)
    await sent(olga, path, {"decision": "quote", "dealer": "jpm", "price": "99.70", "face": "100000"})
    await sent(olga, path, {"decision": "WORKING", "reason": "citadel works it"})
    await olga.go(path)
    assert "jpm 99.700000" in olga.text
    wrong = await sent(olga, path, form | {"money": "1.00"}, status=422)
    assert "units times price" in wrong.text
    await sent(olga, path, form)
    await sent(olga, path, form, status=422)
    assert await bank.pool.fetchval("SELECT count(*) FROM execution") == 0, "one operator books nothing"
    await confirmed_by(otto)
    await olga.go("/bank/desk")
    assert re.search(r"Filled.*40,000", olga.text)
    await expect_clean(bank)


async def test_an_execution_is_corrected_and_busted_and_its_order_cancelled(bank, order, operators):
    olga, otto = await operators("MANAGER"), await operators("APPROVER")
    path = f"/bank/desk/orders/{order.order_id}"
    form = await fields_of(bank, order, 400)
    await sent(olga, path, form)
    await confirmed_by(otto)
    await olga.go("/bank/desk")
    [execution] = set(EXECUTION.findall(olga.page.text))
    corrected = {"face": "30000", "price": form["price"], "money": f"{cents_for(300, order.mark_micros) / 100:.2f}"}
    named = {"reference": "C-1", "reason": "wrong size"}
    await sent(olga, execution, {"decision": "correct", **corrected, **named})
    await confirmed_by(otto)
    newest = await bank.pool.fetchval("SELECT execution_id FROM execution WHERE kind = 'CORRECTION'")
    await sent(olga, f"/bank/desk/executions/{newest}", {"decision": "bust", **named, "reference": "B-1"})
    await confirmed_by(otto)
    await olga.go(path)
    assert f"{order.units * 100:,}" in olga.text
    await sent(olga, path, {"decision": "CANCELLED", "reason": "the customer sold"})
    await sent(olga, path, {"decision": "WORKING", "reason": "again"}, status=409)
    await expect_clean(bank)


async def test_a_blotter_is_proposed_without_its_odd_lines(bank, order, operators):
    olga, otto = await operators("MANAGER"), await operators("MANAGER")
    good = [await fields_of(bank, order, units, f"T-{units}") for units in (100, 200)]
    names = [name for name in good[0] if name != "decision"]
    lines = [",".join(f'"{each[name]}"' for name in names) for each in good]
    odd = [lines[0], lines[0].replace("T-100", "T-9").replace("BUY", "HOLD"), '"an open quotation mark,,', "x,y"]
    text = "\r\n".join([",".join(names), lines[0], *odd, lines[1]])
    page = await sent(olga, "/bank/desk/blotter", {"blotter": text}, status=200)
    for said in ("citadel T-100 is proposed already", "must be BUY or SELL", "It is not a line of", "Another operator"):
        assert said in page.text
    await confirmed_by(otto)
    assert await bank.pool.fetchval("SELECT array_agg(reference ORDER BY reference) FROM execution") == [
        "T-100",
        "T-200",
    ]
    page = await sent(olga, "/bank/desk/blotter", {"blotter": text}, status=200)
    assert "citadel T-200 is booked already" in page.text
    await sent(olga, "/bank/desk/blotter", {"blotter": "dealer,price\r\nx,1"}, status=422)
    await expect_clean(bank)


async def test_a_paused_desk_says_so_and_covers_nothing(bank, order, operators):
    olga = await operators("MANAGER")
    await sent(olga, "/bank/desk", {"decision": "pause", "reason": "dealers do not answer"})
    await olga.go("/bank/desk")
    assert "The desk is paused and places no orders: dealers do not answer" in olga.text
    await sent(olga, "/bank/desk", {"decision": "cover"}, status=409)
    await sent(olga, "/bank/desk", {"decision": "resume", "reason": ""}, status=422)
    await sent(olga, "/bank/desk", {"decision": "resume", "reason": "they do again"})
    path = f"/bank/desk/orders/{order.order_id}"
    await sent(olga, path, {"decision": "CANCELLED", "reason": "covered again at once"})
    await sent(olga, "/bank/desk", {"decision": "cover"})
    await sent(olga, "/bank/desk", {"decision": "dance"}, status=422)
    await olga.go("/bank/desk")
    assert "Ended orders" in olga.text
    await expect_clean(bank)
