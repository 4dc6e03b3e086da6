"""Remittance information: lines of text that repeat, and blocks about documents (`Strd`), of which none is left out.

What a block says wrongly is cut or left out: it moves no money, and the file keeps it.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date

from lxml import etree

from billfold.accounts.transactions.remittance import SettledDocument
from billfold.payments.wires.iso20022.xml_fields import TEXT, Element, ElementCodec, ElementMapping, write_rows

_AMOUNT = re.compile(r"[0-9]{1,13}(?:\.[0-9]{1,5})?")
_CURRENCY = re.compile(r"[A-Z]{3}")
_NUMBER = 35
_DOCUMENT = (
    ElementMapping("RfrdDocInf/Tp/CdOrPrtry/Cd", "type", TEXT),
    ElementMapping("RfrdDocInf/Nb", "number", TEXT),
    ElementMapping("RfrdDocInf/RltdDt", "date", TEXT),
    ElementMapping("RfrdDocAmt/RmtdAmt", "amount", TEXT),
    ElementMapping("CdtrRefInf/Ref", "reference", TEXT),
    ElementMapping("AddtlRmtInf", "information", TEXT),
)


def _read_lines(first: Element) -> str | None:
    """Return all lines beside the first one; None for none."""
    return "\n".join(filter(None, map(_text, _siblings(first)))) or None


def _write_lines(first: Element, text: str) -> None:
    for element, line in zip(_repeat(first, len(lines := text.splitlines())), lines, strict=True):
        element.text = line


def _read_documents(first: Element) -> tuple[SettledDocument, ...] | None:
    found = (document for block in _siblings(first) for document in _documents_in(block))
    return tuple(each for each in found if each != SettledDocument()) or None


def _documents_in(block: Element) -> Iterator[SettledDocument]:
    """Yield the documents of a block. What it says of all of them stands with the first."""
    amount = block.find("{*}RfrdDocAmt/{*}RmtdAmt")
    value, currency = ("", "") if amount is None else (_text(amount), amount.get("Ccy", ""))
    is_amount = _AMOUNT.fullmatch(value) and _CURRENCY.fullmatch(currency)
    first = {
        "amount": value if is_amount else None,
        "currency": currency if is_amount else None,
        "reference": _text(block.find("{*}CdtrRefInf/{*}Ref"))[:_NUMBER] or None,
        "information": " ".join(filter(None, map(_text, block.findall("{*}AddtlRmtInf")))) or None,
    }
    for named in block.findall("{*}RfrdDocInf") or [block]:
        kind = named.find("{*}Tp/{*}CdOrPrtry/{*}Cd")
        yield SettledDocument(
            type=_text(named.find("{*}Tp/{*}CdOrPrtry/{*}Prtry") if kind is None else kind)[:_NUMBER] or None,
            number=_text(named.find("{*}Nb"))[:_NUMBER] or None,
            date=_day(_text(named.find("{*}RltdDt"))),
            **first,
        )
        first = {}


def _write_documents(first: Element, documents: Sequence[SettledDocument]) -> None:
    for block, document in zip(_repeat(first, len(documents)), documents, strict=True):
        write_rows(block, _DOCUMENT, document)
        amount = block.find("{*}RfrdDocAmt/{*}RmtdAmt")
        if amount is not None:
            amount.set("Ccy", document.currency or "USD")


def _repeat(first: Element, count: int) -> list[Element]:
    """Return an element and as many of the same name after it as make `count`."""
    parent = first.getparent()
    assert parent is not None
    return [first, *(etree.SubElement(parent, first.tag) for _ in range(count - 1))]


def _siblings(first: Element) -> list[Element]:
    parent = first.getparent()
    return [first] if parent is None else parent.findall(str(first.tag))


def _text(element: Element | None) -> str:
    return "" if element is None else (element.text or "").strip()


def _day(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None


LINES = ElementCodec(_write_lines, _read_lines)
DOCUMENTS = ElementCodec(_write_documents, _read_documents)
