"""The records of a file for the FIRE system of the IRS, by Publication 1220: 750 positions each, fields by position.

Positions begin with 1. Numbers are filled with zeros from the left, texts with blanks from the right.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from anyascii import anyascii

RECORD_LENGTH: Final = 750
AMOUNT_CODES: Final = "123456789ABCDEFGHJ"
"""The payment amounts in their order: each is a field of every B record, and a total of every C record."""
_NOT_PRINTED = re.compile(r"[^A-Z0-9 &'./,#-]")
_NOT_IN_CONTROL = re.compile(r"[^A-Z0-9&-]")
_CONTROL_CHARS = 4


class Field(NamedTuple):
    """Where a field stands; positions begin with 1."""

    at: int
    length: int
    is_number: bool = False


Layout = Mapping[str, Field]
"""The fields of a record by their names, without its first position, which is its kind."""


def _amounts(prefix: str, at: int, length: int) -> dict[str, Field]:
    return {f"{prefix}{code}": Field(at + nth * length, length, True) for nth, code in enumerate(AMOUNT_CODES)}  # noqa: FBT003 - is a number


_SEQUENCE = {"sequence": Field(500, 8, True)}  # noqa: FBT003 - is a number
TRANSMITTER: Final[Layout] = {
    "year": Field(2, 4),
    "prior_year": Field(6, 1),
    "tin": Field(7, 9),
    "control_code": Field(16, 5),
    "test": Field(28, 1),
    "name": Field(30, 40),
    "company": Field(110, 40),
    "street": Field(190, 40),
    "city": Field(230, 40),
    "state": Field(270, 2),
    "zip": Field(272, 9),
    "payees": Field(296, 8, is_number=True),
    "contact": Field(304, 40),
    "phone": Field(344, 15),
    "email": Field(359, 50),
    "vendor": Field(518, 1),
    **_SEQUENCE,
}
PAYER: Final[Layout] = {
    "year": Field(2, 4),
    "tin": Field(12, 9),
    "name_control": Field(21, 4),
    "return_type": Field(26, 2),
    "amount_codes": Field(28, 18),
    "name": Field(53, 40),
    "transfer_agent": Field(133, 1),
    "street": Field(134, 40),
    "city": Field(174, 40),
    "state": Field(214, 2),
    "zip": Field(216, 9),
    "phone": Field(225, 15),
    **_SEQUENCE,
}
PAYEE: Final[Layout] = {
    "year": Field(2, 4),
    "corrected": Field(6, 1),
    "name_control": Field(7, 4),
    "tin_type": Field(11, 1),
    "tin": Field(12, 9),
    "account": Field(21, 20),
    **_amounts("amount_", 55, 12),
    "foreign": Field(287, 1),
    "name": Field(288, 40),
    "second_name": Field(328, 40),
    "street": Field(368, 40),
    "city": Field(448, 40),
    "state": Field(488, 2),
    "zip": Field(490, 9),
    **_SEQUENCE,
}
SALE: Final[Layout] = {
    **PAYEE,
    "noncovered": Field(545, 1),
    "gain_type": Field(546, 1),
    "proceeds_type": Field(547, 1),
    "sold_on": Field(548, 8),
    "cusip": Field(556, 13),
    "description": Field(569, 39),
    "acquired_on": Field(608, 8),
    "form_8949": Field(617, 1),
}
FOREIGN_CITY: Final = Field(448, 51)
END_OF_PAYER: Final[Layout] = {
    "payees": Field(2, 8, is_number=True),
    **_amounts("total_", 16, 18),
    **_SEQUENCE,
}
END_OF_TRANSMISSION: Final[Layout] = {
    "payers": Field(2, 8, is_number=True),
    "zeros": Field(10, 21, is_number=True),
    "payees": Field(50, 8, is_number=True),
    **_SEQUENCE,
}


def record(kind: str, layout: Layout, values: Mapping[str, str | int]) -> str:
    """Return a record of 750 characters. Numbers that are not given are zero; a longer text is cut.

    Raises ValueError for a number that does not fit, or is negative.
    """
    line = [" "] * RECORD_LENGTH
    line[0] = kind
    for name, field in layout.items():
        value = values.get(name, 0 if field.is_number else "")
        line[field.at - 1 : field.at - 1 + field.length] = _filled(field, value)
    return "".join(line)


def _filled(field: Field, value: str | int) -> str:
    if isinstance(value, str):
        return value[: field.length].ljust(field.length)
    written = f"{value:0{field.length}d}"
    if value < 0 or len(written) > field.length:
        raise ValueError(f"{value} does not fit into {field.length} digits")
    return written


def printable(text: str) -> str:
    """Return a text as the IRS reads it: Latin capital letters without accents; other scripts are transliterated."""
    return " ".join(_NOT_PRINTED.sub(" ", anyascii(text).upper()).split())


def name_control(name: str, *, is_individual: bool) -> str:
    """Return the first four characters of a last name, or of a business's name without its article."""
    words = printable(name).split()
    if not is_individual and len(words) > 1 and words[0] == "THE":
        del words[0]
    source = (words[-1:] if is_individual else words) or [""]
    return _NOT_IN_CONTROL.sub("", "".join(source))[:_CONTROL_CHARS]
