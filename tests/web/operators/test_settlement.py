"""Settlement in the console: what is due, fails, and a difference that two operators decide."""

import re
from datetime import date

import pytest
from tests.support.whole_bank import close_bank, expect_clean, open_bank
from tests.trading.desk_by_hand import DeskByHand

from billfold.platform.dates import et_instant
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.custodian import FOLDER, Plan, SimulatedCustodian

INSTRUCTION = re.compile(r'href="(/bank/settlement/[0-9a-f-]{36})"')
DIFFERENCE = re.compile(r'name="difference" value="([0-9a-f-]{36})"')
PROPOSAL = re.compile(r'href="(/bank/freezes/[0-9a-f-]{36})"')


@pytest.fixture
async def bank(bank_dsn):
    opened = await open_bank(bank_dsn, dealers=("citadel", "jpm"))
    yield opened
    await close_bank(opened)


@pytest.fixture
def trade_of(bank, new_holder):
    """Trade with a dealer, whose instruction the custodian treats by a plan, and let days pass."""

    async def trade(plan, day):
        SimulatedCustodian(bank.settings.state_dir / FOLDER).plan(plan)
        await (await new_holder()).deposit(100_000_00)
        desk = DeskByHand(bank)
        [order] = await desk.send_orders()
        await desk.book(await desk.fill_of(order))
        await ClockStepper(bank).set_to(et_instant(date(2025, 6, day), 12))

    return trade


async def sent(browser, path, form, status=303):
    page = await browser.post(path, {"csrf": browser.csrf, **form})
    assert page.status_code == status, page.text
    return page


async def test_a_rejected_instruction_is_a_fail_with_its_age_until_it_is_sent_again(bank, trade_of, operators):
    await trade_of(Plan(rejects=True), 5)
    olga, viewer = [await operators(role) for role in ("MANAGER", "VIEWER")]
    await olga.go("/bank/settlement")
    assert "2 days late" in olga.text
    assert "DMON Another amount" in olga.text
    [path] = set(INSTRUCTION.findall(olga.page.text))
    await viewer.go(path)
    assert "Send it again" not in viewer.text
    await sent(viewer, path, {"decision": "send", "reason": "please"}, status=409)
    await olga.go(path)
    await sent(olga, path, {"decision": "send", "reason": ""}, status=422)
    await sent(olga, path, {"decision": "dance", "reason": "x"}, status=422)
    await sent(olga, path, {"decision": "send", "reason": "The amount is agreed"})
    await ClockStepper(bank).set_to(et_instant(date(2025, 6, 6), 12))
    await olga.go("/bank/settlement")
    assert "Nothing fails:" in olga.text
    await expect_clean(bank)


async def test_a_difference_is_proposed_by_one_operator_and_booked_by_another(bank, trade_of, operators):
    await trade_of(Plan(money_off_cents=1), 3)
    olga, otto = [await operators(role) for role in ("MANAGER", "APPROVER")]
    await olga.go("/bank/settlement")
    [path] = set(INSTRUCTION.findall(olga.page.text))
    await olga.go(path)
    [difference] = DIFFERENCE.findall(olga.page.text)
    await otto.go(path)
    await sent(otto, path, {"decision": "accept", "difference": difference, "reason": "x"}, status=409)
    await sent(olga, path, {"decision": "accept", "difference": difference, "reason": "One cent"})
    for browser, status in ((olga, 409), (otto, 303)):
        await browser.go("/bank/freezes")
        await sent(browser, PROPOSAL.findall(browser.page.text)[0], {"decision": "confirm"}, status=status)
    await olga.go(path)
    assert "Settled" in olga.text
    await expect_clean(bank)
