"""The file of Forms 1099-INT and 1099-B for the IRS (FIRE, Publication 1220): pure, record by record.

T, then for each form A, B per payee or sale and C with the totals of its B records, then F. A record has 750
positions, numbered from 1. Numbers are left-padded with zeros, texts right-padded with blanks;
amounts are cents.
"""

import re
from collections.abc import Iterator, Mapping
from typing import IO, Final, NamedTuple

from anyascii import anyascii

from billfold.reports.tax.rules import TaxForm, TaxLine, TaxYear
from billfold.reports.tax.store import Recipient

RECORD_LENGTH: Final = 750
AMOUNT_CODES: Final = "123456789ABCDEFGHJ"
"""The payment amount codes in order: each is a field of every B record, and a total of every C record."""
_NOT_PRINTED = re.compile(r"[^A-Z0-9 &'./,#-]")
_NOT_IN_CONTROL = re.compile(r"[^A-Z0-9&-]")
_CONTROL_CHARS = 4


class Field(NamedTuple):
    """The position of a field, counted from 1."""

    at: int
    length: int
    is_number: bool = False


Layout = Mapping[str, Field]
"""The fields of a record by name, without its first position, which is its type."""


def _amounts(prefix: str, at: int, length: int) -> dict[str, Field]:
    return {f"{prefix}{code}": Field(at + nth * length, length, True) for nth, code in enumerate(AMOUNT_CODES)}  # noqa: FBT003 - is a number


def _fields(text: str) -> dict[str, Field]:
    """Parse the fields "name at:length, ..."; names that end with "#" are numbers. Adds the record number."""
    found = re.findall(r"(\w+) (\d+):(\d+)(#?)", f"{text}, sequence 500:8#")
    return {name: Field(int(at), int(length), is_number=bool(mark)) for name, at, length, mark in found}


TRANSMITTER: Final[Layout] = _fields(
    "year 2:4, prior_year 6:1, tin 7:9, control_code 16:5, test 28:1, name 30:40, company 110:40, "
    "street 190:40, city 230:40, state 270:2, zip 272:9, payees 296:8#, contact 304:40, phone 344:15, "
    "email 359:50, vendor 518:1"
)
PAYER: Final[Layout] = _fields(
    "year 2:4, tin 12:9, name_control 21:4, return_type 26:2, amount_codes 28:18, name 53:40, "
    "transfer_agent 133:1, street 134:40, city 174:40, state 214:2, zip 216:9, phone 225:15"
)
PAYEE: Final = _fields(
    "year 2:4, corrected 6:1, name_control 7:4, tin_type 11:1, tin 12:9, account 21:20, foreign 287:1, "
    "name 288:40, second_name 328:40, street 368:40, city 448:40, state 488:2, zip 490:9"
) | _amounts("amount_", 55, 12)
SALE: Final[Layout] = PAYEE | _fields(
    "noncovered 545:1, gain_type 546:1, proceeds_type 547:1, sold_on 548:8, cusip 556:13, description 569:39, "
    "acquired_on 608:8, form_8949 617:1"
)
FOREIGN_CITY: Final = Field(448, 51)
END_OF_PAYER: Final[Layout] = _fields("payees 2:8#") | _amounts("total_", 16, 18)
END_OF_TRANSMISSION: Final[Layout] = _fields("payers 2:8#, zeros 10:21#, payees 50:8#")


def record(kind: str, layout: Layout, values: Mapping[str, str | int]) -> str:
    """Return a record of 750 characters. Missing numbers are zero; texts that are too long are truncated.

    Raises ValueError for a number that does not fit or is negative.
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
    """Return a text in the IRS's format: Latin capital letters without accents; other scripts are transliterated."""
    return " ".join(_NOT_PRINTED.sub(" ", anyascii(text).upper()).split())


def name_control(name: str, *, is_individual: bool) -> str:
    """Return the first four characters of a last name, or of a business name without its article."""
    words = printable(name).split()
    if not is_individual and len(words) > 1 and words[0] == "THE":
        del words[0]
    source = (words[-1:] if is_individual else words) or [""]
    return _NOT_IN_CONTROL.sub("", "".join(source))[:_CONTROL_CHARS]


_RETURN_TYPES: Final = {TaxForm.INTEREST: "6", TaxForm.BROKER: "B"}
_AMOUNT_CODES: Final = {TaxForm.INTEREST: "34", TaxForm.BROKER: "234"}
_ADDRESS = re.compile(r"(?P<street>.+), *(?P<city>[^,]+), *(?P<state>[A-Z]{2}) +(?P<zip>\d{5}(-\d{4})?)(, *USA?)?")
_CORRECTED: Final = "G"
_NONCOVERED_WITH_BASIS, _SHORT_TERM, _GROSS_PROCEEDS, _BASIS_IS_REPORTED = "2", "1", "1", "A"
_PAYER_IS_AGENT, _WRITTEN_IN_HOUSE = "0", "I"


class Payer(NamedTuple):
    """The bank as a payer: its number, and its transmitter control code."""

    tin: str
    control_code: str
    name: str
    address: str
    phone: str
    contact: str
    email: str

    def fields(self) -> dict[str, str | int]:
        """Return the bank's fields in the T and A records. Raises ValueError for a foreign address."""
        where = _ADDRESS.fullmatch(self.address)
        if where is None:
            raise ValueError(f"an address reads like 1 Main Street, New York, NY 10001, not {self.address}")
        return {
            "tin": self.tin,
            "name": printable(self.name),
            "street": printable(where["street"]),
            "city": printable(where["city"]),
            "state": where["state"],
            "zip": where["zip"].replace("-", ""),
            "phone": re.sub(r"\D", "", self.phone).removeprefix("1"),
        }


class IrsFile:
    """Writes records into a seekable file: the first is written last, because it contains the number of payees.

    With `line_ends` the last two positions of each record are CR and LF.
    """

    def __init__(self, out: IO[bytes], payer: Payer, year: int, *, line_ends: bool = False) -> None:
        self._out, self._payer, self._year, self._line_ends = out, payer, str(year), line_ends
        self._payer_fields = payer.fields()
        self._sequence = 1
        self._totals: dict[str, int] = {}
        self._form: TaxForm | None = None
        self._payers = self._payees_of_payer = 0
        self.payees = 0
        self._out.write(b" " * RECORD_LENGTH)

    def add(self, form: TaxForm, recipient: Recipient, year: TaxYear, *, corrected: bool = False) -> None:
        """Add a Pocket's returns of a form, one for its interest or one per sale; keep those of a form together."""
        if form != self._form:
            self._end_form()
            self._begin_form(form)
        for layout, values in _returns(form, recipient, year):
            self._add_payee(layout, values | {"corrected": _CORRECTED if corrected else ""})

    def end(self, *, test: bool, prior_year: bool) -> None:
        """Finish the file by writing its first record."""
        self._end_form()
        self._write("F", END_OF_TRANSMISSION, {"payers": self._payers, "payees": self.payees})
        values: dict[str, str | int] = self._payer_fields | {
            "prior_year": "P" if prior_year else "",
            "control_code": self._payer.control_code,
            "test": "T" if test else "",
            "company": printable(self._payer.name),
            "payees": self.payees,
            "contact": printable(self._payer.contact),
            "email": self._payer.email.upper(),
            "vendor": _WRITTEN_IN_HOUSE,
        }
        self._out.seek(0)
        self._sequence = 0
        self._write("T", TRANSMITTER, values)

    def _begin_form(self, form: TaxForm) -> None:
        self._form = form
        self._payers += 1
        self._payees_of_payer = 0
        self._totals = {f"total_{code}": 0 for code in AMOUNT_CODES}
        values = self._payer_fields | {
            "return_type": _RETURN_TYPES[form],
            "amount_codes": _AMOUNT_CODES[form],
            "name_control": name_control(self._payer.name, is_individual=False),
            "transfer_agent": _PAYER_IS_AGENT,
        }
        self._write("A", PAYER, values)

    def _end_form(self) -> None:
        if self._form is not None:
            self._write("C", END_OF_PAYER, {"payees": self._payees_of_payer, **self._totals})

    def _add_payee(self, layout: Layout, values: dict[str, str | int]) -> None:
        self._payees_of_payer += 1
        self.payees += 1
        for name in self._totals:
            self._totals[name] += int(values.get(name.replace("total", "amount"), 0))
        self._write("B", layout, values)

    def _write(self, kind: str, layout: Layout, values: dict[str, str | int]) -> None:
        self._sequence += 1
        line = record(kind, layout, values | {"year": self._year, "sequence": self._sequence})
        self._out.write((f"{line[:-2]}\r\n" if self._line_ends else line).encode("ascii"))


def require_records(form: TaxForm, recipient: Recipient, year: TaxYear) -> None:
    """Raise ValueError unless every return of a Pocket fits into a record."""
    for layout, values in _returns(form, recipient, year):
        record("B", layout, values)


def _returns(form: TaxForm, recipient: Recipient, year: TaxYear) -> Iterator[tuple[Layout, dict[str, str | int]]]:
    """Yield the fields of each return of a Pocket: one for its interest, or one per sale."""
    payee = _payee_fields(recipient)
    if form == TaxForm.INTEREST:
        interest: dict[str, str | int] = {"amount_3": year.interest, "amount_4": year.withheld}
        yield PAYEE, payee | {"account": year.account} | interest
        return
    for line in year.sales:
        yield SALE, payee | _sale_fields(line)


def _payee_fields(recipient: Recipient) -> dict[str, str | int]:
    address = recipient.address
    values: dict[str, str | int] = {
        "tin": recipient.tin,
        "tin_type": recipient.tin_type,
        "name": printable(recipient.name),
        "name_control": name_control(recipient.name, is_individual=recipient.is_individual),
    }
    if address is None:
        return values
    values["street"] = printable(" ".join(filter(None, (address.street_address, address.street_address2))))
    state, zip_code = printable(address.state or ""), re.sub(r"\D", "", address.postal_code)
    if address.country == "US":
        return values | {"city": printable(address.city), "state": state, "zip": zip_code}
    # For a foreign address, city, province, postal code and country are one text across the fields of all three.
    abroad = " ".join(filter(None, (address.city, address.state, address.postal_code, address.country)))
    city, province, code = _split_at(printable(abroad).ljust(FOREIGN_CITY.length), 40, 42)
    return values | {"foreign": "1", "city": city, "state": province, "zip": code}


def _split_at(text: str, *places: int) -> Iterator[str]:
    start = 0
    for end in (*places, len(text)):
        yield text[start:end]
        start = end


def _sale_fields(line: TaxLine) -> dict[str, str | int]:
    disposal = line.disposal
    return {
        "account": line.account,
        "amount_2": disposal.proceeds,
        "amount_3": line.basis,
        "amount_4": line.withheld,
        "noncovered": _NONCOVERED_WITH_BASIS,
        "gain_type": _SHORT_TERM,
        "proceeds_type": _GROSS_PROCEEDS,
        "sold_on": f"{disposal.disposed_on:%Y%m%d}",
        "cusip": disposal.cusip.rjust(13),
        "description": f"{disposal.units} US TREASURY BILLS DUE {disposal.maturity:%m/%d/%Y}",
        "acquired_on": f"{disposal.acquired_on:%Y%m%d}",
        "form_8949": _BASIS_IS_REPORTED,
    }
