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
    """The time frame of the bank that returns the entry."""

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


def _without_limit(**codes: str) -> dict[str, ReturnReason]:
    return {code: ReturnReason(words, ReturnTimeFrame.NONE) for code, words in codes.items()}


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
        R39="the source document is not one of the entry class",
        R50="state law does not allow the re-presented check entry",
    ),
    **_within_sixty_days(
        R05="a corporate debit to a consumer who did not authorise it",
        R07="the authorisation was revoked",
        R10="the consumer did not authorise it",
        R11="not in line with the authorisation",
        R33="the receiving bank returns the destroyed check entry",
        R37="the source document was paid as well",
        R38="payment of the source document was stopped",
        R51="the re-presented check entry is not allowed",
        R52="payment of the check behind the re-presented check entry was stopped",
        R53="the check was paid as well as the entry",
    ),
    **_without_limit(R06="returned at the sending bank's request", R23="the receiver refuses the credit"),
}
"""Return reason codes of receiving banks (addenda 99)."""
RECEIVED_RETURN_REASONS: Mapping[str, ReturnReason] = {
    **RETURN_REASONS,
    **_without_limit(
        R18="the effective date cannot be right",
        R19="the amount field is wrong",
        R30="the receiving bank takes no check truncation entries",
        R32="the receiving bank does not settle",
        R34="the receiving bank participates in the network only in part",
        R35="the account takes no debits",
        R36="the account takes no credits",
        R40="the agency returns the enrollment",
        R41="the enrollment's transaction code is wrong",
        R42="the enrollment's routing number is wrong",
        R43="the enrollment's account number is wrong",
        R44="the enrollment's individual identification is wrong",
        R45="the enrollment's name is wrong",
        R46="the enrollment's representative payee indicator is wrong",
        R47="the enrollment is a duplicate",
        R80="the international entry is coded wrongly",
        R81="the gateway takes no international entries of this kind",
        R82="the foreign receiving bank's identification is invalid",
        R83="the foreign receiving bank cannot settle",
        R84="the gateway did not process the entry",
        R85="an international payment, coded as a domestic one",
    ),
}
"""All codes with which an entry of ours may be returned, also by operators, federal agencies and gateways."""
DISHONORED_RETURN_REASONS: Mapping[str, str] = {
    "R61": "the return was misrouted",
    "R62": "the return of an erroneous or reversing debit",
    "R67": "the return is a duplicate",
    "R68": "the return came late",
    "R69": "fields of the return are wrong",
    "R70": "the return was not permitted by the sending bank",
}
"""Reasons of a sending bank not to accept our return of its entry."""
CONTESTED_RETURN_REASONS: Mapping[str, str] = {
    "R71": "the dishonored return was misrouted",
    "R72": "the dishonored return came late",
    "R73": "the return came in time",
    "R74": "the return is corrected",
    "R75": "the return is not a duplicate",
    "R76": "no errors were found",
    "R77": "the dishonored return under R62 is not accepted",
}
"""Reasons of a receiving bank to contest our dishonor of its return."""

STATEMENT_CODES = frozenset({"R05", "R07", "R10", "R11"})
"""Codes for which the consumer has signed a written statement of unauthorized debit."""
_CONSUMER_CODES = ("R07", "R08", "R10", "R11")
_CONSUMER_CODES_OF_CORPORATE_DEBITS = ("R05", "R08")
_CORPORATE_CODES = ("R08", "R29")


def receiver_codes(sec_code: str, *, is_consumer: bool) -> tuple[str, ...]:
    """Return the codes with which a receiver may have a debit returned; R10 and its kin protect consumers only."""
    if not is_consumer:
        return _CORPORATE_CODES
    return _CONSUMER_CODES_OF_CORPORATE_DEBITS if sec_code in {"CCD", "CTX"} else _CONSUMER_CODES


_REINITIABLE_CODES = frozenset({"R01", "R09"})


def returnable_until(code: str, settled_on: date, calendars: Calendars) -> datetime | None:
    """Return the instant by which a return must have arrived; None if no rule limits it.

    Raises KeyError for a code that cannot return an entry.
    """
    limit = RECEIVED_RETURN_REASONS[code].limit
    if limit is ReturnTimeFrame.NONE:
        return None
    if limit is ReturnTimeFrame.TWO_BANKING_DAYS:
        return et_instant(calendars.add_fed_days(settled_on, _TWO_DAYS), OPENING)
    return et_instant(calendars.next_fed_day(settled_on + _SIXTY_DAYS), OPENING)


def may_reinitiate(code: str, *, times: int, sent_on: date, today: date) -> bool:
    """Return whether a returned entry may be reinitiated (section 2.12.4).

    `times` counts earlier reinitiations; `sent_on` is the date of the first entry. Only for
    insufficient funds, at most twice, within 180 days.
    """
    return code in _REINITIABLE_CODES and times < _REINITIATIONS_MAX and today <= sent_on + _HALF_A_YEAR
