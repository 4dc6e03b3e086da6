"""The activity of a partner's customers and programs, by the days that a worker has counted."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from billfold.payments.ach.rules.review import ADMINISTRATIVE, HISTORY_DAYS, RATES, UNAUTHORISED
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date, et_instant

DAYS: Final = 30
_MONTHS = 12
RAILS = ("ACH", "WIRE", "CARD")
_BOOKED, _LOGGED = (*RAILS, "DEBITS", "CUSTODY"), ("REQUESTS", "DELIVERIES")
_FAILED_MAX = 1000
_COUNTED = """
SELECT subject, day, items, cents_in, cents_out, refused, failed, counted_at FROM partner_day
 WHERE partner_id = $1 AND subject = ANY($2::text[]) AND day >= $3
"""
_RETURNED = """
SELECT return_code, count(*) FROM ach_entry
 WHERE partner_id = $1 AND way = 'ORIGINATION' AND direction = 'DEBIT' AND return_code IS NOT NULL AND created_at >= $2
 GROUP BY 1
"""
_WEBHOOKS = f"""
SELECT s.subscription_id, s.url, s.status, (SELECT count(*) FROM (
         SELECT 1 FROM delivery d
          WHERE d.subscription_id = s.subscription_id AND d.state = 'failed' AND d.queued_at >= $2
          LIMIT {_FAILED_MAX}) f)
  FROM subscription s
 WHERE s.partner_id = $1 AND s.customer_id IS NULL AND s.deleted_at IS NULL
 ORDER BY s.created_at, s.subscription_id LIMIT 50
"""


class Counted(NamedTuple):
    """The count of one subject on one day."""

    subject: str
    day: date
    items: int
    cents_in: int
    cents_out: int
    refused: int
    failed: int
    counted_at: datetime


class Volume(NamedTuple):
    """Payments of a day, or of the month that begins with it; `by_rail` are cents in and out in the order of RAILS."""

    day: date
    payments: int
    money_in: int
    money_out: int
    by_rail: tuple[int, ...]


class Traffic(NamedTuple):
    """Requests to the Partner API and calls of webhooks on a day of wall time; `failures` are errors of the bank."""

    day: date
    requests: int
    refused: int
    failures: int
    calls: int
    failed_calls: int


class ReturnRate(NamedTuple):
    """Debits of sixty days that were returned for some reasons, and the rate of a thousand that Nacha allows."""

    name: str
    returned: int
    debits: int
    allowed: int

    @property
    def percent(self) -> float | None:
        """The rate in percent; None without debits."""
        return 100 * self.returned / self.debits if self.debits else None

    @property
    def is_above(self) -> bool:
        """Return whether the rate is above the one allowed."""
        return self.returned * 1000 > self.debits * self.allowed


class Webhook(NamedTuple):
    """A subscription and its events that could not be delivered."""

    subscription_id: UUID
    url: str
    status: str
    failed: int


class Activity(NamedTuple):
    """The activity of a partner; `custody` is None until a worker has counted."""

    custody: Counted | None
    volumes: Sequence[Volume]
    rates: Sequence[ReturnRate]
    traffic: Sequence[Traffic]
    webhooks: Sequence[Webhook]


async def read_activity(
    conn: Connection, partner_id: UUID, *, now: datetime, wall: datetime, by_month: bool = False
) -> Activity:
    """Return the activity of a partner up to `now`, business time; requests and webhooks go by wall time."""
    today, wall_day = et_date(now), et_date(wall)
    periods = _months(today) if by_month else _days(today)
    counted_since, logged_since = today - timedelta(days=HISTORY_DAYS), wall_day - timedelta(days=DAYS)
    booked = await _counted(conn, partner_id, _BOOKED, min(periods[0], counted_since))
    logged = await _counted(conn, partner_id, _LOGGED, logged_since)
    debits = sum(each.items for each in booked if each.subject == "DEBITS" and each.day >= counted_since)
    codes = await conn.fetch(_RETURNED, partner_id, et_instant(counted_since, 0))
    custody = [each for each in booked if each.subject == "CUSTODY"]
    return Activity(
        custody=max(custody, key=lambda each: each.day, default=None),
        volumes=[_volume(period, booked, by_month=by_month) for period in periods],
        rates=_rates({each["return_code"]: each["count"] for each in codes}, debits),
        traffic=[_traffic(day, logged) for day in _days(wall_day)],
        webhooks=[Webhook(*row) for row in await conn.fetch(_WEBHOOKS, partner_id, et_instant(logged_since, 0))],
    )


async def _counted(conn: Connection, partner_id: UUID, subjects: Sequence[str], since: date) -> list[Counted]:
    return [Counted(*row) for row in await conn.fetch(_COUNTED, partner_id, subjects, since)]


def _days(last: date) -> list[date]:
    return [last - timedelta(days=n) for n in reversed(range(DAYS))]


def _months(last: date) -> list[date]:
    """Return the first days of the months of a year up to a day."""
    months = [12 * last.year + last.month - 1 - n for n in reversed(range(_MONTHS))]
    return [date(n // 12, n % 12 + 1, 1) for n in months]


def _volume(period: date, booked: Iterable[Counted], *, by_month: bool) -> Volume:
    rails = [each for each in booked if each.subject in RAILS]
    rows = [each for each in rails if (each.day.replace(day=1) if by_month else each.day) == period]
    by_rail = tuple(sum(each.cents_in + each.cents_out for each in rows if each.subject == rail) for rail in RAILS)
    money_in, money_out = sum(each.cents_in for each in rows), sum(each.cents_out for each in rows)
    return Volume(period, sum(each.items for each in rows), money_in, money_out, by_rail)


def _traffic(day: date, logged: Iterable[Counted]) -> Traffic:
    found = {each.subject: each for each in logged if each.day == day}
    requests, calls = (found.get(name) for name in _LOGGED)
    sent = (requests.items, requests.refused, requests.failed) if requests else (0, 0, 0)
    return Traffic(day, *sent, *((calls.items, calls.refused) if calls else (0, 0)))


def _rates(returned: dict[str, int], debits: int) -> list[ReturnRate]:
    codes = {"unauthorised": UNAUTHORISED, "administrative": ADMINISTRATIVE, "returned": returned.keys()}
    return [
        ReturnRate(name, sum(n for code, n in returned.items() if code in codes[name]), debits, allowed)
        for name, allowed in RATES
    ]
