"""Messages of the custodian: each is booked by itself. One about money that cannot be booked waits for a person."""

from typing import Any, Final
from uuid import UUID

from typing_extensions import override

from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.custody.messages import (
    CancellationStatus,
    Confirmation,
    ReadMessage,
    StatusAdvice,
    read_messages,
)
from billfold.payments.custody.outbound import RAIL, read_tx_id
from billfold.payments.custody.rules import EndDelivery
from billfold.payments.custody.worker import find_transfer
from billfold.payments.files.inbound import InboundFiles
from billfold.payments.files.types import InvalidFile, RailFile, StuckLine
from billfold.payments.wires.iso20022.types import FedwireMistake
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.errors import BillfoldError, NotFound, Refused
from billfold.platform.ids import command_id
from billfold.trading.settlement.commands import ConfirmSettlement, ReportInstruction
from billfold.trading.settlement.store import find_instruction
from billfold.trading.settlement.types import InstructionStatus, redemption_id_of

CALLER: Final = "custodian"
_REDEMPTION_KINDS = frozenset({"CORP", "REDM"})
_S = InstructionStatus
_STATUSES = {
    "rejected": _S.REJECTED,
    "cancelled": _S.CANCELLED,
    "failing": _S.FAILING,
    "pending": _S.PENDING,
    "unmatched": _S.PENDING,
    "in_repair": _S.PENDING,
    "matched": _S.MATCHED,
}
"""What the custodian says -> the state; the first that is there decides. Others change none."""


class CustodianFiles(InboundFiles):
    """Processes the custodian's files."""

    rail = RAIL
    whole_file = FedwireMistake(0, "file", "")

    @override
    def file_id(self, bank: Bank, name: str, digest: str, attempt: int) -> UUID:
        return command_id("custody-file", f"{name}:{digest}:{attempt}")

    @override
    async def book(self, bank: Bank, file: RailFile, content: bytes) -> dict[str, Any]:
        read = read_messages(content)
        for each in read:
            if each.message is not None and (mistake := _mistake(bank, each)):
                read[read.index(each)] = each._replace(message=None, mistakes=(mistake,))
        if not any(each.message for each in read):
            raise InvalidFile([mistake for each in read for mistake in each.mistakes])
        items, stuck = [], []
        for each in read:
            try:
                outcome = await _book(bank, each)
            except Exception as error:  # one odd message must not block others
                if is_shortage(error):
                    raise
                if isinstance(error, Refused) and not each.carries_money:
                    items.append(_item(each, f"REFUSED: {error.detail}"))
                    continue
                detail = error.detail if isinstance(error, BillfoldError) else error_summary(error)
                stuck.append(StuckLine(each.line, each.number, f"{each.name}: {detail}"))
                continue
            items.append(_item(each, outcome))
        return {"messages": len(read), "items": items, "stuck": stuck}


def _item(read: ReadMessage, outcome: str) -> dict[str, Any]:
    return {"line": read.line, "message": read.name, "number": read.number, "outcome": outcome}


def _mistake(bank: Bank, read: ReadMessage) -> FedwireMistake | None:
    """Return why a message is not the bank's, or not an answer to it."""
    message, own = read.message, bank.settings.custody_account
    if not isinstance(message, StatusAdvice | Confirmation | CancellationStatus):
        return FedwireMistake(read.line, "Document", f"{read.name} is not a message of a custodian")
    if message.account not in {None, own}:
        return FedwireMistake(read.line, "SfkpgAcct", f"it is of the account {message.account}, not of {own}")
    return None


async def _book(bank: Bank, read: ReadMessage) -> str:
    """Book a message and return the outcome. Raises NotFound if it waits for what it refers to, or for a person."""
    message = read.message
    if message is None:
        reason = "; ".join(map(str, read.mistakes))
        if read.carries_money:
            raise NotFound(reason)
        return f"REFUSED: {reason}"
    if isinstance(message, Confirmation):
        return await _book_confirmation(bank, read, message)
    if isinstance(message, StatusAdvice):
        said = {name: getattr(message, name) for name in _STATUSES}
        status, reason = next(((_STATUSES[k], text) for k, text in said.items() if text is not None), (None, ""))
    elif isinstance(message, CancellationStatus) and message.cancelled is not None:
        status, reason = _S.CANCELLED, message.cancelled
    elif isinstance(message, CancellationStatus) and (refusal := message.denied or message.rejected) is not None:
        status, reason = _S.PENDING, f"The custodian does not cancel it: {refusal}"
    else:
        status, reason = None, ""
    return await _report(bank, read, str(message.tx_id), status, reason)


async def _report(bank: Bank, read: ReadMessage, tx_id: str, status: InstructionStatus | None, reason: str) -> str:
    found = read_tx_id(tx_id)
    if status is None:
        return "NOTED"
    if found is None:
        raise Refused("settlement-state", f"{tx_id} is not an instruction of the bank.")
    object_id, attempt = found
    row = await find_instruction(bank.pool, bank_customer_id(bank.seed), object_id)
    if row is None:
        return await _end_delivery(bank, object_id, reason if status in {_S.REJECTED, _S.CANCELLED} else None, status)
    command = ReportInstruction(
        caller=CALLER,
        key=command_id("custody-status", f"{tx_id}:{read.number}"),
        customers=(row.customer_id,),
        request_hash=read.digest,
        references=(object_id,),
        instruction_id=object_id,
        attempt=attempt,
        status=status,
        reason=reason or None,
    )
    return str((await bank.engine.submit(command)).outcome["status"])


async def _end_delivery(
    bank: Bank, transfer_id: UUID, reason: str | None, status: InstructionStatus, units: int | None = None
) -> str:
    """Record what became of a customer's delivery; it is booked already, and comes back if it is rejected."""
    transfer = await find_transfer(bank.pool, transfer_id)
    if transfer is None:
        raise NotFound(f"There is no instruction {transfer_id}.")
    if units not in {None, transfer.units}:
        raise NotFound(f"It settles {units} units of a customer's delivery of {transfer.units}.")
    if reason is None and status != _S.SETTLED:
        return status
    await bank.engine.submit(
        EndDelivery(
            caller=CALLER,
            key=transfer_id,
            customers=(transfer.customer_id,),
            transfer_id=transfer_id,
            reason=None if status == _S.SETTLED else reason or status,
            references=(transfer_id,),
        )
    )
    return status


async def _book_confirmation(bank: Bank, read: ReadMessage, message: Confirmation) -> str:
    if message.pre_confirmation is not None:
        return "NOTED: it is announced, and not settled"
    if message.day is None or message.movement not in {"RECE", "DELI"}:
        raise NotFound("It has no effective settlement date, or neither receives nor delivers.")
    sign = 1 if message.movement == "RECE" else -1
    pays = 1 if message.credit_or_debit == "DBIT" else -1
    found = read_tx_id(message.tx_id or "")
    if found is None and message.kind in _REDEMPTION_KINDS:
        instruction_id = redemption_id_of(message.bill)
        bank.market.bill(message.bill)  # raises NotFound if the bank does not know it
    elif found is None:
        raise NotFound(f"{message.tx_id or 'A settlement without an id'} is not an instruction of the bank.")
    else:
        instruction_id = found[0]
        if await find_instruction(bank.pool, bank_customer_id(bank.seed), instruction_id) is None:
            return await _end_delivery(bank, instruction_id, None, _S.SETTLED, message.units)
    command = ConfirmSettlement(
        caller=CALLER,
        key=command_id("custody-confirmation", f"{instruction_id}:{read.number}"),
        customers=(bank_customer_id(bank.seed),),
        request_hash=read.digest,
        references=(instruction_id,),
        instruction_id=instruction_id,
        cusip=message.bill,
        units=sign * message.units,
        money=pays * (message.money or 0),
        settled_on=message.day,
    )
    held = (await bank.engine.submit(command)).outcome["held"]
    return f"HELD: {held}" if held else "SETTLED"
