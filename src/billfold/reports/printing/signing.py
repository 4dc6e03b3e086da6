"""Prints a document with the bank's signature of every figure in it."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.reports.entries.types import LedgerPosition
from billfold.reports.printing.printing import print_document
from billfold.reports.printing.types import PrintedDocument
from billfold.reports.proofs import types as proofs
from billfold.reports.proofs.attach import attach
from billfold.reports.proofs.document_keys import get_document_key


class Subject(NamedTuple):
    """What a document is about: a Pocket, the moment of its balances, how far the ledger was read; and more Pockets."""

    customer_id: UUID
    pocket_id: UUID
    pocket: str
    at: datetime
    position: LedgerPosition
    others: tuple[proofs.NamedPocket, ...] = ()


async def print_signed(bank: Bank, document: PrintedDocument, subject: Subject) -> bytes:
    """Return a document as a PDF with its proof."""
    key = await get_document_key(bank.pool, bank.vault, subject.at)
    manifest = proofs.Manifest(
        bank=document.bank.name,
        document=f"{document.title}, {document.subtitle}",
        customer_id=subject.customer_id,
        customer=document.recipient[0],
        pockets=(proofs.NamedPocket(subject.pocket_id, subject.pocket), *subject.others),
        at=subject.at,
        position=subject.position,
        figures=tuple(_figures(document)),
    )
    return await asyncio.to_thread(lambda: attach(print_document(document), manifest, key))


def _figures(document: PrintedDocument) -> Iterator[proofs.Figure]:
    """Yield what is shown of amounts and quantities, in the order in which it is shown."""
    for label, value in document.summary:
        yield proofs.Figure(label, value)
    for table in document.tables:
        rows = [*enumerate(table.rows, 1), *([("total", table.totals)] if table.totals else [])]
        for number, cells in rows:
            for column, cell in zip(table.columns, cells, strict=True):
                if column.align == "right" and cell:
                    yield proofs.Figure(f"{table.heading}, {number}, {column.name}", cell)
