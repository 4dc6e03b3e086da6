"""Cash back of customers with several cards: what is refunded to one of them is not earned on another."""

import asyncio
from datetime import date

import msgspec
import pytest
from tests.support.cards import Program, presentment, refund
from tests.support.damage import checks_of, report_of

from billfold.ledger.dry_run import submit_in_lots
from billfold.payments.cards.cash_back import checks, store, worker
from billfold.payments.cards.commands import CloseCard


@pytest.fixture
async def program(bank):
    return Program(bank)


async def cards_of(program, holder, count):
    """Return the ids of new cards of a holder with money, in their order."""
    await holder.deposit(10_000_00)
    return sorted([await program.card(holder) for _ in range(count)])


async def test_a_refund_to_a_second_card_reduces_the_cash_back_of_the_card_that_bought(program, new_holder):
    holder, other = await new_holder(), await new_holder()
    buys, gets = await cards_of(program, holder, 2)
    (others,) = await cards_of(program, other, 1)
    await program.rule(basis_points=100)
    await program.send(presentment(buys, 100_00), refund(gets, 60_00), presentment(others, 100_00))
    await program.on(date(2025, 7, 1))
    assert await program.given("2025-06") == {buys: 40, gets: 0, others: 1_00}

    await program.send(presentment(buys, 10_00), refund(gets, 80_00), settles_on=date(2025, 7, 2))
    await holder.submit(CloseCard, holder.customer_id, references=(gets,), card_id=gets)
    await program.on(date(2025, 8, 1))
    assert await program.given("2025-07") == {buys: 0, gets: 0}

    await program.send(presentment(buys, 30_00), presentment(others, 30_00), settles_on=date(2025, 8, 4))
    await program.on(date(2025, 9, 2))
    assert await program.given("2025-08") == {buys: 0, others: 30}
    late = await program.card(holder)
    await program.send(presentment(buys, 25_00), presentment(late, 90_00), settles_on=date(2025, 9, 3))
    await program.on(date(2025, 10, 1))
    assert await program.given("2025-09") == {buys: 0, late: 75}  # 1 % of 115.00 less the last 40.00
    await program.send(presentment(buys, 25_00), settles_on=date(2025, 10, 2))
    await program.on(date(2025, 11, 3))
    assert await program.given("2025-10") == {buys: 25}
    assert sum(amount for amount, _ in await program.credits(holder.customer_id)) == 1_40  # of 280.00 less 140.00
    await program.clean()


async def test_a_refund_to_a_second_card_is_applied_before_the_cash_back_cap(program, new_holder):
    most, less, gets, same = await cards_of(program, await new_holder(), 4)
    await program.rule(basis_points=100, cap=1_00)
    await program.send(presentment(most, 500_00), presentment(less, 100_00), presentment(same, 100_00))
    await program.send(refund(gets, 150_00))
    await program.on(date(2025, 7, 1))
    assert await program.given("2025-06") == {most: 1_00, less: 0, gets: 0, same: 50}
    await program.clean()


async def test_a_cash_back_run_interrupted_between_two_cards_counts_the_refund_once(program, new_holder, monkeypatch):
    gets, buys = await cards_of(program, await new_holder(), 2)
    await program.rule(basis_points=100)
    await program.send(refund(gets, 60_00), presentment(buys, 100_00))

    async def cut(bank, submitted):
        async for each in submit_in_lots(bank, submitted[:1]):
            yield each
        raise asyncio.CancelledError

    monkeypatch.setattr(worker, "submit_in_lots", cut)
    with pytest.raises(asyncio.CancelledError):
        await program.on(date(2025, 7, 1))
    assert await program.given("2025-06") == {gets: 0}
    monkeypatch.undo()
    await program.on(date(2025, 7, 2))
    assert await program.given("2025-06") == {gets: 0, buys: 40}
    await program.clean()


async def test_verify_reports_cash_back_that_omits_the_refund_of_a_second_card(program, new_holder, monkeypatch):
    buys, gets = await cards_of(program, await new_holder(), 2)
    await program.rule(basis_points=100)
    await program.send(presentment(buys, 100_00), refund(gets, 60_00))
    list_months = store.list_months

    async def alone(*about):
        return [msgspec.structs.replace(each, carried_in=0) for each in await list_months(*about)]

    monkeypatch.setattr(store, "list_months", alone)
    await program.on(date(2025, 7, 1))
    async with program.bank.pool.acquire() as conn:
        report = await report_of(conn, checks_of(checks))
    (named,) = [each for each in await store.list_given(program.bank.pool, "2025-06") if each.card_id == buys]
    assert (report.first.table, report.first.key["cash_back_id"]) == ("cash_back", named.cash_back_id)
