"""Corrections of account data by notifications of change (NOC).

Source: Nacha Operating Rules, Appendix Five: the position of each code's data in the 29 characters.
"""

import re
from collections.abc import Callable, Mapping

import msgspec
from stdnum.us import rtn


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """Values to use from the next entry on; None means unchanged."""

    routing_number: str | None = None
    account_number: str | None = None
    transaction_code: str | None = None
    identification: str | None = None

    @property
    def details(self) -> dict[str, str]:
        """The corrected details of a counterparty."""
        code = self.transaction_code
        given = {
            "routing_number": self.routing_number,
            "account_number": self.account_number,
            "account_type": code and ("SAVINGS" if code.startswith("3") else "CHECKING"),
        }
        return {name: value for name, value in given.items() if value is not None}


def _account(text: str) -> str | None:
    return text.strip() if _ACCOUNT.fullmatch(text.strip()) else None


_ACCOUNT = re.compile("[0-9A-Za-z]([0-9A-Za-z -]*[0-9A-Za-z])?")
_TRANSACTION_CODES = frozenset({"22", "27", "32", "37", "23", "28", "33", "38"})
_READERS: Mapping[str, Callable[[str], str | None]] = {
    "routing_number": lambda text: text if rtn.is_valid(text) else None,
    "account_number": _account,
    "transaction_code": lambda text: text if text in _TRANSACTION_CODES else None,
    "identification": str.strip,
    "": lambda _: None,  # blank columns
}
_COLUMNS: Mapping[str, tuple[tuple[str, int, int], ...]] = {
    "C01": (("account_number", 0, 17),),
    "C02": (("routing_number", 0, 9),),
    "C03": (("routing_number", 0, 9), ("", 9, 12), ("account_number", 12, 29)),
    "C05": (("transaction_code", 0, 2),),
    "C06": (("account_number", 0, 17), ("", 17, 20), ("transaction_code", 20, 22)),
    "C07": (("routing_number", 0, 9), ("account_number", 9, 26), ("transaction_code", 26, 28)),
    "C09": (("identification", 0, 22),),
}
CORRECTING_CODES = frozenset(_COLUMNS)
"""Codes that give new values in a known position."""
CHANGE_CODES = frozenset(f"C{number:02}" for number in range(1, 15))
REFUSED_CHANGE_CODES = frozenset(f"C{number}" for number in range(61, 70))
"""Codes with which an originator's bank refuses a notification of change."""


def correction_of(code: str, corrected: str) -> Correction:
    """Return the corrections in the 29 characters of corrected data under this code; blank parts are not corrected.

    The correction is empty for a code that is only noted (names, formats, entry classes), and if a
    part is neither blank nor valid: then the others may be in the wrong columns.
    """
    text, found = corrected.ljust(29), {}
    for name, first, end in _COLUMNS.get(code, ()):
        part = text[first:end]
        if not part.strip(" 0"):  # some banks fill uncorrected parts with zeros
            continue
        value = _READERS[name](part)
        if value is None:
            return Correction()
        found[name] = value
    return Correction(**found)
