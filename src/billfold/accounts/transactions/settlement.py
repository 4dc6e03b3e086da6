"""Settlement dates and remittance information of transactions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.ledger.types import TransactionType
from billfold.platform.calendars import Calendars
from billfold.platform.database.former_rows import as_was, joined_as_was
from billfold.platform.dates import et_date, et_instant


class SettledDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document that a payment settles, with ISO 20022 field names (`RmtInf/Strd`).

    `type` is a code such as CINV, `date` ISO 8601, `amount` the part paid in its `currency`, `reference` that of
    the payee, `information` a text.
    """

    type: str | None = None
    number: str | None = None
    date: str | None = None
    amount: str | None = None
    currency: str | None = None
    reference: str | None = None
    information: str | None = None


def remittance_shown(
    lines: Sequence[str], end_to_end: str | None, documents: Sequence[SettledDocument] | None = None
) -> dict[str, Any] | None:
    """Return remittance information with the field names of the contract and ISO 20022, None if there is none."""
    numbers = [each.reference or each.number for each in documents or ()]
    structured = {
        "reference": next(filter(None, numbers), None),
        "end_to_end_identification": end_to_end,
        "documents": msgspec.to_builtins(documents) if documents else None,
    }
    structured = {name: value for name, value in structured.items() if value}
    if not lines and not structured:
        return None
    return {"unstructured": list(lines), "structured": structured or None}


class BankBooking(msgspec.Struct, frozen=True):
    """A fee, a credit or an adjustment: its journal entry, cents, and whether it was reversed."""

    activity_id: UUID
    pocket_id: UUID
    entry_no: int
    journal_kind: str
    type: str
    direction: str
    amount: int
    cause: str | None
    is_corrected: bool


class TransactionRow(msgspec.Struct, frozen=True):
    """One row of activity; `details` and `remittance` are JSON text."""

    customer_id: UUID
    pocket_id: UUID
    entry_no: int
    posting_no: int
    activity_id: UUID
    transaction_id: UUID
    type: str
    direction: str
    amount: int
    title: str
    description: str
    booked_at: datetime
    settles_at: datetime
    details: str
    remittance: str | None
    written_no: int
    swept: bool = True

    @property
    def is_hold(self) -> bool:
        """True if it shows cash reserved for a card payment: nothing has moved."""
        return self.type == "CARD" and not self.swept


# A pending ACH payment settles when it is sent: a review may take days, or a window may be missed.
_ACH_SETTLES_AT: Final = """CASE WHEN {e}.file_id IS NULL AND {e}.status IN ('PENDING', 'APPROVED')
          THEN greatest({e}.settled_at, timestamptz '2999-12-31') ELSE {e}.settled_at END"""
_AGREED: Final = """CASE WHEN {row}.type = 'ACH' AND {row}.direction = 'DEBIT' THEN coalesce((
     SELECT {ach_settles_at} FROM ach_entry {joined}
      WHERE ach_entry.customer_id = {customer} AND ach_entry.ach_id = ({row}.details ->> 'ach_id')::uuid
        AND ach_entry.entry_no = {row}.entry_no AND ach_entry.way = 'ORIGINATION'), {row}.settles_at)
     ELSE {row}.settles_at END"""
_EASTERN: Final = "({agreed} AT TIME ZONE 'America/New_York')"
# Without a sub-select of its own for each step: a cluster takes only those that read a table.
_SETTLES_AT: Final = """CASE WHEN {agreed} <= {row}.booked_at THEN {agreed} ELSE (
       {eastern} + interval '1 day' * coalesce((
         {closures}::text::json -> {eastern}::date::text ->> ({row}.type = 'ON_US')::int)::int, 0))
       AT TIME ZONE 'America/New_York' END"""


def settles_at(row: TransactionRow, calendars: Calendars) -> datetime:
    """Return when a transaction settles: on the next open day if its own has been declared closed since."""
    if row.settles_at <= row.booked_at:
        return row.settles_at
    if row.type != TransactionType.ON_US:
        return calendars.settles_at(row.settles_at)
    return et_instant(calendars.settlement_on_or_after(et_date(row.settles_at)), 0)


def ach_settles_at(entry: str) -> str:
    """Return the SQL for the settlement time of an ACH entry."""
    return _ACH_SETTLES_AT.format(e=entry)


def settlement_of(row: str, customer: str, *, closures: str, at: str | None = None) -> str:
    """Return the SQL for `settles_at` of a customer's row, given a value of `closures_of`, now or as of an instant."""
    entry, joined = "ach_entry", ""
    if at is not None:
        entry, joined = as_was("ach_entry"), joined_as_was("ach_entry", "ach_id", at, of=(customer, "ach_entry.ach_id"))
    agreed = _AGREED.format(row=row, customer=customer, ach_settles_at=ach_settles_at(entry), joined=joined)
    return _SETTLES_AT.format(row=row, agreed=agreed, eastern=_EASTERN.format(agreed=agreed), closures=closures)


def closures_of(calendars: Calendars) -> str:
    """Return the number of days by which the calendars postpone settlements, of payments and bills, as JSON by day."""
    return msgspec.json.encode(calendars.closures()).decode()
