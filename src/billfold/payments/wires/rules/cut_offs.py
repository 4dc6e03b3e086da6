"""Cut-offs of wires, and the meaning of ISO 20022 reason codes for customers.

Sources: cut-offs contract 9; the ISO 20022 external code set of status reasons.
"""

import re
from datetime import datetime
from uuid import UUID

from billfold.platform.calendars import Calendars, WireHours
from billfold.platform.dates import ET, et_instant
from billfold.platform.ids import as_version_4, derive, digits

_CODE = re.compile("[A-Z0-9]{4}")
_REFERENCE_DIGITS = 12
_REASONS = {
    "ACCOUNT_UNAVAILABLE": ("AC01", "AC03", "AC04", "AC06", "AC07", "AG01", "MD07", "NOAS", "BE01"),
    "SANCTION_SCREEN_FAILED": ("RR01", "RR02", "RR03", "RR04", "LEGL", "SANC"),
    "CANCELED": ("CUST", "FOCR", "DUPL", "AM05", "DS02"),
    "INVALID_CURRENCY": ("AM03", "AC09", "CURR"),
}
_REASON_OF = {code: reason for reason, codes in _REASONS.items() for code in codes}
CODE_OF = {
    "ACCOUNT_UNAVAILABLE": "AC04",
    "NO_ACCOUNT": "AC01",
    "SANCTION_SCREEN_FAILED": "RR04",
    "CANCELED": "FOCR",
    "INSUFFICIENT_FUNDS": "AM04",
    "INVALID_TRANSFER": "NARR",
}
"""ISO 20022 codes for the bank's own reasons."""


def code_of(reason: str) -> str:
    """Return the ISO 20022 code of one of the bank's reasons; a code is returned unchanged."""
    known = CODE_OF.get(reason)
    return known or (reason if _CODE.fullmatch(reason) else CODE_OF["INVALID_TRANSFER"])


def reason_of(code: str | None) -> str:
    """Return the reason shown to the customer for a code from Fedwire or another bank."""
    return _REASON_OF.get(code or "", "INVALID_TRANSFER")


def send_time(now: datetime, calendars: Calendars, hours: WireHours, *, international: bool) -> datetime:
    """Return the instant at which a wire accepted `now` is sent and settles.

    Within the hours that is now, else the opening of the next Federal Reserve business day.
    """
    until = hours.international_cutoff if international else hours.domestic_cutoff
    local = now.astimezone(ET)
    day = local.date()
    if calendars.is_fed_day(day) and local.time() < until:
        return max(now, et_instant(day, hours.opens))
    return et_instant(calendars.next_fed_day(day), hours.opens)


def uetr_of(seed: bytes, wire_id: UUID) -> str:
    """Return the UETR of an outgoing payment, a UUID of version 4."""
    return str(as_version_4(derive(seed, wire_id, 0)))


def reference_of(seed: bytes, wire_id: UUID) -> str:
    """Return the reference number of an outgoing wire."""
    return "W" + digits(seed, wire_id, 0, count=_REFERENCE_DIGITS)
