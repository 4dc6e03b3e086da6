"""The rows behind statuses and limits: one indexed statement each, at most thirty rows."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.explain.schemas import Row, RowKind
from billfold.accounts.explain.store import ROWS_MAX
from billfold.http.schemas import usd
from billfold.payments.cards.authorizations.commands import AuthorizationRow
from billfold.platform.database.connection import Db
from billfold.platform.database.rows import Table

_FORMER = f"""
SELECT until, row::text AS row FROM former_row WHERE customer_id = $1 AND kind = $2 AND object_id = $3 AND until <= $4
 ORDER BY until DESC LIMIT {ROWS_MAX}
"""
# The first version of each status among the newest ones: a Pocket has one for each commit that changed it.
_POCKET_STATUSES = """
SELECT known_at, status FROM (
  SELECT known_at, version, status, lag(status) OVER (ORDER BY known_at, version) AS before FROM (
    SELECT known_at, version, status FROM pocket_version WHERE customer_id = $1 AND pocket_id = $2
       AND known_at <= $3 ORDER BY known_at DESC, version DESC LIMIT 1000) v) s
 WHERE before <> status ORDER BY known_at, version
"""
_EXECUTED = """
SELECT booked_at FROM command WHERE customer_id = $1 AND command_id = ANY($2::uuid[]) ORDER BY booked_at DESC LIMIT 1
"""
_REQUESTS_UNDER = f"""
SELECT q.request_id, q.amount, q.created_at FROM transfer_request q
  LEFT JOIN transfer t ON t.customer_id = q.customer_id AND t.transfer_id = q.request_id
  LEFT JOIN wire w ON w.customer_id = q.customer_id AND w.wire_id = q.request_id
 WHERE q.customer_id = $1 AND q.rule_id = $2 AND q.business_date = $3 AND q.status IN ('PENDING', 'APPROVED')
   AND q.reason IS NULL AND q.series_state IS NULL
   AND t.status IS DISTINCT FROM 'REJECTED' AND w.status IS DISTINCT FROM 'REJECTED'
 ORDER BY q.created_at DESC LIMIT {ROWS_MAX}
"""
_ORIGINATED = f"""
SELECT ach_id, amount, created_at FROM ach_entry
 WHERE customer_id = $1 AND way = 'ORIGINATION' AND created_at >= $2 AND status NOT IN ('REJECTED', 'CANCELLED')
 ORDER BY created_at DESC LIMIT {ROWS_MAX}
"""
_authorizations = Table(AuthorizationRow)
_DECLINED = f"""
{_authorizations.select} WHERE customer_id = $1 AND card_id = $2 AND authorized_on >= $3 AND status = 'DECLINED'
 ORDER BY authorized_on DESC, created_at DESC LIMIT 10
"""
# As AuthorizationRow.spent_that_day; $4 a category, null for all.
_SPENT = "greatest(greatest(approved - reversed, cleared) - spent_before, 0)"
_ON_DAY = "customer_id = $1 AND card_id = $2 AND authorized_on = $3 AND ($4::text IS NULL OR category_code = $4)"
_SPENT_ON_DAY = f"SELECT coalesce(sum({_SPENT}), 0)::bigint FROM card_authorization WHERE {_ON_DAY}"
_SPENDING_ON_DAY = f"""
{_authorizations.select} WHERE {_ON_DAY} AND {_SPENT} > 0 ORDER BY created_at DESC LIMIT {ROWS_MAX}
"""


class Former(NamedTuple):
    """A row as it was until a change."""

    until: datetime
    row: dict[str, Any]


async def list_former(conn: Db, customer_id: UUID, table: str, object_id: UUID, *, at: datetime) -> list[Former]:
    """Return the former states at an instant of a row of a table that keeps them, oldest first."""
    found = await conn.fetch(_FORMER, customer_id, table, object_id, at)
    return [Former(row["until"], msgspec.json.decode(row["row"])) for row in reversed(found)]


def status_changes(former: Sequence[Former], status: str) -> list[tuple[datetime, str]]:
    """Return when a row, now in a status, has changed it, and to what."""
    statuses = [*(each.row["status"] for each in former), status]
    pairs = zip(former, statuses[1:], strict=True)
    return [(each.until, after) for each, after in pairs if each.row["status"] != after]


async def list_pocket_statuses(
    conn: Db, customer_id: UUID, pocket_id: UUID, *, at: datetime
) -> list[tuple[datetime, str]]:
    """Return the changes of a Pocket's status among its last thousand states at an instant, oldest first."""
    return [(row[0], row[1]) for row in await conn.fetch(_POCKET_STATUSES, customer_id, pocket_id, at)]


async def find_executed_at(conn: Db, customer_id: UUID, *command_ids: UUID) -> datetime | None:
    """Return when the last of these commands was booked, or None."""
    at: datetime | None = await conn.fetchval(_EXECUTED, customer_id, list(command_ids))
    return at


async def list_requests_under(conn: Db, customer_id: UUID, rule_id: UUID, day: date) -> list[Row]:
    """Return the newest transfer requests of a business day under an approval rule."""
    found = await conn.fetch(_REQUESTS_UNDER, customer_id, rule_id, day)
    return [_row(RowKind.TRANSFER_REQUEST, "Transfer request", *row) for row in found]


async def list_originated(conn: Db, customer_id: UUID, since: datetime) -> list[Row]:
    """Return the newest ACH originations since an instant."""
    found = await conn.fetch(_ORIGINATED, customer_id, since)
    return [_row(RowKind.ACH_ENTRY, "ACH origination", *row) for row in found]


async def list_declined(conn: Db, customer_id: UUID, card_id: UUID, since: date) -> list[AuthorizationRow]:
    """Return the ten newest declined authorizations of a card since a day."""
    return await _authorizations.all(conn, _DECLINED, customer_id, card_id, since)


async def read_spending(
    conn: Db, declined: AuthorizationRow, category: str | None
) -> tuple[int, list[AuthorizationRow]]:
    """Return the cents spent by the card on the day of a declined authorization, and the newest that spent them."""
    key = declined.customer_id, declined.card_id, declined.authorized_on, category
    spent: int = await conn.fetchval(_SPENT_ON_DAY, *key)
    return spent, await _authorizations.all(conn, _SPENDING_ON_DAY, *key)


def _row(kind: RowKind, label: str, object_id: UUID, cents: int, at: datetime) -> Row:
    return Row(kind=kind, label=label, id=str(object_id), amount=usd(cents), at=at)
