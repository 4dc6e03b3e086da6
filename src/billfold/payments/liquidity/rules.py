"""The forecast of the reserve, and the order in which due payments leave. Pure; amounts are cents.

First in, first out per customer: a payment never passes an earlier one of its customer. A payment that waits lets
smaller ones of other customers pass, but not for ever: after `PATIENCE` the money that comes is kept for it, if what
is expected today can pay it. One that nothing expected can pay holds up no other customer; a person decides on it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

PATIENCE = timedelta(minutes=30)
_HOUR = timedelta(hours=1)


class DuePayment(NamedTuple):
    """A wire whose time has come and which has not left; `is_released` by two people although the reserve is short."""

    message_id: UUID
    customer_id: UUID
    wire_id: UUID
    cents: int
    due_at: datetime
    is_waiting: bool = False
    is_released: bool = False
    payee: str = ""


class Flow(NamedTuple):
    """Money that is expected in the reserve at an instant, negative if it leaves, and its cause."""

    at: datetime
    cents: int
    cause: str


class Hour(NamedTuple):
    """An hour of the forecast: what comes and goes within it, and the reserve at its end."""

    begins: datetime
    inflow: int
    outflow: int
    balance: int


class Funds(NamedTuple):
    """The cents due payments may use now, those the best hour of today would add, and the rest of the day limit."""

    available: int
    expected: int = 0
    day_left: int | None = None


def forecast(reserve: int, flows: Iterable[Flow], now: datetime, until: datetime) -> list[Hour]:
    """Return the hours from now until an instant; flows whose time has passed come in the first one."""
    begins = now.replace(minute=0, second=0, microsecond=0)
    hours: list[Hour] = []
    waiting = sorted(flow for flow in flows if flow.at < until)
    while begins < until:
        within = [flow.cents for flow in waiting if flow.at < begins + _HOUR]
        waiting = waiting[len(within) :]
        inflow, outflow = sum(each for each in within if each > 0), -sum(each for each in within if each < 0)
        reserve += inflow - outflow
        hours.append(Hour(begins, inflow, outflow, reserve))
        begins += _HOUR
    return hours


def admit(queue: Sequence[DuePayment], funds: Funds, now: datetime) -> list[DuePayment]:
    """Return the payments that leave now, in the order of the queue, which is that of their times; the others wait."""
    available, day_left = funds.available, funds.day_left
    leaving: list[DuePayment] = []
    stopped: set[UUID] = set()
    is_kept = False
    for each in queue:
        is_first = each.customer_id not in stopped
        is_paid = each.cents <= available and (day_left is None or each.cents <= day_left)
        if each.is_released or (is_first and is_paid and not is_kept):
            leaving.append(each)
            available -= each.cents
            day_left = None if day_left is None else day_left - each.cents
            continue
        stopped.add(each.customer_id)
        is_old = now - each.due_at >= PATIENCE
        can_come = each.cents <= available + funds.expected and (day_left is None or each.cents <= day_left)
        is_kept = is_kept or (is_first and is_old and can_come)
    return leaving
