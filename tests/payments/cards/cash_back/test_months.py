"""Cash back: once per card and month, by the rule of that month, on purchases less refunds."""

import asyncio
from datetime import date

import msgspec
import pytest
from tests.support.cards import SHOP, Program, chargeback, presentment, refund, representment

from billfold.accounts.customers.commands import CloseCustomer
from billfold.accounts.pockets.commands import UpdatePocket
from billfold.ledger.dry_run import submit_in_lots
from billfold.payments.cards.cash_back import worker
from billfold.platform.errors import InvalidInput

CASINO = msgspec.structs.replace(SHOP, category_code="7995")
ATM = msgspec.structs.replace(SHOP, category_code="6011")


@pytest.fixture
async def program(bank):
    return Program(bank)


async def test_monthly_cash_back_is_paid_once_and_late_refunds_reduce_the_next_month(program, new_holder):
    holder, other = await new_holder(), await new_holder()
    for each in (holder, other):
        await each.deposit(10_000_00)
    card, capped = await program.card(holder), await program.card(other)
    await program.rule(basis_points=150, excluded_categories=["7995"])
    bought = presentment(card, 100_33)
    await program.send(
        bought, presentment(card, 50_00, merchant=CASINO), presentment(card, 60_00, merchant=ATM), refund(card, 20_00)
    )
    await program.send(chargeback(bought, 10_00), representment(bought, 5_00), settles_on=date(2025, 6, 3))
    await program.rule(basis_points=200, cap=1_00, from_month="2025-07")
    await program.on(date(2025, 7, 1))
    assert await program.given("2025-06") == {card: 1_13}  # 1.5 % of 75.33: 1.12995
    assert await program.credits(holder.customer_id) == [(1_13, "2025-06")]

    await program.send(
        refund(card, 90_00), presentment(card, 30_00), presentment(capped, 77_00), settles_on=date(2025, 7, 2)
    )
    await program.on(date(2025, 8, 1))
    assert await program.given("2025-07") == {card: 0, capped: 1_00}
    await program.send(presentment(card, 70_00), settles_on=date(2025, 8, 4))
    await program.on(date(2025, 9, 2))
    assert await program.given("2025-08") == {card: 20}  # 2 % of 70.00 less the 60.00 of July
    assert await program.credits(holder.customer_id) == [(1_13, "2025-06"), (20, "2025-08")]
    await program.clean()


async def test_cash_back_of_a_closed_pocket_is_paid_to_an_open_one_or_forfeited(program, new_holder):
    await program.rule(basis_points=100)
    holder, leaver = await new_holder(), await new_holder()
    await holder.new_pocket(holder.customer_id, name="Second")
    cards = [await program.card(each) for each in (holder, leaver)]
    for each in (holder, leaver):
        await each.deposit(50_00)
    await program.send(*(presentment(each, 50_00) for each in cards))
    await program.on(date(2025, 6, 20))
    await holder.submit(UpdatePocket, holder.customer_id, pocket_id=holder.pocket_id, close_for="not needed")
    await leaver.submit(CloseCustomer, leaver.customer_id, reason="moved")
    await program.on(date(2025, 7, 1))
    assert await program.given("2025-06") == dict.fromkeys(cards, 50)
    assert await program.credits(holder.customer_id) == [(50, "2025-06")]
    assert await program.credits(leaver.customer_id) == []
    await program.clean()


async def test_a_cash_back_rule_for_a_past_month_or_with_an_unreasonable_rate_is_refused(program):
    for fields in (
        {"from_month": "2025-05"},
        {"from_month": "2025-13"},
        {"basis_points": 1_001},
        {"basis_points": -1},
        {"cap": 0},
        {"excluded_categories": ["79"]},
    ):
        with pytest.raises(InvalidInput):
            await program.rule(**{"basis_points": 100} | fields)
    assert await program.bank.pool.fetchval("SELECT count(*) FROM cash_back_rule") == 0


async def test_an_interrupted_cash_back_run_pays_every_customer_once(program, new_holder, monkeypatch):
    await program.rule(basis_points=100)
    cards = []
    for _ in range(3):
        holder = await new_holder()
        await holder.deposit(500_00)
        cards.append(await program.card(holder))
    await program.send(*(presentment(each, 100_00) for each in cards))

    def killed_after(month, commands):
        async def cut(bank, submitted):
            async for each in submit_in_lots(bank, list(submitted)[:2]):
                yield each
            raise asyncio.CancelledError

        return cut(month, commands)

    monkeypatch.setattr(worker, "submit_in_lots", killed_after)
    with pytest.raises(asyncio.CancelledError):
        await program.on(date(2025, 7, 1))
    assert len(await program.given("2025-06")) == 2
    monkeypatch.undo()
    await program.on(date(2025, 7, 2))
    await program.on(date(2025, 8, 1))
    assert await program.given("2025-06") == dict.fromkeys(cards, 1_00)
    assert await program.given("2025-07") == {}
    await program.clean()
