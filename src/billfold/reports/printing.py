"""The layout of printed documents: letterhead, summary, charts, tables and notes.

The same document gives the same file, signed by the bank with every figure in it.
"""

import asyncio
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts import addresses, profiles
from billfold.documents.pdf import typeset_all
from billfold.ledger.bank import Bank
from billfold.ledger.directory import find_customer
from billfold.platform.errors import NotFound
from billfold.platform.settings.settings import Settings
from billfold.reports.entries.types import LedgerPosition
from billfold.reports.proofs import signatures, signed_files


class PrintedBank(msgspec.Struct, frozen=True, kw_only=True):
    """The bank as printed in the letterhead."""

    name: str
    address: str
    phone: str


class PrintedColumn(msgspec.Struct, frozen=True):
    """A column of a table; a growing one takes the remaining width."""

    name: str
    align: Literal["left", "right"] = "left"
    grows: bool = False


def columns(*names: str) -> tuple[PrintedColumn, ...]:
    """Return columns by name: a ">" at the end aligns right, a "+" makes the column grow."""
    return tuple(PrintedColumn(each.rstrip("+>"), "right" if ">" in each else "left", "+" in each) for each in names)


class PrintedTable(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with one cell per column; `totals` is the last row, `empty` is shown if there are no rows."""

    heading: str
    columns: Sequence[PrintedColumn]
    rows: Sequence[Sequence[str]]
    totals: Sequence[str] = ()
    empty: str = ""


class PrintedChart(msgspec.Struct, frozen=True, kw_only=True):
    """Points between 0 and 1, and labels for both ends; bars stand on `base`. `alt` describes the chart in words."""

    title: str
    caption: str
    kind: Literal["area", "bars"]
    points: Sequence[float]
    ends: tuple[str, str]
    alt: str
    base: float = 0
    empty: str = ""


class PrintedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a document, in order. The first lines of `summary` and the last are the balances."""

    title: str
    subtitle: str
    reference: str
    made_on: date
    bank: PrintedBank
    recipient: Sequence[str]
    details: Sequence[tuple[str, str]]
    correction: str = ""
    summary: Sequence[tuple[str, str]] = ()
    charts: Sequence[PrintedChart] = ()
    tables: Sequence[PrintedTable] = ()
    notes: Sequence[str] = ()


_LONGEST_WORD = 24


def print_document(document: PrintedDocument) -> bytes:
    """Return a document as a PDF. This may take a tenth of a second: call it in a thread."""
    facts: dict[str, Any] = msgspec.to_builtins(document)
    day = document.made_on
    return typeset_all(_template(), facts | {"made_on": [day.year, day.month, day.day]}, made_on=day)


def bank_of(settings: Settings) -> PrintedBank:
    """Return the bank's letterhead."""
    return PrintedBank(name=settings.bank_name, address=settings.bank_address, phone=settings.bank_phone)


def printed(text: str) -> str:
    """Return a text from outside on one line, without invisible characters; a long word may be broken."""
    seen = "".join(" " if unicodedata.category(each) in {"Cc", "Zl", "Zp"} else each for each in text)
    visible = "".join(each for each in seen if unicodedata.category(each) not in {"Cf", "Co", "Cs"})
    return " ".join(_breakable(word) for word in visible.split())


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which are separated by empty lines, each on one line."""
    return [" ".join(each.split()) for each in text.strip().split("\n\n")]


def printed_day(day: date) -> str:
    """Return a day: "November 2, 2026"."""
    return f"{day:%B} {day.day}, {day.year}"


def short_day(day: date) -> str:
    """Return a day without its year: "Nov 2"."""
    return f"{day:%b} {day.day}"


def masked(number: str) -> str:
    """Return an account number with only its last four digits."""
    return f"•••• {number[-4:]}"


def _breakable(word: str) -> str:
    """Return a long word with places where a line may break."""
    return "\u200b".join(word[at : at + _LONGEST_WORD] for at in range(0, len(word), _LONGEST_WORD))


@cache
def _template() -> bytes:
    return files(__package__).joinpath("document.typ").read_bytes()


async def recipient_of(bank: Bank, customer_id: UUID) -> list[str]:
    """Return the name of a customer and the lines of its address, as far as known."""
    row = await find_customer(bank.pool, customer_id)
    if row is None:
        raise NotFound("There is no such customer.")
    address = addresses.address_of(await profiles.open_profile(bank, row))
    if address is None:
        return [printed(row.name)]
    region = " ".join(part for part in (address.state, address.postal_code) if part)
    country = "" if address.country == "US" else address.country
    lines = (row.name, address.street_address, address.street_address2, f"{address.city}, {region}", country)
    return [printed(line) for line in lines if line]


class Subject(NamedTuple):
    """The subject of a document: a Pocket, the time of its balances, how far the ledger was read, and other Pockets."""

    customer_id: UUID
    pocket_id: UUID
    pocket: str
    at: datetime
    position: LedgerPosition
    others: tuple[signatures.NamedPocket, ...] = ()


async def print_signed(bank: Bank, document: PrintedDocument, subject: Subject) -> bytes:
    """Return a document as a PDF with its proof."""
    key = await signatures.get_document_key(bank.pool, bank.vault, subject.at)
    manifest = signatures.Manifest(
        bank=document.bank.name,
        document=f"{document.title}, {document.subtitle}",
        customer_id=subject.customer_id,
        customer=document.recipient[0],
        pockets=(signatures.NamedPocket(subject.pocket_id, subject.pocket), *subject.others),
        at=subject.at,
        position=subject.position,
        figures=tuple(_figures(document)),
    )
    return await asyncio.to_thread(lambda: signed_files.attach(print_document(document), manifest, key))


def _figures(document: PrintedDocument) -> Iterator[signatures.Figure]:
    """Yield the displayed amounts and quantities, in display order."""
    for label, value in document.summary:
        yield signatures.Figure(label, value)
    for table in document.tables:
        rows = [*enumerate(table.rows, 1), *([("total", table.totals)] if table.totals else [])]
        for number, cells in rows:
            for column, cell in zip(table.columns, cells, strict=True):
                if column.align == "right" and cell:
                    yield signatures.Figure(f"{table.heading}, {number}, {column.name}", cell)
