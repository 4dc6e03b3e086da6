"""Execution of recorded transfers: after the response, or by a worker."""

from uuid import UUID

from billfold.accounts.counterparties import store as counterparty_store
from billfold.ledger.bank import Bank
from billfold.ledger.engine.pending_command import Answer
from billfold.payments.on_us import store
from billfold.payments.on_us.commands import TransferOnUs, TransferRow
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import read_put_aside
from billfold.platform.database.shortage import is_shortage

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
            hold_id=row.order.hold_id,
        )
    )


async def execute_all_pending(bank: Bank) -> int:
    """Execute recorded transfers: a task of the worker; return how many. A failure does not block the others."""
    now = wall_now()
    failed: dict[str, Exception] = {}
    executed = 0
    aside = await read_put_aside(bank.pool, "transfer", now)
    waiting = list(map(UUID, aside.waiting))
    rows = await store.list_pending(bank.pool, limit=BATCH_SIZE, except_for=waiting)
    for row in rows:
        try:
            await execute_pending(bank, row)
            executed += 1
        except Exception as error:
            if is_shortage(error):
                raise
            failed[str(row.transfer_id)] = error
    await aside.record(bank.pool, failed, now)
    return executed


async def execute_if_pending(bank: Bank, customer_id: UUID, transfer_id: UUID) -> None:
    """Execute a transfer that was just recorded; a worker executes it if this process stops."""
    row = await store.find_transfer(bank.pool, customer_id, transfer_id)
    if row is not None and row.status == "PENDING":
        await execute_pending(bank, row)
