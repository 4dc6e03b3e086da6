"""Seals the personal data that earlier releases stored in plain text. Every step may be stopped and begun again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from billfold.documents.sealed_files import seal_earlier_files

if TYPE_CHECKING:
    from billfold.cli.context import StepReporter
    from billfold.ledger.bank import Bank

_STEPS: Final = (seal_earlier_files,)


async def seal_earlier_data(bank: Bank, progress: StepReporter) -> int:
    """Run every step; return how many values were sealed."""
    return sum([await step(bank, progress) for step in _STEPS])
