"""Messages of the custodian: each is booked by itself. One that cannot be booked waits in its file for a person."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from typing_extensions import override

from billfold.ledger.bank import Bank
from billfold.payments.custody.messages import (
    CancellationStatus,
    Confirmation,
    Message,
    ReadMessage,
    StatusAdvice,
    read_messages,
)
from billfold.payments.custody.outbound import RAIL
from billfold.payments.custody.rules import EndDelivery, SecurityTransfer
from billfold.payments.custody.worker import count_in_custody, find_transfer
from billfold.payments.files.inbound import WAIT, InboundFiles
from billfold.payments.files.types import InvalidFile, RailFile, StuckLine
from billfold.payments.wires.iso20022.types import FedwireMistake
from billfold.platform.database.background_work import claimed
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.dates import et_date
from billfold.platform.errors import BillfoldError, NotFound, Refused
from billfold.platform.ids import command_id
from billfold.trading.settlement.commands import ConfirmSettlement, ReportInstruction
from billfold.trading.settlement.store import find_instruction
from billfold.trading.settlement.types import InstructionStatus, redemption_id_of

CALLER: Final = "custodian"
_REDEMPTION_KINDS = frozenset({"CORP", "REDM"})
_TX_ID = re.compile(r"([0-9a-f]{32})([0-9]{3})", re.ASCII)
_S = InstructionStatus
_STATUSES: Final[Mapping[type[Message], Mapping[str, InstructionStatus]]] = {
    StatusAdvice: {
        "rejected": _S.REJECTED,
        "cancelled": _S.CANCELLED,
        "failing": _S.FAILING,
        "pending": _S.PENDING,
        "unmatched": _S.PENDING,
        "in_repair": _S.PENDING,
        "matched": _S.MATCHED,
    },
    CancellationStatus: {"cancelled": _S.CANCELLED, "denied": _S.PENDING, "rejected": _S.PENDING},
}
"""What the custodian says -> the state; the first that is there decides."""


class CustodianFiles(InboundFiles):
    """Processes the custodian's files."""

    rail = RAIL
    whole_file = FedwireMistake(0, "file", "")

    @override
    def file_id(self, bank: Bank, name: str, digest: str, attempt: int) -> UUID:
        return command_id("custody-file", f"{name}:{digest}:{attempt}")

    @override
    async def book(self, bank: Bank, file: RailFile, content: bytes) -> dict[str, Any]:
        read = [_own(bank, each) for each in await asyncio.to_thread(read_messages, content)]
        if not any(each.message for each in read):
            raise InvalidFile([mistake for each in read for mistake in each.mistakes])
        items, stuck = [], []
        async with claimed(bank.pool, CALLER, wait=WAIT):  # each is judged by what was booked before it
            for each in read:
                try:
                    outcome = await _book(bank, file, each)
                except Exception as error:  # one odd message must not block others
                    if is_shortage(error):
                        raise
                    detail = error.detail if isinstance(error, BillfoldError) else error_summary(error)
                    stuck.append(StuckLine(each.line, each.number, f"{each.name}: {detail}"))
                else:
                    items.append({"line": each.line, "message": each.name, "number": each.number, "outcome": outcome})
        return {"messages": len(read), "items": items, "stuck": stuck}


def _own(bank: Bank, read: ReadMessage) -> ReadMessage:
    """Return a message, without it and with the mistake if it is not the bank's, or no answer to it."""
    message, own = read.message, bank.settings.custody_account
    if message is None:
        return read
    if not isinstance(message, Confirmation | StatusAdvice | CancellationStatus):
        mistake = FedwireMistake(read.line, "Document", f"{read.name} is not a message of a custodian")
    elif message.account not in {None, own}:
        mistake = FedwireMistake(read.line, "SfkpgAcct", f"it is of the account {message.account}, not of {own}")
    else:
        return read
    return read._replace(message=None, mistakes=(mistake,))


async def _book(bank: Bank, file: RailFile, read: ReadMessage) -> str:
    """Book a message and return the outcome. Raises NotFound if it waits for what it refers to, or for a person."""
    message = read.message
    if isinstance(message, Confirmation):
        return await _book_confirmation(bank, read, message)
    if not isinstance(message, StatusAdvice | CancellationStatus):
        raise NotFound("; ".join(map(str, read.mistakes)))
    said = ((status, getattr(message, name)) for name, status in _STATUSES[type(message)].items())
    status, reason = next((each for each in said if each[1] is not None), (None, ""))
    if status is None:
        return "NOTED"
    if isinstance(message, CancellationStatus) and status == _S.PENDING:
        reason = f"The custodian does not cancel it: {reason}"
    object_id, attempt = _read_tx_id(message.tx_id)
    row = await find_instruction(bank.pool, bank.own_id, object_id)
    if row is None:
        return await _book_status(bank, await _transfer_of(bank, object_id), status, reason)
    command = ReportInstruction(
        caller=CALLER,
        key=command_id("custody-status", f"{file.file_id}:{read.number}:{read.digest.hex()}"),
        customers=(row.customer_id,),
        references=(object_id,),
        instruction_id=object_id,
        attempt=attempt,
        status=status,
        reason=reason or None,
    )
    try:
        return str((await bank.engine.submit(command)).outcome["status"])
    except Refused as refused:  # it crossed something that happened since
        return f"REFUSED: {refused.detail}"


def _read_tx_id(tx_id: str | None) -> tuple[UUID, int]:
    """Return the id and attempt of an instruction. Raises NotFound if it is not one of ours."""
    found = _TX_ID.fullmatch(tx_id or "")
    if found is None:
        raise NotFound(f"{tx_id or 'A settlement without an id'} is not an instruction of the bank.")
    return UUID(hex=found.group(1)), int(found.group(2))


async def _transfer_of(bank: Bank, transfer_id: UUID) -> SecurityTransfer:
    transfer = await find_transfer(bank.pool, transfer_id)
    if transfer is None:
        raise NotFound(f"There is no instruction {transfer_id}.")
    return transfer


async def _end_delivery(bank: Bank, transfer: SecurityTransfer, reason: str | None) -> None:
    """Record what became of a customer's delivery; it is booked already, and comes back if it is rejected."""
    await bank.engine.submit(
        EndDelivery(
            caller=CALLER,
            key=command_id("delivery-delivered" if reason is None else "delivery-rejected", transfer.transfer_id),
            customers=(transfer.customer_id,),
            transfer_id=transfer.transfer_id,
            reason=reason,
            references=(transfer.transfer_id,),
        )
    )


async def _book_status(bank: Bank, transfer: SecurityTransfer, status: InstructionStatus, reason: str) -> str:
    if status in {_S.REJECTED, _S.CANCELLED}:
        try:
            await _end_delivery(bank, transfer, reason or status)
        except Refused as refused:  # something else has overtaken it
            return f"REFUSED: {refused.detail}"
    return status


async def _book_confirmation(bank: Bank, read: ReadMessage, message: Confirmation) -> str:
    if message.pre_confirmation is not None:
        return "NOTED: it is announced, and not settled"
    is_redemption = message.kind in _REDEMPTION_KINDS and _TX_ID.fullmatch(message.tx_id or "") is None
    if is_redemption and not bank.terms.dealers:
        return "NOTED: a bank without dealers books maturities by date"
    if message.isin and message.cusip and message.cusip not in message.isin:
        raise NotFound(f"It names two bills: {message.isin} and {message.cusip}.")
    if message.day is None or message.movement not in {"RECE", "DELI"}:
        raise NotFound("It has no effective settlement date, or neither receives nor delivers.")
    bank_id, attempt, custody_units = bank.own_id, 1, 0
    if is_redemption:
        instruction_id = redemption_id_of(message.bill)
        bank.market.bill(message.bill)  # raises NotFound if the bank does not know it
        custody_units = await count_in_custody(bank.pool, bank_id, message.bill)
    else:
        instruction_id, attempt = _read_tx_id(message.tx_id)
        if await find_instruction(bank.pool, bank_id, instruction_id) is None:
            return await _book_delivery(bank, await _transfer_of(bank, instruction_id), message)
    command = ConfirmSettlement(
        caller=CALLER,
        key=command_id("custody-confirmation", f"{instruction_id}:{read.digest.hex()}"),
        customers=(bank_id,),
        references=(instruction_id,),
        instruction_id=instruction_id,
        attempt=attempt,
        cusip=message.bill,
        units=message.units if message.movement == "RECE" else -message.units,
        money=(message.money or 0) * (1 if message.credit_or_debit == "DBIT" else -1),
        settled_on=message.day,
        custody_units=custody_units,
        message_no=read.number,
    )
    outcome = (await bank.engine.submit(command)).outcome
    if (before := outcome["message_no"]) != read.number:
        raise NotFound(f"It repeats {before}, which is booked. If it is another part, it needs an id of its own.")
    return f"HELD: {outcome['held']}" if outcome["held"] else "SETTLED"


async def _book_delivery(bank: Bank, transfer: SecurityTransfer, message: Confirmation) -> str:
    """Complete a customer's delivery. Raises NotFound if that is not what was confirmed."""
    said = message.movement, message.bill, message.units, message.money or 0
    is_settled = message.day is not None and message.day <= et_date(await bank.now())
    if said != ("DELI", transfer.cusip, transfer.units, 0) or not is_settled:
        raise NotFound(f"It is no delivery of {transfer.units} units of {transfer.cusip} free of payment by today.")
    await _end_delivery(bank, transfer, None)
    return "SETTLED"
