"""CUSIPs and ISINs: check digits, and the numbers of simulated bills.

A simulated CUSIP is `SIM`, two digits of the year, the month in one hexadecimal digit, two
digits of the day, and a true check digit: `SIM26B193` matures on 2026-11-19. One maturity date
has one number, as bills of one maturity are one security. No Treasury issue begins with `SIM`.
"""

from datetime import date
from functools import lru_cache
from uuid import NAMESPACE_OID, UUID, uuid5

from stdnum import cusip as stdnum_cusip
from stdnum import isin as stdnum_isin

_PREFIX = "SIM"
_CENTURY = 2000
_CUSIP_LENGTH = 9


def is_valid_cusip(cusip: str) -> bool:
    """Return whether this is nine upper-case characters with the right check digit."""
    return len(cusip) == _CUSIP_LENGTH and cusip == cusip.upper() and bool(stdnum_cusip.is_valid(cusip))


@lru_cache(maxsize=1024)
def tradable_id(cusip: str) -> UUID:
    """Return the id of a bill in the v1 reads: a name-based UUID of its CUSIP."""
    return uuid5(NAMESPACE_OID, f"cusip:{cusip}")


def isin_of(cusip: str) -> str:
    """Return the US ISIN of a CUSIP: country, CUSIP, Luhn digit."""
    return stdnum_isin.from_natid("US", cusip)


def is_simulated_cusip(cusip: str) -> bool:
    """Return whether a CUSIP was made by `simulated_cusip`'s rule."""
    return cusip.startswith(_PREFIX)


def simulated_cusip(maturity: date) -> str:
    """Return the CUSIP of the simulated bill of a maturity date, 2000-01-01 to 2099-12-31."""
    if maturity.year // 100 != _CENTURY // 100:
        raise ValueError(f"simulated bills mature in 2000 to 2099, not {maturity.isoformat()}")
    issue = f"{_PREFIX}{maturity.year % 100:02d}{maturity.month:X}{maturity.day:02d}"
    return issue + stdnum_cusip.calc_check_digit(issue)


def simulated_maturity(cusip: str) -> date | None:
    """Return the maturity date in a simulated CUSIP; None when it is not one."""
    if not (is_simulated_cusip(cusip) and is_valid_cusip(cusip)):
        return None
    try:
        return date(_CENTURY + int(cusip[3:5]), int(cusip[5], 16), int(cusip[6:8]))
    except ValueError:
        return None
