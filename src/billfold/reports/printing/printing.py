"""Prints documents: the same document is the same file."""

import unicodedata
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from billfold.documents.pdf import typeset_all
from billfold.platform.settings.settings import Settings
from billfold.reports.printing.types import PrintedBank, PrintedDocument

_LONGEST_WORD = 24


def print_document(document: PrintedDocument) -> bytes:
    """Return a document as a PDF. It may take a tenth of a second: call it in a thread."""
    facts: dict[str, Any] = msgspec.to_builtins(document)
    day = document.made_on
    return typeset_all(_template(), facts | {"made_on": [day.year, day.month, day.day]}, made_on=day)


def bank_of(settings: Settings) -> PrintedBank:
    """Return the bank's letterhead."""
    return PrintedBank(name=settings.bank_name, address=settings.bank_address, phone=settings.bank_phone)


def printed(text: str) -> str:
    """Return a text from outside in one line, without what cannot be seen; a long word may be broken."""
    seen = "".join(" " if unicodedata.category(each) in {"Cc", "Zl", "Zp"} else each for each in text)
    visible = "".join(each for each in seen if unicodedata.category(each) not in {"Cf", "Co", "Cs"})
    return " ".join(_breakable(word) for word in visible.split())


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which empty lines separate, each in one line."""
    return [" ".join(each.split()) for each in text.strip().split("\n\n")]


def printed_day(day: date) -> str:
    """Return a day: "November 2, 2026"."""
    return f"{day:%B} {day.day}, {day.year}"


def short_day(day: date) -> str:
    """Return a day of a known year: "Nov 2"."""
    return f"{day:%b} {day.day}"


def masked(number: str) -> str:
    """Return an account number of which only the last four digits are shown."""
    return f"•••• {number[-4:]}"


def _breakable(word: str) -> str:
    """Return a long word with places at which a line may end."""
    return "\u200b".join(word[at : at + _LONGEST_WORD] for at in range(0, len(word), _LONGEST_WORD))


@cache
def _template() -> bytes:
    return files(__package__).joinpath("document.typ").read_bytes()
