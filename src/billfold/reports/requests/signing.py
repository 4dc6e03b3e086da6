"""The bank's signature of a report: XML holds it, a PDF has it from its printing, any other format has it beside it."""

import asyncio
from typing import BinaryIO, Final

from billfold.reports.proofs.attach import append_to, side_file
from billfold.reports.proofs.document_keys import get_document_key
from billfold.reports.proofs.types import Manifest, NamedPocket
from billfold.reports.requests.renderers.facts import entity_of
from billfold.reports.requests.types import ReportFormat, ReportSource

_HOLD_THEIR_PROOF: Final = frozenset({ReportFormat.CAMT052, ReportFormat.CAMT053, ReportFormat.CAMT054})


async def sign_report(source: ReportSource, output_format: ReportFormat, output: BinaryIO) -> str | None:
    """Sign a report as it was written; return what lies beside it, or None if the proof is in it."""
    if output_format == ReportFormat.PDF:
        return None
    bank, manifest = source.bank, await _manifest(source, output_format)
    key = await get_document_key(bank.pool, bank.vault, manifest.at)
    if output_format in _HOLD_THEIR_PROOF:
        await asyncio.to_thread(append_to, output, manifest, key)
        return None
    return (await asyncio.to_thread(side_file, output, manifest, key)).decode()


async def _manifest(source: ReportSource, output_format: ReportFormat) -> Manifest:
    bank, request = source.bank, source.request
    entity = await entity_of(bank, request.customer_id)
    parameters = request.parameters
    days = [each for each in (parameters.date, parameters.date_from, parameters.date_to) if each is not None]
    return Manifest(
        bank=bank.settings.bank_name,
        document=f"{request.type} {' to '.join(map(str, days))}, {output_format}",
        customer_id=request.customer_id,
        customer=entity.name,
        pockets=tuple(NamedPocket(each, entity.pockets[each]) for each in source.pocket_ids),
        at=request.shown_at,
        position=source.position,
        figures=tuple(source.figures),
    )
