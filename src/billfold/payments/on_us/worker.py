"""Execution of recorded transfers: after the response, or by a worker."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.accounts.counterparties import store as counterparty_store
from billfold.payments.on_us import store as on_us_store
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.on_us.types import TransferRow
from billfold.platform.errors import MarketDataStale

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.engine.pending_command import Answer

BATCH_SIZE = 100
CALLER = "pending-transfer"


async def execute_pending(bank: Bank, row: TransferRow) -> Answer:
    """Execute one recorded transfer. Safe to repeat."""
    addresses: tuple[str | None, str | None] = (None, None)
    if row.order.counterparty_id is not None:
        link = (row.customer_id, row.from_pocket_id, row.order.counterparty_id)
        (peer,) = await counterparty_store.find_peers(bank.pool, [link])
        addresses = (None, None) if peer is None else (peer.payer_address, peer.payee_address)
    return await bank.engine.submit(
        TransferOnUs(
            caller=CALLER,
            key=row.transfer_id,
            customers=(row.customer_id, row.payee_id or row.customer_id),
            transfer_id=row.transfer_id,
            type=row.type,
            from_pocket_id=row.from_pocket_id,
            to_pocket_id=row.to_pocket_id,
            amount=row.amount or None,
            partner_id=row.partner_id,
            addresses=addresses,
            accepted=True,
            order=row.order,
            references=row.order.referenced,
        )
    )


async def execute_all_pending(bank: Bank) -> int:
    """A task of the worker: execute recorded transfers; return how many."""
    executed = 0
    for row in await on_us_store.list_pending(bank.pool, limit=BATCH_SIZE):
        with suppress(MarketDataStale):  # it waits, and the others go on
            await execute_pending(bank, row)
            executed += 1
    return executed


async def execute_if_pending(bank: Bank, customer_id: UUID, transfer_id: UUID) -> None:
    """Execute a transfer recorded just now; a worker executes it if this process stops."""
    row = await on_us_store.find_transfer(bank.pool, customer_id, transfer_id)
    if row is not None and row.status == "PENDING":
        await execute_pending(bank, row)
