"""The activity of a partner's customers and programs. Each statement reads a bounded number of rows by an index."""

from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from billfold.platform.database.connection import Connection
from billfold.platform.database.paging import SEARCHED_MAX

DAYS: Final = 30
"""Days of payments that are read; requests are as old as they are kept."""
_FAILED_MAX = 1000
_VOLUMES = f"""
SELECT business_date, count(*) FILTER (WHERE is_payment), count(*),
       coalesce(sum(amount) FILTER (WHERE is_payment AND direction = 'CREDIT'), 0)::bigint,
       coalesce(sum(amount) FILTER (WHERE is_payment AND direction = 'DEBIT'), 0)::bigint
  FROM (SELECT business_date, direction, amount, type IN ('ACH', 'WIRE', 'CARD') AS is_payment
          FROM transaction WHERE partner_id = $1 AND booked_at >= $2
         ORDER BY booked_at DESC, written_no DESC LIMIT {SEARCHED_MAX}) t
 GROUP BY 1 ORDER BY 1 DESC
"""
_ENTRIES = f"""
SELECT count(*), count(return_code) FROM (
  SELECT return_code FROM ach_entry WHERE partner_id = $1 AND way = 'ORIGINATION' AND created_at >= $2
   ORDER BY created_at DESC, written_no DESC LIMIT {SEARCHED_MAX}) t
"""
_REQUESTS = f"""
SELECT (requested_at AT TIME ZONE 'America/New_York')::date, count(*), count(*) FILTER (WHERE status >= 400),
       count(*) FILTER (WHERE status >= 500)
  FROM (SELECT requested_at, status FROM request_log WHERE tenant_id = $1
         ORDER BY requested_at DESC, id DESC LIMIT {SEARCHED_MAX}) t
 GROUP BY 1 ORDER BY 1 DESC
"""
_POCKETS = f"""
SELECT count(*), coalesce(sum(inflow - outflow - fees), 0)::bigint FROM (
  SELECT inflow, outflow, fees FROM pocket WHERE partner_id = $1
   ORDER BY opened_at DESC, written_no DESC LIMIT {SEARCHED_MAX}) t
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


class VolumeOfDay(NamedTuple):
    """Payments over the rails and cards on a business date, of all transactions, and their cents in and out."""

    day: date
    payments: int
    transactions: int
    money_in: int
    money_out: int


class RequestsOfDay(NamedTuple):
    """Requests to the Partner API on a day of wall time; `errors` include those of the bank, `failures`."""

    day: date
    requests: int
    errors: int
    failures: int


class Webhook(NamedTuple):
    """A subscription and its events that could not be delivered."""

    subscription_id: UUID
    url: str
    status: str
    failed: int


class Activity(NamedTuple):
    """The activity of a partner. `assets` are cents paid in less paid out and fees, of all Pockets."""

    volumes: list[VolumeOfDay]
    entries: int
    returned: int
    requests: list[RequestsOfDay]
    pockets: int
    assets: int
    webhooks: list[Webhook]

    @property
    def return_percent(self) -> float | None:
        """The part of ACH entries that came back, in percent; None without any."""
        return 100 * self.returned / self.entries if self.entries else None

    @property
    def error_percent(self) -> float | None:
        """The part of requests that were refused or failed, in percent; None without any."""
        count = sum(each.requests for each in self.requests)
        return 100 * sum(each.errors for each in self.requests) / count if count else None

    @property
    def is_cut(self) -> bool:
        """Return whether there may be more than was read."""
        read = (sum(each.transactions for each in self.volumes), self.entries, self.pockets)
        return max(read) >= SEARCHED_MAX or sum(each.requests for each in self.requests) >= SEARCHED_MAX


async def read_activity(conn: Connection, partner_id: UUID, *, now: datetime, wall: datetime) -> Activity:
    """Return the activity of a partner up to `now`, business time; webhooks go by wall time."""
    since = now - timedelta(days=DAYS)
    entries, returned = await conn.fetchrow(_ENTRIES, partner_id, since) or (0, 0)
    pockets, assets = await conn.fetchrow(_POCKETS, partner_id) or (0, 0)
    webhooks = await conn.fetch(_WEBHOOKS, partner_id, wall - timedelta(days=DAYS))
    return Activity(
        volumes=[VolumeOfDay(*row) for row in await conn.fetch(_VOLUMES, partner_id, since)],
        entries=entries,
        returned=returned,
        requests=[RequestsOfDay(*row) for row in await conn.fetch(_REQUESTS, partner_id)],
        pockets=pockets,
        assets=assets,
        webhooks=[Webhook(*row) for row in webhooks],
    )
