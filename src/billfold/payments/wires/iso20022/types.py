"""ISO 20022 messages of the Fedwire Funds Service, inbound and outbound.

Amounts are cents of US dollars. Lengths and patterns are those of the Fedwire profile of 2025.
"""

from datetime import date, datetime
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta
from typing_extensions import override

from billfold.accounts.transactions.settlement import SettledDocument

Imad = Annotated[str, Meta(pattern=r"^[0-9]{8}[A-Z0-9]{8}[0-9]{6}\Z")]
"""The IMAD of a message: date, source and sequence."""
Uetr = Annotated[str, Meta(pattern=r"^[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}\Z")]
"""The UETR of a payment: a UUID of version 4."""
RoutingNumber = Annotated[str, Meta(pattern=r"^[0-9]{9}\Z")]
Bic = Annotated[str, Meta(pattern=r"^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?\Z")]
Iban = Annotated[str, Meta(pattern=r"^[A-Z]{2}[0-9]{2}[a-zA-Z0-9]{1,30}\Z")]
Country = Annotated[str, Meta(pattern=r"^[A-Z]{2}\Z")]
Cents = Annotated[int, Meta(gt=0, le=999_999_999_999)]
"""Up to $9,999,999,999.99."""
MessageName = Annotated[str, Meta(pattern=r"^[a-z]{4}[.][0-9]{3}[.]001[.][0-9]{2}\Z")]
Code = Annotated[str, Meta(pattern=r"^[A-Z0-9]{4}\Z")]
"""A reason or status of the ISO 20022 external code sets, such as AC04 or ACSC."""
Text16 = Annotated[str, Meta(min_length=1, max_length=16)]
Text34 = Annotated[str, Meta(min_length=1, max_length=34)]
Text35 = Annotated[str, Meta(min_length=1, max_length=35)]
Text70 = Annotated[str, Meta(min_length=1, max_length=70)]
Text105 = Annotated[str, Meta(min_length=1, max_length=105)]
Text140 = Annotated[str, Meta(min_length=1, max_length=140)]
RemittanceText = Annotated[str, Meta(pattern=r"^.{1,140}(\n.{1,140}){0,63}\Z")]
"""Lines of up to 140 characters, in total no more than Fedwire can carry."""


class PostalAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A postal address. Fedwire no longer accepts unstructured lines without town and country."""

    street: Text70 | None = None
    building: Text16 | None = None
    post_code: Text16 | None = None
    town: Annotated[str, Meta(min_length=1, max_length=35)]
    subdivision: Text35 | None = None
    country: Country


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """A bank, by routing number or BIC, or by name and address."""

    bic: Bic | None = None
    routing_number: RoutingNumber | None = None
    name: Text140 | None = None
    address: PostalAddress | None = None


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """A debtor or creditor."""

    name: Text140
    address: PostalAddress | None = None


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An account, by IBAN or account number."""

    iban: Iban | None = None
    number: Text34 | None = None


class OriginalMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The original message that a message refers to."""

    message_id: Text35
    message_name: MessageName
    created_at: datetime
    uetr: Uetr
    end_to_end_id: Text35 | None = None


class CreditTransfer(msgspec.Struct, frozen=True, kw_only=True, tag="pacs.008.001.08"):
    """A customer credit transfer (pacs.008)."""

    message_id: Imad
    created_at: datetime
    uetr: Uetr
    end_to_end_id: Text35
    instruction_id: Text35 | None = None
    amount: Cents
    settles_on: date
    charges: Annotated[str, Meta(pattern=r"^(DEBT|CRED|SHAR|SLEV)\Z")] = "SLEV"
    kind: Annotated[str, Meta(pattern=r"^CTR[CDS]\Z")] = "CTRC"
    sender: RoutingNumber
    receiver: RoutingNumber
    intermediary: Agent | None = None
    debtor: Party
    debtor_account: Account | None = None
    debtor_agent: Agent
    creditor_agent: Agent
    creditor: Party
    creditor_account: Account | None = None
    instructions: Text140 | None = None
    """The instruction for the creditor agent."""
    remittance: RemittanceText | None = None
    documents: tuple[SettledDocument, ...] | None = None


class PaymentReturn(msgspec.Struct, frozen=True, kw_only=True, tag="pacs.004.001.10"):
    """A payment return (pacs.004). Debtor and creditor are those of the return.

    `amount` is the amount that settles; banks may have deducted `charges` from the original amount.
    """

    message_id: Imad
    created_at: datetime
    return_id: Text35 | None = None
    original: OriginalMessage
    original_amount: Cents | None = None
    amount: Cents
    settles_on: date
    charges: Cents | None = None
    charged_by: Agent | None = None
    sender: RoutingNumber
    receiver: RoutingNumber
    debtor: Party
    creditor: Party
    reason: Code
    information: Text105 | None = None
    kind: Annotated[str, Meta(pattern=r"^CTR[CDS]\Z")] = "CTRC"


class PaymentStatus(msgspec.Struct, frozen=True, kw_only=True, tag="pacs.002.001.10"):
    """A payment status (pacs.002): ACSC settled, PDNG pending, RJCT rejected."""

    message_id: Text35
    created_at: datetime
    original: OriginalMessage
    status: Code
    reason: Text35 | None = None
    information: Text105 | None = None
    receiver: RoutingNumber


class ReturnRequest(msgspec.Struct, frozen=True, kw_only=True, tag="camt.056.001.08"):
    """A return request of a sender (camt.056)."""

    message_id: Imad
    created_at: datetime
    case_id: Text35
    sender: RoutingNumber
    receiver: RoutingNumber
    creator: Party
    original: OriginalMessage
    amount: Cents
    settled_on: date
    reason: Code
    information: Text105 | None = None


class ReturnRequestResponse(msgspec.Struct, frozen=True, kw_only=True, tag="camt.029.001.09"):
    """The response to a return request (camt.029): CNCL returned, RJCR not returned, PDCR pending."""

    message_id: Text35
    created_at: datetime
    case_id: Text35
    sender: RoutingNumber
    receiver: RoutingNumber
    creator: Party
    verdict: Code
    original: OriginalMessage
    reason: Code | None = None
    information: Text105 | None = None


Message = CreditTransfer | PaymentReturn | PaymentStatus | ReturnRequest | ReturnRequestResponse


class Header(msgspec.Struct, frozen=True, kw_only=True, tag="head.001.001.03"):
    """The business application header (head.001): sender, receiver and message name.

    `business_id` of an inbound message is its OMAD. Sender and receiver are routing numbers or the
    names of connection parties.
    """

    sender: Annotated[str, Meta(pattern=r"^[A-Z0-9]{9}\Z")]
    receiver: Annotated[str, Meta(pattern=r"^[A-Z0-9]{9}\Z")]
    business_id: Text35
    message_name: MessageName
    environment: Annotated[str, Meta(pattern=r"^(TEST|PROD)\Z")]
    created_at: datetime


class FedwireMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message with its header."""

    header: Header
    message: Message


class FedwireMistake(NamedTuple):
    """One error: the line (from 1), the element and the reason."""

    line: int
    element: str
    reason: str

    @override
    def __str__(self) -> str:
        return f"line {self.line}, {self.element}: {self.reason}"


_WITHOUT_MONEY = ("admi.", "camt.", "pacs.002", "pacs.028", "pain.")
"""Kinds of messages that move no money: of the service, of accounts and cases, of states, and requests."""


class UnreadMessage(NamedTuple):
    """A message of an unknown kind, or with errors: the line, its name and the number in its header."""

    line: int
    name: str
    number: str
    mistakes: tuple[FedwireMistake, ...] = ()

    @property
    def reason(self) -> str:
        """Return why it is not read: its errors, or that its kind is unknown."""
        return "; ".join(map(str, self.mistakes)) or f"{self.name} is not read here"

    @property
    def carries_money(self) -> bool:
        """Return whether it may have moved money, as with an unknown kind: an operator decides about it."""
        return not self.name.startswith(_WITHOUT_MONEY)


FileDirection = Literal["outgoing", "incoming"]
"""The direction of a file: to or from the service."""
FEDWIRE_ROUTING_NUMBER = "021151080"
"""The routing number of the service itself, which sends statuses."""
