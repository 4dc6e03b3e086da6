"""When a wire leaves, and what the codes of Fedwire mean to a customer.

Sources: cut-offs contract 9; reasons are ISO 20022's external code set of status reasons.
"""

from __future__ import annotations

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
"""What we write into a message for a reason of ours."""


def code_of(reason: str) -> str:
    """Return the code of ISO for a reason of ours; one that is a code already stays."""
    known = CODE_OF.get(reason)
    return known or (reason if _CODE.fullmatch(reason) else CODE_OF["INVALID_TRANSFER"])


def reason_of(code: str | None) -> str:
    """Return what a customer is told of a code of the network or of another bank."""
    return _REASON_OF.get(code or "", "INVALID_TRANSFER")


def send_time(now: datetime, calendars: Calendars, hours: WireHours, *, international: bool) -> datetime:
    """Return the instant at which a wire asked for `now` is sent and settles.

    At once within hours; else when the next day on which the Reserve is open begins.
    """
    until = hours.international_cutoff if international else hours.domestic_cutoff
    local = now.astimezone(ET)
    day = local.date()
    if calendars.is_fed_day(day) and local.time() < until:
        return max(now, et_instant(day, hours.opens))
    return et_instant(calendars.next_fed_day(day), hours.opens)


def uetr_of(seed: bytes, wire_id: UUID) -> str:
    """Return the number of a payment of ours from end to end, a UUID of version 4."""
    return str(as_version_4(derive(seed, wire_id, 0)))


def reference_of(seed: bytes, wire_id: UUID) -> str:
    """Return the number under which people speak of a wire of ours."""
    return "W" + digits(seed, wire_id, 0, _REFERENCE_DIGITS)
