"""The simulated Fedwire of a sandbox: reads the files that we transmit and answers with files.

Every answer goes through the inbox and the gate, like one of the real service.
"""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from uuid import UUID

from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.fedwire.booking import payment_id
from billfold.payments.fedwire.inbound_files import FedwireFileProcessor
from billfold.payments.fedwire.outbound import FedwireSender
from billfold.payments.fedwire.validation import numbers_of
from billfold.payments.files.exchange import ExchangeFolders, RailExchanges
from billfold.payments.files.store import read_content
from billfold.payments.wires import store
from billfold.payments.wires.commands import WireDirection, WireRow, WireType
from billfold.payments.wires.iso20022 import types
from billfold.payments.wires.iso20022.envelope import read_messages, write_messages
from billfold.payments.wires.iso20022.types import CreditTransfer, FedwireMessage, Party, PaymentReturn, ReturnRequest
from billfold.payments.wires.messages import fedwire_day as _day
from billfold.payments.wires.messages import message_sent
from billfold.payments.wires.rules import messages
from billfold.payments.wires.store import find_wire, get_outstanding, get_wire
from billfold.platform.errors import InvalidInput, InvariantError, Refused
from billfold.sandbox.rails.correspondent import Correspondent, moved_by_wires

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
        key: UUID | None = None,
    ) -> FedwireMessage:
        """Return the message by which the payee of a payment of ours returns it, or a part of it, less charges.

        Its number is the same on any day: that of the payment is the first of it.
        """
        seed_text = f"return:{payment_message.message_id}" + (f":{key}" if key else "")
        settled = payment_message.amount - charges if amount is None else amount
        return self._wire(
            PaymentReturn,
            now,
            message_id=_imad(date.fromisoformat(payment_message.message_id[:8]), seed_text),
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


WIRE_ANSWER = "sandbox.wire_answer"
"""The scheduled job in which the simulated service answers a file of ours."""
ANSWERS_AFTER = timedelta(seconds=5)
_OPEN_STATUSES: Final = frozenset({"PENDING", "PROCESSING"})


class DestinationAccount(NamedTuple):
    """The account that a payment is for."""

    routing_number: str
    account_number: str


class Sender(NamedTuple):
    """The sender of a payment."""

    name: str
    account_number: str | None = None
    routing_number: str | None = None


class Returned(NamedTuple):
    """The amount in cents that is returned of a wire, None for all that is outstanding, and the charges of banks."""

    amount: int | None = None
    charges: int = 0


class SimulatedFedwire:
    """Simulates the other side of Fedwire, at its own instants or when an operation requests it.

    `sender` and `gate` are the bank's own side of the service, in this process.
    """

    def __init__(self) -> None:
        self.sender = FedwireSender(schedule_answer)
        self.gate = FedwireFileProcessor()

    # -- automatic ------------------------------------------------------------------------

    async def answer(self, bank: Bank, appointment: ScheduledJob) -> None:
        """Answer every pending message of a file of ours."""
        content = await read_content(bank, appointment.object_id)
        sent = [wire for _, wire in read_messages(content, "outgoing")]
        unanswered = [wire for wire in sent if await _is_unanswered(bank, wire)]
        fed = SimulatedFed(bank.settings.bank_routing_number)
        answers = fed.answers(unanswered, appointment.at, _day(bank, appointment.at))
        await self._deliver(bank, f"fed-{appointment.object_id}.xml", answers, [each.message for each in unanswered])

    # -- on request -----------------------------------------------------------------------

    async def submit(self, bank: Bank, customer_id: UUID, wire_id: UUID) -> None:
        """Send the message of a wire before its hour, or do nothing if it was sent. Refuses: wire-not-pending."""
        wire = await get_wire(bank.pool, customer_id, wire_id)
        if wire.status == "PENDING":
            await store.expedite(bank.pool, wire_id, await bank.now())
            await self.sender.send(bank)
            wire = await get_wire(bank.pool, customer_id, wire_id)
        if wire.direction != WireDirection.OUTGOING or wire.status != "PROCESSING":
            raise Refused("wire-not-pending", f"The wire is {wire.status}.")

    async def settle(self, bank: Bank, customer_id: UUID, wire_id: UUID, code: str | None) -> None:
        """Settle a wire, or reject it with a code. Refuses: wire-not-processing."""
        wire = await get_wire(bank.pool, customer_id, wire_id)
        if wire.direction == WireDirection.OUTGOING and wire.status == "COMPLETED" and code is None:
            return  # automatically, during this request
        if wire.direction != WireDirection.OUTGOING or wire.status != "PROCESSING":
            raise Refused("wire-not-processing", f"The wire is {wire.status}.")
        message = await _sent_message(bank, wire)
        now = await bank.now()
        status = SimulatedFed(bank.settings.bank_routing_number).status(message, now, code)
        await self._deliver(bank, f"fed-status-{wire_id}.xml", [status], [message])

    async def give_back(
        self, bank: Bank, customer_id: UUID, wire_id: UUID, reason: str, information: str, returned: Returned, key: UUID
    ) -> None:
        """Return a wire of ours, or a part of it, from its receiver, once for each key.

        Refuses: wire-not-completed, wire-already-returned.
        """
        wire = await get_wire(bank.pool, customer_id, wire_id)
        _expect_completed(wire, WireDirection.OUTGOING)
        message = await _sent_message(bank, wire)
        if not isinstance(message, CreditTransfer):
            raise Refused("wire-not-completed", "A return cannot be returned.")
        outstanding, now = await get_outstanding(bank.pool, wire), await bank.now()
        amount = returned.amount or outstanding - returned.charges
        return_message = SimulatedFed(bank.settings.bank_routing_number).payment_return(
            message,
            now,
            _day(bank, now),
            reason=reason,
            information=information,
            amount=amount,
            charges=returned.charges,
            key=key,
        )
        if await store.find_arrived(bank.pool, numbers_of(return_message), key):
            return
        if outstanding <= 0:
            raise Refused("wire-already-returned", "The wire has been returned already.")
        if returned.charges >= outstanding:
            raise InvalidInput.at("body", "charges_usdc", msg="must be less than the outstanding amount of the wire")
        if amount + returned.charges > outstanding:
            raise InvalidInput.at("body", "amount_usdc", msg="must not exceed the outstanding amount of the wire")
        await self._deliver(bank, f"fed-return-{key}.xml", [return_message])

    async def ask_for(self, bank: Bank, customer_id: UUID, wire_id: UUID, reason: str) -> None:
        """Simulate a return request from the sender of a wire that arrived. Refuses: wire-not-completed."""
        wire = await get_wire(bank.pool, customer_id, wire_id)
        _expect_completed(wire, WireDirection.INCOMING)
        if wire.wire_type != WireType.PAYMENT or wire.message is None:
            raise Refused("wire-not-completed", "Only the return of an incoming payment can be requested.")
        now = await bank.now()
        request = SimulatedFed(bank.settings.bank_routing_number).return_request(
            messages.payment_message_of(wire), now, _day(bank, now), reason=reason
        )
        await self._deliver(bank, f"fed-request-{wire_id}.xml", [request])

    async def pay(self, bank: Bank, payment_name: UUID, to: DestinationAccount, amount: int, sender: Sender) -> bool:
        """Deliver a payment; tell whether it was booked. A payment of the same name is delivered once."""
        now = await bank.now()
        wire = SimulatedFed(to.routing_number).payment(
            str(payment_name),
            now,
            _day(bank, now),
            account_number=to.account_number,
            amount=amount,
            sender_name=sender.name,
            sender_account_number=sender.account_number,
            sender_routing_number=sender.routing_number,
        )
        wire_id = payment_id(bank, wire)
        if await find_wire(bank.pool, wire_id) is None:
            await self._deliver(bank, f"fed-payment-{payment_name}.xml", [wire])
        booked = await find_wire(bank.pool, wire_id)
        return booked is not None and booked.status == "COMPLETED"

    async def _deliver(
        self, bank: Bank, name: str, answers: Sequence[FedwireMessage], sent: Sequence[types.Message] = ()
    ) -> None:
        """Settle what was `sent` and what is delivered, put a file into the inbox and process it at once."""
        if answers:
            day = _day(bank, await bank.now())
            await Correspondent(bank).record(day, moved_by_wires(answers, sent))
            content = write_messages(answers, "incoming")
            exchange = bank.ports[RailExchanges].wire
            assert isinstance(exchange, ExchangeFolders)
            await exchange.network_side().transmit(name, content)
            await self.gate.process_all(bank)


async def schedule_answer(bank: Bank, file_id: UUID) -> None:
    """Let the simulated service answer a file of ours."""
    at = await bank.now() + ANSWERS_AFTER
    await scheduler.schedule(bank.pool, [ScheduledJob(WIRE_ANSWER, file_id, None, at=at)])


async def _is_unanswered(bank: Bank, wire: FedwireMessage) -> bool:
    """Return whether this message of ours is still unanswered."""
    message = wire.message
    if isinstance(message, ReturnRequest):
        return bool(await store.find_open_cases(bank.pool, [message.case_id]))
    sent = (await store.find_sent(bank.pool, [message.message_id])).get(message.message_id)
    if sent is None:
        return False
    return sent.status in _OPEN_STATUSES or sent.direction != WireDirection.OUTGOING


async def _sent_message(bank: Bank, wire: WireRow) -> CreditTransfer | PaymentReturn:
    sent = await store.find_last_sent(bank.pool, wire.wire_id, ["pacs.008", "pacs.004"])
    message = None if sent is None else await message_sent(bank, sent)
    if not isinstance(message, CreditTransfer | PaymentReturn):
        raise InvariantError("A wire has left without a message.", wire_id=str(wire.wire_id))
    return message


def _expect_completed(wire: WireRow, direction: str) -> None:
    if wire.direction != direction:
        raise Refused("wire-not-completed", f"The wire is {wire.direction}.")
    if wire.status != "COMPLETED":
        raise Refused("wire-not-completed", f"The wire is {wire.status}.")
