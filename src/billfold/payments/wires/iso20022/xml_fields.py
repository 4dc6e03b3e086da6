"""Mapping between XML elements and struct fields, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from itertools import islice
from typing import Any, NamedTuple

from lxml import etree

from billfold.payments.wires.iso20022.types import FedwireMistake
from billfold.platform.dates import require_in_range

Element = etree._Element  # noqa: SLF001 - lxml gives its type no other name
_CENT_DIGITS = 2
_REPEATABLE = frozenset(
    (
        "AddtlInf",
        "AdrLine",
        "ChrgsInf",
        "CxlRsnInf",
        "CxlStsRsnInf",
        "InstrForCdtrAgt",
        "InstrForNxtAgt",
        "Othr",
        "RfrdDocInf",
        "RgltryRptg",
        "RltdRmtInf",
        "RtrRsnInf",
        "StsRsnInf",
        "Strd",
        "Ustrd",
    )
)
"""Elements that ISO 20022 allows to repeat, `Othr` in a party. Only the first one is read, but charges are added up."""

_ADDRESS, _ADDRESS_MINIMUM = "PstlAdr", frozenset({"town", "country"})


class ElementCodec(NamedTuple):
    """Reads and writes the value of one element. `read` raises ValueError with the reason."""

    write: Callable[[Element, Any], None]
    read: Callable[[Element], Any]


class ElementMapping(NamedTuple):
    """An element, by its path below its parent, and the field it holds.

    A field without a value has no element. A nested table holds a struct. A constant is always written,
    or only with the field named along with it.
    """

    path: str
    field: str | None
    form: ElementCodec | tuple[ElementMapping, ...]


def write_rows(parent: Element, rows: Iterable[ElementMapping], fields: object) -> None:
    """Add the elements of `rows` below `parent`, in order, with the values of `fields`."""
    for row in rows:
        value = getattr(fields, row.field) if row.field else None
        if row.field and value is None:
            continue
        if isinstance(row.form, ElementCodec):
            row.form.write(_new_element(parent, row.path), value)
        else:
            write_rows(_element_at(parent, row.path), row.form, value)


def read_rows(parent: Element, rows: Iterable[ElementMapping]) -> tuple[dict[str, Any], list[FedwireMistake]]:
    """Return the fields below `parent`, and their errors."""
    fields: dict[str, Any] = {}
    mistakes: list[FedwireMistake] = []
    namespace = etree.QName(parent).namespace
    for row in rows:
        element = parent.find("/".join(f"{{{namespace}}}{step}" for step in row.path.split("/")))
        if element is None:
            continue
        if isinstance(row.form, ElementCodec):
            try:
                value = row.form.read(element)
            except ValueError as error:
                mistakes.append(mistake_at(element, str(error)))
                continue
        else:
            value, nested_mistakes = read_rows(element, row.form)
            mistakes += nested_mistakes
            if row.path == _ADDRESS and not value.keys() >= _ADDRESS_MINIMUM:
                continue  # only lines: the file keeps them, and no rule needs an address
        if row.field and value is not None:
            fields[row.field] = value
    return fields, mistakes


def repeated_in(parent: Element, rows: Iterable[ElementMapping]) -> Iterator[FedwireMistake]:
    """Yield the elements that are read and repeat although only one is allowed: their values would conflict."""
    yield from _repeated_below(parent, list(_paths_of(rows)))


def _repeated_below(parent: Element, paths: list[list[str]]) -> Iterator[FedwireMistake]:
    below: dict[str, list[list[str]]] = {}
    for first, *rest in filter(None, paths):
        below.setdefault(first, []).append(rest)
    for name, further in below.items():
        for place, child in enumerate(parent.findall(f"{{*}}{name}")):
            if place and (name not in _REPEATABLE or _is_of_account(child)):
                yield mistake_at(child, "is repeated")
            yield from _repeated_below(child, further)


def _is_of_account(number: Element) -> bool:
    """Return whether a number belongs to an account, which has one; a party may have several."""
    holder = next(islice(number.iterancestors(), 1, None), None)
    return holder is not None and etree.QName(holder).localname.endswith("Acct")


def _paths_of(rows: Iterable[ElementMapping]) -> Iterator[list[str]]:
    """Yield the path of each element that is read."""
    for row in rows:
        yield (steps := row.path.split("/"))
        if not isinstance(row.form, ElementCodec):
            yield from (steps + nested for nested in _paths_of(row.form))


def mistake_at(element: Element, reason: str) -> FedwireMistake:
    """Return the error at an element."""
    return FedwireMistake(element.sourceline or 0, etree.QName(element).localname, reason)


def constant(text: str) -> ElementCodec:
    """Return a codec for an element with a fixed value."""

    def read(element: Element) -> None:
        if _read_text(element) != text:
            reason = f"should be {text}, not {_read_text(element)!r}"
            raise ValueError(reason)

    return ElementCodec(lambda element, _: _write_text(element, text), read)


def _new_element(parent: Element, path: str) -> Element:
    """Return a new element at the path, below existing elements."""
    parent_path, _, last = path.rpartition("/")
    parent = _element_at(parent, parent_path) if parent_path else parent
    element: Element = etree.SubElement(parent, f"{{{etree.QName(parent).namespace}}}{last}")
    return element


def _element_at(parent: Element, path: str) -> Element:
    """Return the last element at the path, or a new one."""
    for step in path.split("/"):
        name = f"{{{etree.QName(parent).namespace}}}{step}"
        last = parent[-1] if len(parent) else None
        parent = last if last is not None and last.tag == name else etree.SubElement(parent, name)
    return parent


def _write_text(element: Element, value: object) -> None:
    element.text = str(value)


def _read_text(element: Element) -> str:
    if len(element):
        reason = "holds elements instead of a text"
        raise ValueError(reason)
    return (element.text or "").strip()


def _read_instant(element: Element) -> datetime:
    at = require_in_range(datetime.fromisoformat(_read_text(element)))
    if at.tzinfo is None:
        reason = f"{_read_text(element)} has no offset from UTC"
        raise ValueError(reason)
    return at


def _read_day(element: Element) -> date:
    return require_in_range(date.fromisoformat(_read_text(element)))


def _write_money(element: Element, cents: int) -> None:
    element.set("Ccy", "USD")
    element.text = f"{cents // 100}.{cents % 100:02}"


def _read_money(element: Element) -> int:
    if element.get("Ccy") != "USD":
        reason = f"currency is {element.get('Ccy')}, not USD"
        raise ValueError(reason)
    text = _read_text(element)
    if not text.isascii() or not text.replace(".", "", 1).isdecimal():
        reason = f"{text!r} is not an amount"
        raise ValueError(reason)
    dollars, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    if len(fraction) > _CENT_DIGITS:
        reason = f"{text} has parts of a cent"
        raise ValueError(reason)
    return int(dollars + fraction.ljust(_CENT_DIGITS, "0"))


def _read_charges(element: Element) -> int:
    """Return the sum over all blocks of charges, in cents; each bank along the way adds its own."""
    block = element.getparent()
    assert block is not None
    others = block.itersiblings(etree.QName(block))
    amounts = [element, *(each for other in others for each in other.findall("{*}Amt"))]
    return sum(map(_read_money, amounts))


def _ignore(_: Element) -> None:
    """Ignore the value of an element."""


def _read_member(element: Element) -> str | None:
    """Return a routing number; None for the number of a bank in another clearing system."""
    system = element.getparent().find("{*}ClrSysId/{*}Cd")  # type: ignore[union-attr]
    return _read_text(element) if system is not None and _read_text(system) == "USABA" else None


TEXT = ElementCodec(_write_text, _read_text)
INSTANT = ElementCodec(lambda element, at: _write_text(element, at.isoformat()), _read_instant)
DAY = ElementCodec(_write_text, _read_day)
MONEY = ElementCodec(_write_money, _read_money)
CHARGES = ElementCodec(_write_money, _read_charges)
INSTRUCTED_AMOUNT = ElementCodec(_write_money, _ignore)
"""The amount in the sender's currency: outbound always dollars, inbound any currency."""
CLEARING_SYSTEM = ElementCodec(lambda element, _: _write_text(element, "USABA"), _ignore)
CLEARING_MEMBER = ElementCodec(_write_text, _read_member)
"""A bank other than sender and receiver, which may belong to any clearing system."""
