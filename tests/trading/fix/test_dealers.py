"""The sandbox's dealers over FIX: an order is sent once, and everything that they do to it is booked or held."""

import asyncio
from datetime import date

import pytest
from tests.support.whole_bank import expect_clean
from tests.trading.desk_by_hand import OLGA, OTTO
from tests.trading.fix.simulated_desk import simulated_desk, until

from billfold.dual_control.decisions import confirm
from billfold.platform.dates import et_instant
from billfold.platform.money import cents_for
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.dealers import launch
from billfold.sandbox.dealers.books import DEALERS, Behavior, pending_behavior
from billfold.trading import worker
from billfold.trading.commands import NewExecution
from billfold.trading.decisions import change_order, propose_executions
from billfold.trading.fix.store import list_of_order, list_sessions
from billfold.trading.store import list_quotes
from billfold.trading.types import OrderStatus

TUESDAY = date(2025, 6, 3)


@pytest.fixture
def settings():
    return {}


@pytest.fixture
async def desk(bank_dsn, tmp_path, settings):
    async with simulated_desk(bank_dsn, tmp_path, **settings) as opened:
        yield opened


@pytest.fixture
def bank(desk):
    return desk.bank


@pytest.fixture
async def exposed(desk, new_holder):
    """A bank whose customer has bought bills for $250,000 that no dealer has sold to it."""
    holder = await new_holder()
    await holder.deposit(250_000_00)
    return holder


async def placed(desk, behavior=None):
    """Place the order while dealers are to behave in some way."""
    if behavior:
        desk.ask(behavior)
    [order] = await desk.place()
    return order


async def test_an_order_is_filled_once_when_a_round_places_it(desk, exposed):
    async with desk.routing():
        order = await desk.reaches(await placed(desk), "FILLED")

        async def said():
            return [each.type for each in await list_of_order(desk.bank.pool, order.order_id, 9)] == ["D", "8", "8"]

        await until(said)
    [booked] = await desk.executions()
    [theirs] = desk.dealers_executions()
    assert (booked.reference, booked.units * 100, booked.money) == (theirs.reference, theirs.face, theirs.money)
    assert (booked.flags, booked.dealer) == (None, order.dealer)
    await expect_clean(desk.bank)


@pytest.mark.parametrize(
    ("behavior", "status", "parts", "flags"),
    [
        (Behavior.DISCONNECT, "FILLED", 2, None),
        (Behavior.FAR_PRICE, "FILLED", 1, "PRICE"),
        (Behavior.FILL_TWICE, "FILLED", 1, None),
        (Behavior.PARTIAL_FILL, "PARTIALLY_FILLED", 1, None),
    ],
)
async def test_every_fill_is_booked_once_when_a_dealer_misbehaves(desk, exposed, behavior, status, parts, flags):
    async with desk.routing():
        await desk.reaches(await placed(desk, behavior), status)
        booked = await desk.executions()
        assert sorted(each.reference for each in booked) == sorted(e.reference for e in desk.dealers_executions())
        assert (len(booked), booked[0].flags) == (parts, flags)
    assert not await desk.open_messages()
    await expect_clean(desk.bank)


async def test_only_one_of_two_workers_may_send_an_order(desk, exposed):
    """The command of a worker that has died may be committed after the next one has read the order."""
    [order] = await desk.place()
    tries = [worker.change_order(desk.bank, order.order_id, OrderStatus.SENT, "next", dealer="harbor") for _ in "12"]
    assert sorted(await asyncio.gather(*tries)) == [False, True]


async def test_a_rejected_order_is_placed_again_with_another_dealer(desk, exposed):
    async with desk.routing():
        first = await desk.reaches(await placed(desk, Behavior.REJECT), "REJECTED")
        desk.calm()
        second = await desk.reaches(await placed(desk), "FILLED")
    assert {first.dealer, second.dealer} == {"harbor", "northgate"}


async def test_a_fill_with_wrong_money_is_held_until_a_second_person_confirms_the_right_one(desk, exposed):
    async with desk.routing():
        order = await desk.reaches(await placed(desk, Behavior.WRONG_MONEY), "UNKNOWN")
        [held] = await desk.seen(1)
        assert (held.status, held.type) == ("HELD", "8")
        assert "the dealer's money is" in held.reason
        assert not await desk.place(), "it counts as covered"
        [theirs] = desk.dealers_executions()
        fill = NewExecution(
            order_id=order.order_id,
            dealer=order.dealer,
            reference=theirs.reference,
            side=order.side,
            cusip=order.cusip,
            units=order.units,
            price_micros=theirs.price_micros,
            money=cents_for(order.units, theirs.price_micros),
            settles_on=order.settles_on,
            executed_at=await desk.bank.now(),
        )
        made = await propose_executions(desk.bank, [fill], source="by phone", by=OLGA)
        assert await desk.open_messages()
        assert made.proposal is not None
        await confirm(desk.bank, made.proposal.proposal_id, by=OTTO)
    assert not await desk.open_messages()
    assert (await desk.order(order.order_id)).status == "FILLED"
    await expect_clean(desk.bank)


@pytest.mark.parametrize(
    ("behavior", "status", "units"), [(Behavior.CORRECT, "FILLED", 1), (Behavior.BUST, "CANCELLED", 0)]
)
async def test_a_correction_and_a_bust_are_booked_as_rows_that_replace_the_fill(desk, exposed, behavior, status, units):
    async with desk.routing():
        order = await desk.reaches(await placed(desk), "FILLED")
        desk.ask(behavior, order.dealer)

        async def replaced():
            return len(await desk.executions()) == 2

        await until(replaced)
        after = await desk.reaches(order, status)
        assert after.filled_units == order.units * units
        if not units:
            await desk.reaches(await placed(desk), "FILLED")
    await expect_clean(desk.bank)


async def test_an_order_is_unknown_when_nobody_answers_and_known_again_after_the_next_logon(desk, exposed):
    async with desk.routing(answer_seconds=0.4):
        order = await placed(desk, Behavior.SILENT)

        async def received():
            return [name for name in DEALERS if pending_behavior(desk.folder / name) is None]

        await until(received)
        desk.ask(Behavior.SILENT)
        await desk.reaches(order, "UNKNOWN")
        assert not await desk.place(), "it counts as covered"
    desk.calm()
    async with desk.routing():
        await desk.reaches(order, "WORKING")
        await change_order(desk.bank, order.order_id, OrderStatus.CANCELLED, reason="Too slow", by=OLGA)
        await desk.reaches(order, "CANCELLED")
        await desk.reaches(await placed(desk), "FILLED")
    assert len(desk.dealers_executions()) == 1


async def test_an_order_goes_to_people_when_no_session_is_on(desk, exposed, monkeypatch):
    monkeypatch.setattr(launch, "COVER_SECONDS", 0.2)  # nobody answers until then
    await ClockStepper(desk.bank).set_to(et_instant(TUESDAY, 6))
    async with desk.routing(answer_seconds=0.2):
        order = await desk.reaches(await placed(desk), "SENT")
    assert (order.dealer, order.status_reason) == (None, "on the list of the desk: no dealer's session is on")


async def test_numbers_begin_again_on_the_next_day(desk, exposed):
    async with desk.routing():
        await desk.reaches(await placed(desk), "FILLED")
        before = {each.dealer: each for each in await list_sessions(desk.bank.pool)}
        desk.ask(Behavior.DOWN)  # the first logon of the day is lost
        await ClockStepper(desk.bank).set_to(et_instant(TUESDAY, 9))

        async def tried():
            found = await list_sessions(desk.bank.pool)
            return all(each.session_day == TUESDAY and each.next_out > 1 for each in found)

        await until(tried)
        desk.calm()
        await desk.is_on(TUESDAY)
        await exposed.deposit(250_000_00)
        await desk.reaches(await placed(desk), "FILLED")
        after = {each.dealer: each for each in await list_sessions(desk.bank.pool)}
    assert {each.session_day for each in after.values()} == {TUESDAY}
    assert {name: each.next_out for name, each in after.items()} != {n: e.next_out for n, e in before.items()}
    assert all(each.next_out <= 5 for each in after.values())
    assert not any("too low" in (each.problem or "") for each in after.values())
    await expect_clean(desk.bank)


async def test_the_clock_covers_the_day_before_it_jumps_over_a_close(desk, exposed):
    async with desk.routing():
        await ClockStepper(desk.bank).set_to(et_instant(TUESDAY, 9))
    [booked] = await desk.executions()
    assert booked.business_date == date(2025, 6, 2)
    await expect_clean(desk.bank)


@pytest.mark.parametrize("settings", [{"desk_quotes_wanted": 2, "desk_quote_seconds": 20}])
@pytest.mark.parametrize(
    ("behavior", "taken"),
    [
        (None, "harbor"),
        (Behavior.QUOTE_EXPIRES, "northgate"),
        (Behavior.FAR_PRICE, "northgate"),
        (Behavior.REJECT, "northgate"),
    ],
)
async def test_the_best_quote_is_taken_and_the_reason_kept(desk, exposed, behavior, taken):
    if behavior:
        desk.ask(behavior, "harbor")
    async with desk.routing():
        order = await desk.reaches(await placed(desk), "FILLED", seconds=20)
    quotes = (await list_quotes(desk.bank.pool, desk.bank_id, [order.order_id]))[order.order_id]
    [booked] = await desk.executions()
    assert (order.dealer, booked.dealer, booked.flags) == (taken, taken, None if len(quotes) == 2 else "FEW_QUOTES")
    assert order.taken_because.startswith(f"the best of {len(quotes)} quotes: ")
    assert booked.price_micros in {each.price_micros for each in quotes}
    await expect_clean(desk.bank)
