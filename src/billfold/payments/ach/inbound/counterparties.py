"""Corrections and failed verifications of counterparties that inbound files report."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.accounts.counterparties.commands import CorrectAccount, FailVerification
from billfold.ledger.engine.bulk import submit_in_lots
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from billfold.accounts.counterparties.rules.notification_of_change import Correction
    from billfold.ledger.bank import Bank
    from billfold.payments.ach.types import AchEntry

CALLER = "ach-file"


async def apply_corrections(bank: Bank, corrections: Sequence[tuple[UUID, AchEntry, Correction]]) -> None:
    """Apply notifications of change to the counterparties of their entries; each has its own key."""
    commands = []
    for key, entry, correction in corrections:
        owner = await _owner(bank, entry)
        if owner is not None and entry.counterparty_id is not None:
            commands.append(
                CorrectAccount(
                    caller=CALLER,
                    key=command_id("correct", key),
                    customers=(owner,),
                    counterparty_id=entry.counterparty_id,
                    correction=correction,
                    references=(entry.counterparty_id,),
                )
            )
    async for _ in submit_in_lots(bank, commands):
        pass


async def fail_verification(bank: Bank, entry: AchEntry, code: str) -> None:
    """Fail the verification of a counterparty whose micro-deposit was returned."""
    owner = await _owner(bank, entry)
    if owner is not None and entry.counterparty_id is not None:
        await bank.engine.submit(
            FailVerification(
                caller=CALLER,
                key=command_id("fail", entry.ach_id),
                customers=(owner,),
                counterparty_id=entry.counterparty_id,
                reason=f"A micro-deposit came back under {code}.",
                references=(entry.counterparty_id,),
            )
        )


async def _owner(bank: Bank, entry: AchEntry) -> UUID | None:
    """Return the customer of an entry's counterparty. Micro-deposits are entries of the bank."""
    if entry.counterparty_id is None:
        return None
    found = await bank.directory.find("counterparty", entry.counterparty_id)
    return None if found is None else found.customer_id
