"""The Federal Reserve, the correspondent and the banks behind them, for the sandbox.

Their answers are real files. An amount that ends in 01 is refused by the payee's
bank; every other payment settles. Numbers derive from the answered message, so the same request has
the same answer to the last digit.
"""

from collections.abc import Sequence
from datetime import date, datetime
from hashlib import blake2b
from typing import Any
from uuid import UUID

from billfold.payments.wires.iso20022 import types
from billfold.payments.wires.iso20022.types import CreditTransfer, FedwireMessage, Party, PaymentReturn, ReturnRequest

SENDER = "026009593"
"""The routing number of the sending bank, unless another is named."""
ACCOUNT_CLOSED = "AC04"
_REFUSED_CENTS = 1
_SOURCE = "SIMFED01"


class SimulatedFed:
    """Creates the messages that reach the bank of this routing number."""

    def __init__(self, routing_number: str) -> None:
        self._routing_number = routing_number

    def answers(self, wires: Sequence[FedwireMessage], now: datetime, day: date) -> list[FedwireMessage]:
        """Return the outcomes of the messages in one of our files."""
        answers = []
        for wire in wires:
            message = wire.message
            if isinstance(message, ReturnRequest):
                answers += [self.accept_return(message, now), self.give_back(message, now, day)]
            elif isinstance(message, CreditTransfer | PaymentReturn):
                refused = message.amount % 100 == _REFUSED_CENTS
                code = ACCOUNT_CLOSED if refused and isinstance(message, CreditTransfer) else None
                answers.append(self.status(message, now, code))
        return answers

    def status(self, message: CreditTransfer | PaymentReturn, now: datetime, code: str | None) -> FedwireMessage:
        """Return the message that a payment has settled, or was rejected with a code."""
        number = _digits(f"status:{message.message_id}:{code}", 6)
        return self._wire(
            types.PaymentStatus,
            now,
            message_id=f"{now:%Y%m%d}{_SOURCE}{number:06}{message.message_id[-6:]}",
            original=original_of(message),
            status="ACSC" if code is None else "RJCT",
            reason=code,
        )

    def payment(
        self,
        seed_text: str,
        now: datetime,
        day: date,
        *,
        account_number: str,
        amount: int,
        sender_name: str,
        sender_account_number: str | None,
        sender_routing_number: str | None,
    ) -> FedwireMessage:
        """Return the payment of this name; the same name gives the same payment."""
        bank = sender_routing_number or SENDER
        return self._wire(
            CreditTransfer,
            now,
            message_id=_imad(day, f"payment:{seed_text}"),
            uetr=str(UUID(bytes=blake2b(seed_text.encode(), digest_size=16).digest(), version=4)),
            end_to_end_id="NOTPROVIDED",
            instruction_id=f"W{_digits(seed_text, 12):012}",
            amount=amount,
            settles_on=day,
            sender=bank,
            debtor=Party(name=sender_name),
            debtor_account=types.Account(number=sender_account_number) if sender_account_number else None,
            debtor_agent=types.Agent(routing_number=bank),
            creditor_agent=types.Agent(routing_number=self._routing_number),
            creditor=Party(name="Holder of the account"),
            creditor_account=types.Account(number=account_number),
        )

    def payment_return(
        self,
        payment_message: CreditTransfer,
        now: datetime,
        day: date,
        *,
        reason: str,
        information: str,
        amount: int | None = None,
        charges: int = 0,
        outstanding: int | None = None,
    ) -> FedwireMessage:
        """Return the message by which the payee of a payment of ours returns it, or the rest of it, less charges."""
        nth = "" if outstanding in {None, payment_message.amount} else f":{outstanding}"
        settled = payment_message.amount - charges if amount is None else amount
        return self._wire(
            PaymentReturn,
            now,
            message_id=_imad(day, f"return:{payment_message.message_id}{nth}"),
            original=original_of(payment_message),
            original_amount=None if settled == payment_message.amount else payment_message.amount,
            amount=settled,
            settles_on=day,
            charges=charges or None,
            charged_by=types.Agent(routing_number=payment_message.receiver) if charges else None,
            sender=payment_message.receiver,
            debtor=Party(name=payment_message.creditor.name),
            creditor=Party(name=payment_message.debtor.name),
            reason=reason,
            information=information,
            kind=payment_message.kind,
        )

    def return_request(
        self, payment_message: CreditTransfer, now: datetime, day: date, *, reason: str
    ) -> FedwireMessage:
        """Return the message by which the sender of a payment to us requests its return."""
        return self._wire(
            ReturnRequest,
            now,
            message_id=_imad(day, f"request:{payment_message.message_id}"),
            case_id=f"CASE{_digits(payment_message.message_id, 12):012}",
            sender=payment_message.sender,
            creator=Party(name=payment_message.debtor.name),
            original=original_of(payment_message),
            amount=payment_message.amount,
            settled_on=payment_message.settles_on,
            reason=reason,
        )

    def accept_return(self, request: ReturnRequest, now: datetime) -> FedwireMessage:
        """Return the answer that accepts our return request."""
        return self._wire(
            types.ReturnRequestResponse,
            now,
            message_id=f"ANSWER{_digits(request.message_id, 12):012}",
            case_id=request.case_id,
            sender=request.receiver,
            creator=Party(name="Receiving bank"),
            verdict="CNCL",
            original=request.original,
        )

    def give_back(self, request: ReturnRequest, now: datetime, day: date) -> FedwireMessage:
        """Return the payment that we requested to be returned."""
        return self._wire(
            PaymentReturn,
            now,
            message_id=_imad(day, f"return:{request.original.message_id}"),
            original=request.original,
            amount=request.amount,
            settles_on=day,
            sender=request.receiver,
            debtor=Party(name="Receiving bank"),
            creditor=request.creator,
            reason="FOCR",
            information="Returned as requested",
        )

    def _wire(self, shape: type[types.Message], now: datetime, **fields: Any) -> FedwireMessage:
        message = shape(created_at=now, receiver=self._routing_number, **fields)
        header = types.Header(
            sender=types.FEDWIRE_ROUTING_NUMBER,
            receiver=self._routing_number,
            business_id=f"{now:%Y%m%d}OMAD{_digits('omad:' + message.message_id, 10):010}",
            message_name=str(type(message).__struct_config__.tag),
            environment="TEST",
            created_at=now,
        )
        return FedwireMessage(header=header, message=message)


def original_of(message: CreditTransfer | PaymentReturn) -> types.OriginalMessage:
    """Return the reference of an answer to the message it answers."""
    is_payment = isinstance(message, CreditTransfer)
    return types.OriginalMessage(
        message_id=message.message_id,
        message_name="pacs.008.001.08" if is_payment else "pacs.004.001.10",
        created_at=message.created_at,
        uetr=message.uetr if isinstance(message, CreditTransfer) else message.original.uetr,
        end_to_end_id=message.end_to_end_id if isinstance(message, CreditTransfer) else None,
    )


def _imad(day: date, seed_text: str) -> str:
    return f"{day:%Y%m%d}{_SOURCE}{_digits(seed_text, 6):06}"


def _digits(seed_text: str, count: int) -> int:
    number: int = int.from_bytes(blake2b(seed_text.encode(), digest_size=16).digest()) % 10**count
    return number
