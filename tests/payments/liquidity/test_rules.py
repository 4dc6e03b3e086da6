"""The order in which due payments leave: tables of cases, and the property that nobody is passed for ever."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billfold.payments.liquidity.rules import PATIENCE, DuePayment, Flow, Funds, admit, forecast

NOW = datetime(2025, 6, 2, 15, 20, tzinfo=UTC)
ANNA, BEN, CARA = (UUID(int=n) for n in (1, 2, 3))


def due(customer, cents, minutes=0, *, released=False):
    """A payment that is due since so many minutes."""
    number = UUID(int=hash((customer, cents, minutes)) % 2**64)
    return DuePayment(number, customer, number, cents, NOW - timedelta(minutes=minutes), is_released=released)


OLD = PATIENCE.seconds // 60


@pytest.mark.parametrize(
    ("queue", "funds", "leaving"),
    [
        ([due(ANNA, 60), due(BEN, 40)], Funds(100), [60, 40]),
        ([due(ANNA, 60), due(BEN, 50)], Funds(100), [60]),
        ([due(ANNA, 101), due(BEN, 40)], Funds(100), [40]),
        # First in, first out per customer: Anna's small one does not pass her large one.
        ([due(ANNA, 101), due(ANNA, 1), due(BEN, 40)], Funds(100), [40]),
        # The money that comes is kept for one that has waited and can be paid today.
        ([due(ANNA, 101, OLD), due(BEN, 40)], Funds(100, expected=1), []),
        # One that nothing expected today can pay holds up nobody.
        ([due(ANNA, 101, OLD), due(BEN, 40)], Funds(100, expected=0), [40]),
        # Nor does a later one of its customer.
        ([due(ANNA, 999, OLD), due(ANNA, 101, OLD), due(BEN, 40)], Funds(100, expected=1), [40]),
        # Released ones leave, and what they take is gone.
        ([due(ANNA, 101, released=True), due(BEN, 40)], Funds(100), [101]),
        ([due(ANNA, 60), due(BEN, 40)], Funds(100, day_left=60), [60]),
        # The limit of the day keeps no money of others.
        ([due(ANNA, 60, OLD), due(BEN, 40)], Funds(100, expected=9, day_left=50), [40]),
        ([due(ANNA, 1)], Funds(-5), []),
    ],
)
def test_payments_leave_in_their_order_as_far_as_the_funds_go(queue, funds, leaving):
    assert [each.cents for each in admit(queue, funds, NOW)] == leaving


_QUEUES = st.lists(st.tuples(st.sampled_from([ANNA, BEN, CARA]), st.integers(1, 100)), max_size=12)


@given(_QUEUES, st.integers(-50, 300), st.integers(0, 300))
def test_no_payment_passes_an_earlier_one_of_its_customer_and_no_more_leaves_than_there_is(queue, cents, expected):
    asked = [due(customer, amount, 60 - n) for n, (customer, amount) in enumerate(queue)]
    leaving = admit(asked, Funds(cents, expected), NOW)
    assert sum(each.cents for each in leaving) <= max(cents, 0)
    for customer in (ANNA, BEN, CARA):
        own = [each for each in asked if each.customer_id == customer]
        gone = [each for each in leaving if each.customer_id == customer]
        assert gone == own[: len(gone)]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(31, 100))
def test_a_large_payment_leaves_once_enough_came_however_many_small_ones_are_added(small, large):
    """Every ten minutes 30 comes and small payments of another customer are added."""
    queue, funds = [due(ANNA, large)], 0
    for step in range(20):
        now = NOW + timedelta(minutes=10 * step)
        funds += 30
        added = small[step % len(small)]
        number = UUID(int=1_000 + step)
        queue.append(DuePayment(number, BEN, number, added, now))
        leaving = admit(queue, Funds(funds, expected=large), now)
        funds -= sum(each.cents for each in leaving)
        queue = [each for each in queue if each not in leaving]
        if all(each.customer_id != ANNA for each in queue):
            return
    raise AssertionError(f"{large} still waits")


def test_the_forecast_adds_flows_in_their_hours_and_late_ones_in_the_first():
    flows = [
        Flow(NOW - timedelta(hours=3), 5, "late"),
        Flow(NOW + timedelta(hours=1), -70, "x"),
        Flow(NOW + timedelta(hours=1, minutes=10), 20, "y"),
        Flow(NOW + timedelta(hours=9), 1, "beyond"),
    ]
    hours = forecast(100, flows, NOW, NOW + timedelta(hours=2))
    assert [(each.inflow, each.outflow, each.balance) for each in hours] == [(5, 0, 105), (20, 70, 55), (0, 0, 55)]
