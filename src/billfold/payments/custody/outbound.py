"""Instructions to the custodian: each is stored as a file of one message, and then transmitted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import structlog

from billfold.data_keys.keys import PartyField, PaymentKeys, bank_key
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.custody import messages
from billfold.payments.custody.rules import SecurityTransferStatus
from billfold.payments.custody.worker import get_transfer
from billfold.payments.files import store
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.files.store import read_content, seal_content
from billfold.platform.dates import et_date
from billfold.platform.errors import Refused
from billfold.platform.ids import command_id, derive
from billfold.trading.settlement.commands import ReportInstruction
from billfold.trading.settlement.store import find_instruction
from billfold.trading.settlement.types import CLOSED, InstructionStatus, SettlementInstruction
from billfold.trading.store import get_execution

log = structlog.get_logger(__name__)

RAIL = "CUSTODY"
_TRADE_ID_MAX = 35
OnTransmitted = Callable[[Bank, UUID], Awaitable[None]]
"""Called with the id of a file that is transmitted; the sandbox lets its simulated custodian answer it."""


def tx_id_of(object_id: UUID, attempt: int = 1) -> str:
    """Return the id of an instruction in messages: 35 characters, of which the last three are the attempt."""
    return f"{object_id.hex}{attempt:03}"


class InstructionSender:
    """Sends instructions and cancellations. Each method is a scheduled job that is safe to repeat."""

    def __init__(self, on_transmitted: OnTransmitted | None = None) -> None:
        self._on_transmitted = on_transmitted

    async def send(self, bank: Bank, job: ScheduledJob) -> None:
        """Send the instruction of a trade: it is SENT before the file leaves, so that it is never forgotten."""
        row = await find_instruction(bank.pool, bank.own_id, job.object_id)
        if row is None or (row.status in CLOSED and row.withdrawn):
            return
        if row.status == InstructionStatus.NEW:
            try:
                await _mark_sent(bank, row)
            except Refused as refused:  # taken back in the meantime
                log.info("instruction_not_sent", reason=refused.detail)
                return
        await self._transmit(bank, "sese.023", tx_id_of(row.instruction_id, row.attempt), await _instruction(bank, row))

    async def cancel(self, bank: Bank, job: ScheduledJob) -> None:
        """Request that the custodian cancels an instruction, after the instruction itself."""
        row = await find_instruction(bank.pool, bank.own_id, job.object_id)
        if row is None or row.status in CLOSED:
            return
        tx_id, instruction = tx_id_of(row.instruction_id, row.attempt), await _instruction(bank, row)
        await self._transmit(bank, "sese.023", tx_id, instruction)
        same = {name: getattr(instruction, name) for name in messages.CancellationRequest.__struct_fields__}
        await self._transmit(bank, "sese.020", tx_id, messages.CancellationRequest(**same))

    async def deliver(self, bank: Bank, job: ScheduledJob) -> None:
        """Send the delivery of a customer's bills, free of payment."""
        assert job.customer_id is not None
        transfer = await get_transfer(bank.pool, job.customer_id, job.object_id)
        if transfer.status != SecurityTransferStatus.PENDING:
            return
        keys = await PaymentKeys.load(bank, (transfer.customer_id,))
        account = keys.open(PartyField.ACCOUNT, transfer.customer_id, transfer.counterparty_account)
        tx_id = tx_id_of(transfer.transfer_id)
        message = messages.Instruction(
            tx_id=tx_id,
            movement="DELI",
            payment="FREE",
            settles_on=bank.calendars.settlement_on_or_after(et_date(transfer.created_at)),
            cusip=transfer.cusip,
            units=transfer.units,
            account=bank.settings.custody_account,
            kind="TRAD",
            receiving=messages.Party(name=transfer.counterparty_name, account=account),
        )
        await self._transmit(bank, "sese.023", tx_id, message)

    async def _transmit(self, bank: Bank, name: str, tx_id: str, message: messages.Message) -> None:
        file_id = derive(bank.seed, command_id(f"custody:{name}", tx_id), 0)
        now, key = await bank.now(), await bank_key(bank)
        ends = messages.MessageEnds(bank.settings.bank_bic, bank.settings.custodian_bic, now)
        content = messages.write_messages([message], ends)
        sealed = await asyncio.to_thread(seal_content, key, file_id, content)
        file = await store.save_outbound(bank.pool, file_id, RAIL, name=f"{name}-{tx_id}.xml", content=sealed, now=now)
        if file.done_at is not None:
            return
        await bank.ports[RailExchanges].custody.transmit(file.name, await read_content(bank, file_id))
        if self._on_transmitted is not None:
            await self._on_transmitted(bank, file_id)
        await store.complete_file(bank.pool, file_id, "TRANSMITTED", now=now, report={"messages": 1})


async def _mark_sent(bank: Bank, row: SettlementInstruction) -> None:
    await bank.engine.submit(
        ReportInstruction(
            caller="custody",
            key=command_id("settlement-sent", f"{row.instruction_id}:{row.attempt}"),
            customers=(row.customer_id,),
            references=(row.instruction_id,),
            instruction_id=row.instruction_id,
            attempt=row.attempt,
            status=InstructionStatus.SENT,
        )
    )


async def _instruction(bank: Bank, row: SettlementInstruction) -> messages.Instruction:
    receives = row.units > 0
    execution = None
    if row.execution_id is not None:
        execution = await get_execution(bank.pool, row.customer_id, row.execution_id)
    other: dict[str, Any] = {"delivering" if receives else "receiving": messages.Party(name=row.dealer)}
    return messages.Instruction(
        tx_id=tx_id_of(row.instruction_id, row.attempt),
        movement="RECE" if receives else "DELI",
        payment="APMT",
        trade_id=execution.reference[:_TRADE_ID_MAX] if execution else None,
        traded_on=et_date(execution.executed_at) if execution else None,
        settles_on=row.settles_on,
        cusip=row.cusip,
        units=abs(row.open_units),
        account=bank.settings.custody_account,
        kind="TRAD",
        money=abs(row.open_money),
        credit_or_debit="DBIT" if receives else "CRDT",
        **other,
    )
