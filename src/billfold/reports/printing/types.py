"""A document before it is laid out: texts, and charts as fractions of their height."""

from collections.abc import Sequence
from datetime import date
from typing import Literal

import msgspec


class PrintedBank(msgspec.Struct, frozen=True, kw_only=True):
    """The bank as its letterhead names it."""

    name: str
    address: str
    phone: str


class PrintedColumn(msgspec.Struct, frozen=True):
    """A column of a table; one that grows takes what the others leave."""

    name: str
    align: Literal["left", "right"] = "left"
    grows: bool = False


class PrintedTable(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of as many cells as there are columns; `totals` is the last row, `empty` stands there without rows."""

    heading: str
    columns: Sequence[PrintedColumn]
    rows: Sequence[Sequence[str]]
    totals: Sequence[str] = ()
    empty: str = ""


class PrintedChart(msgspec.Struct, frozen=True, kw_only=True):
    """Points between 0 and 1, and what stands at both ends; bars stand on `base`. `alt` says in words what it shows."""

    title: str
    caption: str
    kind: Literal["area", "bars"]
    points: Sequence[float]
    ends: tuple[str, str]
    alt: str
    base: float = 0
    empty: str = ""


class PrintedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """All that a document says, in its order. The first lines of `summary` and the last are the balances."""

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
