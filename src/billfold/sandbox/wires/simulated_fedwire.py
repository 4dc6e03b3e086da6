"""The Federal Reserve, the correspondent and the banks behind them, for the sandbox.

What they answer is real files. An amount that ends in 01 is refused by the bank of whoever is
paid; every other payment settles. Numbers follow from what is answered, so the same question has
the same answer to the last digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from hashlib import blake2b
from uuid import UUID

from billfold.payments.wires.ports import (
    SYSTEM,
    Account,
    Agent,
    CreditTransfer,
    Header,
    Message,
    Original,
    Party,
    PaymentReturn,
    PaymentStatus,
    ReturnAnswer,
    ReturnRequest,
    Wire,
)

SENDER = "026009593"
"""The routing number of the bank that sends, unless another is named."""
ACCOUNT_CLOSED = "AC04"
_REFUSED_CENTS = 1
_SOURCE = "SIMFED01"
_POWERS = {count: int("1" + "0" * count) for count in (6, 10, 12)}


class SimulatedFed:
    """Makes the messages that reach the bank of this routing number."""

    def __init__(self, routing_number: str) -> None:
        self._routing_number = routing_number

    def answers(self, wires: Sequence[Wire], now: datetime, day: date) -> list[Wire]:
        """Return what becomes of the messages of one of our files."""
        answers = []
        for wire in wires:
            message = wire.message
            if isinstance(message, ReturnRequest):
                answers += [self.consent(message, now), self.give_back(message, now, day)]
            elif isinstance(message, CreditTransfer | PaymentReturn):
                refused = message.amount % 100 == _REFUSED_CENTS
                code = ACCOUNT_CLOSED if refused and isinstance(message, CreditTransfer) else None
                answers.append(self.status(message, now, code))
        return answers

    def status(
        self, message: CreditTransfer | PaymentReturn, now: datetime, code: str | None
    ) -> Wire:
        """Return that a message has settled, or was rejected for a code."""
        number = _digits(f"status:{message.message_id}:{code}", 6)
        status = PaymentStatus(
            message_id=f"{now:%Y%m%d}{_SOURCE}{number:06}{message.message_id[-6:]}",
            created_at=now,
            original=original_of(message),
            status="ACSC" if code is None else "RJCT",
            reason=code,
            receiver=self._routing_number,
        )
        return self._wire(status, now)

    def payment(
        self,
        named: str,
        now: datetime,
        day: date,
        *,
        account_number: str,
        amount: int,
        sender_name: str,
        sender_account_number: str | None,
        sender_routing_number: str | None,
    ) -> Wire:
        """Return the payment of this name: the same for the same name, whenever it is asked for."""
        bank = sender_routing_number or SENDER
        message = CreditTransfer(
            message_id=_imad(day, f"payment:{named}"),
            created_at=now,
            uetr=str(UUID(bytes=blake2b(named.encode(), digest_size=16).digest(), version=4)),
            end_to_end_id="NOTPROVIDED",
            instruction_id=f"W{_digits(named, 12):012}",
            amount=amount,
            settles_on=day,
            sender=bank,
            receiver=self._routing_number,
            debtor=Party(name=sender_name),
            debtor_account=Account(number=sender_account_number) if sender_account_number else None,
            debtor_agent=Agent(routing_number=bank),
            creditor_agent=Agent(routing_number=self._routing_number),
            creditor=Party(name="Holder of the account"),
            creditor_account=Account(number=account_number),
        )
        return self._wire(message, now)

    def payment_return(
        self,
        paid: CreditTransfer,
        now: datetime,
        day: date,
        *,
        reason: str,
        information: str,
        charges: int = 0,
    ) -> Wire:
        """Return that the receiver of a payment of ours sends it back, less these charges."""
        message = PaymentReturn(
            message_id=_imad(day, f"return:{paid.message_id}"),
            created_at=now,
            original=original_of(paid),
            original_amount=paid.amount if charges else None,
            amount=paid.amount - charges,
            settles_on=day,
            charges=charges or None,
            charged_by=Agent(routing_number=paid.receiver) if charges else None,
            sender=paid.receiver,
            receiver=self._routing_number,
            debtor=Party(name=paid.creditor.name),
            creditor=Party(name=paid.debtor.name),
            reason=reason,
            information=information,
            kind=paid.kind,
        )
        return self._wire(message, now)

    def return_request(
        self, paid: CreditTransfer, now: datetime, day: date, *, reason: str
    ) -> Wire:
        """Return that the sender of a payment to us asks for it back."""
        message = ReturnRequest(
            message_id=_imad(day, f"request:{paid.message_id}"),
            created_at=now,
            case_id=f"CASE{_digits(paid.message_id, 12):012}",
            sender=paid.sender,
            receiver=self._routing_number,
            creator=Party(name=paid.debtor.name),
            original=original_of(paid),
            amount=paid.amount,
            settled_on=paid.settles_on,
            reason=reason,
        )
        return self._wire(message, now)

    def consent(self, asked: ReturnRequest, now: datetime) -> Wire:
        """Return that a payment of ours comes back as we asked."""
        message = ReturnAnswer(
            message_id=f"ANSWER{_digits(asked.message_id, 12):012}",
            created_at=now,
            case_id=asked.case_id,
            sender=asked.receiver,
            receiver=self._routing_number,
            creator=Party(name="Receiving bank"),
            verdict="CNCL",
            original=asked.original,
        )
        return self._wire(message, now)

    def give_back(self, asked: ReturnRequest, now: datetime, day: date) -> Wire:
        """Return the money of a payment that we asked for."""
        message = PaymentReturn(
            message_id=_imad(day, f"return:{asked.original.message_id}"),
            created_at=now,
            original=asked.original,
            amount=asked.amount,
            settles_on=day,
            sender=asked.receiver,
            receiver=self._routing_number,
            debtor=Party(name="Receiving bank"),
            creditor=asked.creator,
            reason="FOCR",
            information="Returned as requested",
        )
        return self._wire(message, now)

    def _wire(self, message: Message, now: datetime) -> Wire:
        header = Header(
            sender=SYSTEM,
            receiver=self._routing_number,
            business_id=f"{now:%Y%m%d}OMAD{_digits('omad:' + message.message_id, 10):010}",
            message_name=str(type(message).__struct_config__.tag),
            environment="TEST",
            created_at=now,
        )
        return Wire(header=header, message=message)


def original_of(message: CreditTransfer | PaymentReturn) -> Original:
    """Return what an answer says of the message it answers."""
    if isinstance(message, CreditTransfer):
        return Original(
            message_id=message.message_id,
            message_name="pacs.008.001.08",
            created_at=message.created_at,
            uetr=message.uetr,
            end_to_end_id=message.end_to_end_id,
        )
    return Original(
        message_id=message.message_id,
        message_name="pacs.004.001.10",
        created_at=message.created_at,
        uetr=message.original.uetr,
    )


def _imad(day: date, named: str) -> str:
    return f"{day:%Y%m%d}{_SOURCE}{_digits(named, 6):06}"


def _digits(named: str, count: int) -> int:
    drawn = int.from_bytes(blake2b(named.encode(), digest_size=16).digest())
    return drawn % _POWERS[count]
