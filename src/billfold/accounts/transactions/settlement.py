"""When a transaction settles: as agreed, or later if that day has been declared closed since."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from billfold.ledger.types import TransactionType
from billfold.platform.dates import et_date, et_instant

if TYPE_CHECKING:
    from billfold.accounts.transactions.types import (TransactionRow)
    from billfold.platform.calendars import Calendars

# A payment by ACH that waits settles when it goes: a review may take days, a window be missed.
ACH_SETTLES_AT: Final = """CASE WHEN e.file_id IS NULL AND e.status IN ('PENDING', 'APPROVED')
          THEN greatest(e.settled_at, timestamptz '2999-12-31') ELSE e.settled_at END"""
"""When the ACH entry e counts as settled, in SQL."""
_AGREED: Final = f"""CASE WHEN {{row}}.type = 'ACH' AND {{row}}.direction = 'DEBIT' THEN coalesce((
     SELECT {ACH_SETTLES_AT} FROM ach_entry e
      WHERE e.customer_id = {{customer}} AND e.ach_id = ({{row}}.details ->> 'ach_id')::uuid
        AND e.entry_no = {{row}}.entry_no AND e.way = 'ORIGINATION'), {{row}}.settles_at)
     ELSE {{row}}.settles_at END"""
_SETTLES_AT: Final = f"""(SELECT CASE WHEN s.agreed <= {{row}}.booked_at THEN s.agreed ELSE (
       s.eastern + interval '1 day' * coalesce((
         {{closures}}::text::json -> s.eastern::date::text ->> ({{row}}.type = 'ON_US')::int)::int, 0))
       AT TIME ZONE 'America/New_York' END
     FROM (SELECT agreed, agreed AT TIME ZONE 'America/New_York' AS eastern FROM (SELECT {_AGREED}) o(agreed)) s)"""


def settles_at(row: TransactionRow, calendars: Calendars) -> datetime:
    """When a transaction settles: on the next open day if its own has been declared closed since."""
    if row.settles_at <= row.booked_at:
        return row.settles_at
    if row.type != TransactionType.ON_US:
        return calendars.settles_at(row.settles_at)
    return et_instant(calendars.settlement_on_or_after(et_date(row.settles_at)), 0)


def settlement_of(row: str, customer: str, *, closures: str) -> str:
    """Return the SQL for what `settles_at` says of a row of a customer, by a value of `closures_of`."""
    return _SETTLES_AT.format(row=row, customer=customer, closures=closures)


def closures_of(calendars: Calendars) -> str:
    """Return by how many days the calendars move what was to settle on a day, payments and bills, as JSON by day."""
    return msgspec.json.encode(calendars.closures()).decode()
