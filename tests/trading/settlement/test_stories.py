"""Dealers' trades settle when the simulated custodian confirms them, over files of messages."""

from datetime import date

import pytest
from tests.trading.desk_by_hand import OLGA, OTTO

from billfold.dual_control.decisions import confirm
from billfold.platform.dates import et_instant
from billfold.platform.errors import Refused
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.custodian import FOLDER, Plan, SimulatedCustodian
from billfold.trading.decisions import propose_amendment
from billfold.trading.settlement.decisions import propose_difference, send_again
from billfold.trading.settlement.store import list_closed, list_held, list_open
from billfold.verify.runner import verify_bank

_HELD = """
SELECT kind, asset = 'USD' AS is_money, sum(credits - debits)::bigint FROM account
 WHERE kind LIKE 'dealer:%' OR kind IN ('custodian', 'redemptions') GROUP BY 1, 2
"""


async def expect_clean(bank):
    """Verify the whole bank; the daily root of a day on which a bust left customers uncovered is refused."""
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    assert [each for each in report.findings if each.table != "daily_root_refusal"] == []


class Settlement:
    """A bank whose customer bought bills that a dealer has sold to it on Monday, 2025-06-02."""

    def __init__(self, bank, desk):
        self.bank, self.desk = bank, desk
        self.custodian = SimulatedCustodian(bank.settings.state_dir / FOLDER)

    async def trade(self, *plans):
        for plan in plans:
            self.custodian.plan(plan)
        [order] = await self.desk.send_orders()
        self.fill = await self.desk.fill_of(order)
        await self.desk.book(self.fill)
        await self.until(2, 12)
        return self.fill

    async def until(self, day, hour=12, month=6):
        await ClockStepper(self.bank).set_to(et_instant(date(2025, month, day), hour))

    async def one(self):
        """Return the only instruction, open or not."""
        bank_id = self.desk.bank_id
        [row] = await list_open(self.bank.pool, bank_id) + await list_closed(self.bank.pool, bank_id, 9)
        return row

    async def balances(self):
        rows = await self.bank.pool.fetch(_HELD)
        return {(kind, is_money): balance for kind, is_money, balance in rows if balance}

    async def bust(self):
        made = await propose_amendment(
            self.bank, self.fill.execution_id, reference="B-1", values=None, reason="busted", by=OLGA
        )
        await self.desk.confirm(made)


@pytest.fixture
async def settlement(bank, desk, new_holder):
    await (await new_holder()).deposit(100_000_00)
    return Settlement(bank, desk)


async def test_a_trade_settles_when_the_custodian_confirms_it(bank, settlement):
    fill = await settlement.trade()
    assert (await settlement.one()).status == "MATCHED"
    await settlement.until(3, 8)
    assert await settlement.balances() == {("dealer:citadel", True): fill.money, ("dealer:citadel", False): -fill.units}
    await settlement.until(3, 10)
    assert (await settlement.one()).status == "SETTLED"
    assert await settlement.balances() == {("custodian", False): -fill.units}
    assert settlement.custodian.holdings() == {fill.cusip: fill.units}
    await expect_clean(bank)


async def test_a_trade_that_fails_three_days_settles_in_two_parts(bank, settlement):
    fill = await settlement.trade(Plan(fails_days=3, settles_units_first=400))
    await settlement.until(5)
    assert (await settlement.one()).status == "FAILING"
    await expect_clean(bank)
    await settlement.until(6)
    row = await settlement.one()
    assert (row.settled_units, row.status) == (400, "FAILING")
    assert await settlement.balances() == {
        ("custodian", False): -400,
        ("dealer:citadel", False): 400 - fill.units,
        ("dealer:citadel", True): fill.money - row.settled_money,
    }
    await expect_clean(bank)
    await settlement.until(9)
    assert (await settlement.one()).status == "SETTLED"
    assert await settlement.balances() == {("custodian", False): -fill.units}
    await expect_clean(bank)


async def test_a_rejected_instruction_is_sent_again_by_a_person(bank, settlement):
    await settlement.trade(Plan(rejects=True))
    row = await settlement.one()
    assert (row.status, row.status_reason) == ("REJECTED", "DMON Another amount")
    await settlement.until(4)
    await send_again(bank, row.instruction_id, reason="account agreed", by=OLGA)
    await settlement.until(5)
    assert ((await settlement.one()).status, (await settlement.one()).attempt) == ("SETTLED", 2)
    await expect_clean(bank)


async def test_a_bust_before_settlement_cancels_the_instruction(bank, settlement):
    await settlement.trade()
    await settlement.bust()
    await settlement.until(3)
    assert (await settlement.one()).status == "CANCELLED"
    assert await settlement.balances() == {}
    await settlement.until(4)
    await expect_clean(bank)


async def test_what_settles_in_spite_of_a_bust_is_sent_back(bank, settlement):
    fill = await settlement.trade(Plan(denies_cancellation=True))
    await settlement.bust()
    await settlement.until(3)
    await expect_clean(bank)
    assert await settlement.balances() == {
        ("custodian", False): -fill.units,
        ("dealer:citadel", False): fill.units,
        ("dealer:citadel", True): -fill.money,
    }
    await settlement.until(4)
    assert await settlement.balances() == {}
    assert settlement.custodian.holdings() == {}
    await expect_clean(bank)


@pytest.mark.parametrize("off", [1, -1])
async def test_money_off_by_a_cent_is_held_until_two_people_accept_it(bank, settlement, off):
    fill = await settlement.trade(Plan(money_off_cents=off))
    await settlement.until(3)
    [held] = await list_held(bank.pool, settlement.desk.bank_id)
    assert (held.units, held.money) == (fill.units, fill.money + off)
    assert (await settlement.balances())["dealer:citadel", True] == fill.money
    await expect_clean(bank)
    made = await propose_difference(bank, held.difference_id, accept=True, reason="A cent", by=OLGA)
    with pytest.raises(Refused, match="another operator"):
        await confirm(bank, made.proposal_id, by=OLGA)
    await confirm(bank, made.proposal_id, by=OTTO)
    assert await settlement.balances() == {("custodian", False): -fill.units}
    await settlement.until(4)
    await expect_clean(bank)


async def test_a_dismissed_difference_leaves_the_trade_open(bank, settlement):
    fill = await settlement.trade(Plan(money_off_cents=1))
    await settlement.until(3)
    [held] = await list_held(bank.pool, settlement.desk.bank_id)
    made = await propose_difference(bank, held.difference_id, accept=False, reason="Sent again", by=OLGA)
    await confirm(bank, made.proposal_id, by=OTTO)
    assert not await list_held(bank.pool, settlement.desk.bank_id)
    assert (await settlement.balances())["dealer:citadel", False] == -fill.units
    await expect_clean(bank)


@pytest.mark.parametrize("misses", [False, True])
async def test_a_maturity_is_expected_until_the_custodian_pays_it(bank, settlement, misses):
    fill = await settlement.trade()
    matures_on = bank.market.bill(fill.cusip).maturity
    if misses:
        settlement.custodian.plan(Plan(misses_maturity=True))
    await ClockStepper(bank).set_to(et_instant(matures_on, 18))
    balances = await settlement.balances()
    due = {("redemptions", True): -fill.units * 100_00, ("redemptions", False): fill.units}
    assert {key: balances.get(key) for key in due} == (due if misses else dict.fromkeys(due))
    rows = await list_open(bank.pool, settlement.desk.bank_id)
    assert [each.open_units for each in rows if each.is_redemption] == ([-fill.units] if misses else [])
    await expect_clean(bank)
