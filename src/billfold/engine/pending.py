"""Transfers that were accepted for later: carried out here, by the door or by a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.domain import portals, transfers
from billfold.domain.transfers import TransferRow
from billfold.flows.transfer_commands import TransferOnUs

if TYPE_CHECKING:
    from billfold.engine.bank import Bank
    from billfold.engine.job import Answer

AT_ONCE = 100
CALLER = "pending-transfer"


async def carry_out(bank: Bank, row: TransferRow) -> Answer:
    """Carry out one recorded transfer. Doing it twice changes nothing the second time."""
    request = msgspec.json.decode(row.request)
    payee = row.payee_id or row.customer_id
    counterparty_id = request.get("counterparty_id")
    addresses: tuple[str | None, ...] = (None, None)
    if row.type == "PEER_TO_PEER" and row.to_pocket_id is not None:
        addresses = await portals.network_addresses(
            bank.pool, (row.customer_id, row.from_pocket_id), (payee, row.to_pocket_id)
        )
    return await bank.engine.submit(
        TransferOnUs(
            caller=CALLER,
            key=row.transfer_id,
            customers=(row.customer_id, payee),
            transfer_id=row.transfer_id,
            type=row.type,
            from_pocket_id=row.from_pocket_id,
            to_pocket_id=row.to_pocket_id,
            amount=row.amount or None,
            partner_id=row.partner_id,
            in_kind=request.get("transfer_type") == "SECURITY_TRANSFER",
            description=request.get("description") or "",
            end_to_end_identification=request.get("end_to_end_identification"),
            source=request.get("source"),
            target=request.get("target"),
            counterparty_id=None if counterparty_id is None else UUID(counterparty_id),
            references=() if counterparty_id is None else (UUID(counterparty_id),),
            addresses=(addresses[0], addresses[1]),
            request=row.request,
            accepted=True,
        )
    )


async def carry_out_pending(bank: Bank) -> int:
    """An errand of the worker: carry out what waits; returns how many."""
    rows = await transfers.list_pending(bank.pool, limit=AT_ONCE)
    for row in rows:
        await carry_out(bank, row)
    return len(rows)
