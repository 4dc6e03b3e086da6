"""Return reasons, their time frames, and which returned entries may be reinitiated.

Source: Nacha Operating Rules, Appendix Four (return reasons and time frames), section 2.12.4
(reinitiation).
"""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from typing import NamedTuple

from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant

OPENING = time(8, 30)
"""The time of day by which a return must have arrived (ET): opening of business."""
_TWO_DAYS = 2
_SIXTY_DAYS = timedelta(days=60)
_HALF_A_YEAR = timedelta(days=180)
_REINITIATIONS_MAX = 2


class ReturnTimeFrame(Enum):
    """The time frame of the receiving bank."""

    TWO_BANKING_DAYS = "two banking days after settlement"
    SIXTY_DAYS = "sixty days after settlement"
    NONE = "as long as both banks agree"


class ReturnReason(NamedTuple):
    """The meaning of a return code, and its time frame."""

    words: str
    limit: ReturnTimeFrame


def _within_two_days(**codes: str) -> dict[str, ReturnReason]:
    return {code: ReturnReason(words, ReturnTimeFrame.TWO_BANKING_DAYS) for code, words in codes.items()}


def _within_sixty_days(**codes: str) -> dict[str, ReturnReason]:
    return {code: ReturnReason(words, ReturnTimeFrame.SIXTY_DAYS) for code, words in codes.items()}


RETURN_REASONS: Mapping[str, ReturnReason] = {
    **_within_two_days(
        R01="insufficient funds",
        R02="the account is closed",
        R03="no account of that number and name",
        R04="the account number cannot be right",
        R08="payment stopped",
        R09="funds not collected yet",
        R12="the account was sold to another bank",
        R13="the receiving bank takes no ACH entries",
        R14="the representative payee has died or cannot act",
        R15="the beneficiary or holder has died",
        R16="the account is frozen or the entry is barred by OFAC",
        R17="the entry's details or amount look wrong",
        R20="no account for transactions",
        R21="the company identification is invalid",
        R22="the individual's identification is invalid",
        R24="a duplicate",
        R25="the addenda is wrong",
        R26="a field that must be there is missing",
        R27="the trace number is wrong",
        R28="the routing number fails its check digit",
        R29="the company has not authorised it",
        R31="returned late with the sending bank's consent",
    ),
    **_within_sixty_days(
        R05="a corporate debit to a consumer who did not authorise it",
        R07="the authorisation was revoked",
        R10="the consumer did not authorise it",
        R11="not in line with the authorisation",
        R37="the source document was paid as well",
        R38="payment of the source document was stopped",
        R51="the re-presented check entry is not allowed",
        R53="the check was paid as well as the entry",
    ),
    "R06": ReturnReason("returned at the sending bank's request", ReturnTimeFrame.NONE),
    "R23": ReturnReason("the receiver refuses the credit", ReturnTimeFrame.NONE),
}
"""Return reason codes of receiving banks (addenda 99)."""

_REINITIABLE_CODES = frozenset({"R01", "R09"})


def returnable_until(code: str, settled_on: date, calendars: Calendars) -> datetime | None:
    """Return the instant by which a return must have arrived; None if no rule limits it.

    Raises KeyError for a code that is not one of receiving banks.
    """
    limit = RETURN_REASONS[code].limit
    if limit is ReturnTimeFrame.NONE:
        return None
    if limit is ReturnTimeFrame.TWO_BANKING_DAYS:
        return et_instant(calendars.add_fed_days(settled_on, _TWO_DAYS), OPENING)
    return et_instant(calendars.next_fed_day(settled_on + _SIXTY_DAYS), OPENING)


def may_reinitiate(code: str, *, times: int, sent_on: date, today: date) -> bool:
    """Tell whether a returned entry may be reinitiated (section 2.12.4).

    `times` counts earlier reinitiations; `sent_on` is the date of the first entry. Only for
    insufficient funds, at most twice, within 180 days.
    """
    return code in _REINITIABLE_CODES and times < _REINITIATIONS_MAX and today <= sent_on + _HALF_A_YEAR
