"""Seals the counterparties of earlier releases, each by a command: it may be stopped and begun again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.accounts.counterparties.commands import SealCounterparty
from billfold.accounts.counterparties.sealed_details import seal_details
from billfold.accounts.counterparties.store import list_unsealed_payees
from billfold.data_keys.types import DataShredded
from billfold.ledger.engine.bulk import submit_in_lots
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.accounts.counterparties.types import Payee
    from billfold.ledger.bank import Bank

_BATCH_SIZE = 500


async def seal_earlier_counterparties(bank: Bank, progress: Callable[[str], None]) -> int:
    """Seal the details that are in plain text; return how many.

    Those of a customer whose key is destroyed stay as they are. One that changes meanwhile is sealed the next time.
    """
    count, after = 0, (UUID(int=0), UUID(int=0))
    while rows := await list_unsealed_payees(bank.pool, *after, limit=_BATCH_SIZE):
        commands = [await _command(bank, *row) for row in rows]
        async for _ in submit_in_lots(bank, filter(None, commands)):
            count += 1
        after = rows[-1][0], rows[-1][1].counterparty_id
        progress(f"{count} counterparties are sealed")
    return count


async def _command(bank: Bank, customer_id: UUID, payee: Payee) -> SealCounterparty | None:
    try:
        data_key = await bank.data_keys.of(bank.pool, customer_id)
    except DataShredded:
        return None
    return SealCounterparty(
        caller="migrate",
        key=command_id("counterparty.seal", f"{payee.counterparty_id}:{payee.proof}"),
        customers=(customer_id,),
        counterparty_id=payee.counterparty_id,
        read=payee.proof,
        details=seal_details(data_key, payee.type, payee.details),
    )
