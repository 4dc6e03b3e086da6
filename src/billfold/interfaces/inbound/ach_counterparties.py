"""What the network tells of an account is told to the counterparty it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from billfold.domain.ach import AchEntry, Correction
    from billfold.engine.bank import Bank


async def correct(bank: Bank, entry: AchEntry, correction: Correction, *, key: UUID) -> None:
    """Let entries to come go where a notification of change says."""
    del bank, entry, correction, key


async def fail_verification(bank: Bank, entry: AchEntry, code: str) -> None:
    """A micro-deposit came back: the account is not what it was said to be."""
    del bank, entry, code
