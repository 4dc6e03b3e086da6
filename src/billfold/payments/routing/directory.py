"""Reads the directories of FedACH (lines of 155 characters) and of Fedwire (101), as the Federal Reserve makes them.

Pure. A file has one of the two; each line is one routing number.
"""

from collections.abc import Container, Iterable
from datetime import date, datetime
from typing import Final, NamedTuple

from billfold.payments.routing_numbers import is_routing_number

_NONE: Final = "000000000"


class DirectoryEntry(NamedTuple):
    """A bank in the directory of a rail. `replaced_by` is the number that it has since a merger."""

    rail: str
    routing_number: str
    name: str
    city: str | None
    state: str | None
    takes_payments: bool
    replaced_by: str | None
    revised_on: date | None


class InvalidDirectory(ValueError):
    """A file is not a directory; the text says why."""


class Directory(NamedTuple):
    """The entries of a file, and its lines that cannot be read, each with the reason."""

    entries: list[DirectoryEntry]
    odd: list[str]


ODD_SHARE_MAX: Final = 100
"""One line in as many may be odd; a file with more is of another kind, or broken."""


def read_directory(lines: Iterable[str]) -> Directory:
    """Return the entries of a directory; of a number that comes twice the first.

    Raises InvalidDirectory for a file without entries, or if more than one line in a hundred (and more than one in all)
    is odd.
    """
    found, odd = dict[str, DirectoryEntry](), list[str]()
    rail = None
    for number, line in enumerate((each.rstrip("\r\n") for each in lines), start=1):
        if not line.strip(" \x1a"):  # an empty line, or the end of a file of MS-DOS
            continue
        try:
            entry = _read(line, rail, found)
        except InvalidDirectory as wrong:
            odd.append(f"line {number} {wrong}")
        else:
            rail, found[entry.routing_number] = _READERS[len(line)], entry
    if len(odd) > max(1, len(found) // ODD_SHARE_MAX) or not found:
        named = f"; {odd[0]}" if odd else ""
        raise InvalidDirectory(f"{len(odd):,} of {len(odd) + len(found):,} lines cannot be read{named}")
    return Directory(list(found.values()), odd)


def _read(line: str, rail: object, found: Container[str]) -> DirectoryEntry:
    reader = _READERS.get(len(line))
    if reader is None or rail not in {None, reader}:
        raise InvalidDirectory(f"has {len(line)} characters: 155 of FedACH, or 101 of Fedwire")
    try:
        entry = reader(line)
    except ValueError:
        raise InvalidDirectory("has a date that does not exist") from None
    if not is_routing_number(entry.routing_number) or not entry.name:
        raise InvalidDirectory("has no routing number with a name")
    if entry.routing_number in found:
        raise InvalidDirectory("has the routing number of a line before")
    return entry


def _day(text: str, layout: str) -> date | None:
    return datetime.strptime(text, layout).date() if text.strip("0 ") else None  # noqa: DTZ007 - a day


def _read_fedach(line: str) -> DirectoryEntry:
    replaced_by = line[26:35]
    return DirectoryEntry(
        rail="ACH",
        routing_number=line[:9],
        name=line[35:71].strip(),
        city=line[107:127].strip() or None,
        state=line[127:129].strip() or None,
        takes_payments=line[148] == "1",
        replaced_by=replaced_by if is_routing_number(replaced_by) and replaced_by != _NONE else None,
        revised_on=_day(line[20:26], "%m%d%y"),
    )


def _read_fedwire(line: str) -> DirectoryEntry:
    return DirectoryEntry(
        rail="WIRE",
        routing_number=line[:9],
        name=line[27:63].strip(),
        city=line[65:90].strip() or None,
        state=line[63:65].strip() or None,
        takes_payments=line[90] == "Y",
        replaced_by=None,
        revised_on=_day(line[93:101], "%Y%m%d"),
    )


_READERS: Final = {155: _read_fedach, 101: _read_fedwire}
