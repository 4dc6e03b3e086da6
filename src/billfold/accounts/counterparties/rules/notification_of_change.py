"""What a notification of change corrects.

Source: Nacha Operating Rules, Appendix Five: where each code puts what in the 29 characters.
"""

from collections.abc import Callable, Mapping

import msgspec
from stdnum.us import rtn


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """What to use from the next entry on; what is None stays as it was."""

    routing_number: str | None = None
    account_number: str | None = None
    transaction_code: str | None = None
    identification: str | None = None

    @property
    def details(self) -> dict[str, str]:
        """The details of a counterparty that are given anew."""
        code = self.transaction_code
        given = {
            "routing_number": self.routing_number,
            "account_number": self.account_number,
            "account_type": code and ("SAVINGS" if code.startswith("3") else "CHECKING"),
        }
        return {name: value for name, value in given.items() if value is not None}


def _routing(text: str) -> str:
    if not rtn.is_valid(text):
        raise ValueError("there is no routing number")  # what stands there instead may be an account: it is not shown
    return text


def _account(text: str) -> str:
    if not text.strip():
        raise ValueError("no account number")
    return text.strip()


def _code(text: str) -> str:
    if text not in {"22", "27", "32", "37", "23", "28", "33", "38"}:
        raise ValueError("there is no transaction code")
    return text


_READERS: Mapping[str, Callable[[str], Correction]] = {
    "C01": lambda text: Correction(account_number=_account(text[:17])),
    "C02": lambda text: Correction(routing_number=_routing(text[:9])),
    "C03": lambda text: Correction(routing_number=_routing(text[:9]), account_number=_account(text[12:29])),
    "C05": lambda text: Correction(transaction_code=_code(text[:2])),
    "C06": lambda text: Correction(account_number=_account(text[:17]), transaction_code=_code(text[20:22])),
    "C07": lambda text: Correction(
        routing_number=_routing(text[:9]), account_number=_account(text[9:26]), transaction_code=_code(text[26:28])
    ),
    "C09": lambda text: Correction(identification=_account(text[:22])),
}
CHANGE_CODES = frozenset(_READERS)


def correction_of(code: str, corrected: str) -> Correction:
    """Return what the 29 characters of corrected data say under this code.

    Raises ValueError with the reason when they do not say it, or the code is unknown.
    """
    read = _READERS.get(code)
    if read is None:
        reason = f"{code} is no code of a change that is followed"
        raise ValueError(reason)
    return read(corrected.ljust(29))
