"""The Fedwire Funds Service: what its ISO 20022 messages say, whichever way they go.

Amounts are cents of US dollars. Lengths and patterns are those of the Fedwire profile of 2025; a
message that does not keep them cannot be sent.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta
from typing_extensions import override

Imad = Annotated[str, Meta(pattern="^[0-9]{8}[A-Z0-9]{8}[0-9]{6}$")]
"""A message's own number: date, source and sequence."""
Uetr = Annotated[str, Meta(pattern="^[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}$")]
"""A payment's number from end to end: a UUID of version 4."""
RoutingNumber = Annotated[str, Meta(pattern="^[0-9]{9}$")]
Bic = Annotated[str, Meta(pattern="^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$")]
Iban = Annotated[str, Meta(pattern="^[A-Z]{2}[0-9]{2}[a-zA-Z0-9]{1,30}$")]
Country = Annotated[str, Meta(pattern="^[A-Z]{2}$")]
Cents = Annotated[int, Meta(gt=0, le=999_999_999_999)]
"""Up to $9,999,999,999.99."""
MessageName = Annotated[str, Meta(pattern="^[a-z]{4}[.][0-9]{3}[.]001[.][0-9]{2}$")]
Code = Annotated[str, Meta(pattern="^[A-Z0-9]{4}$")]
"""A reason or status of ISO's external code sets, such as AC04 or ACSC."""
Text16 = Annotated[str, Meta(min_length=1, max_length=16)]
Text34 = Annotated[str, Meta(min_length=1, max_length=34)]
Text35 = Annotated[str, Meta(min_length=1, max_length=35)]
Text70 = Annotated[str, Meta(min_length=1, max_length=70)]
Text105 = Annotated[str, Meta(min_length=1, max_length=105)]
Text140 = Annotated[str, Meta(min_length=1, max_length=140)]


class PostalAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where somebody is. Free lines without town and country are no longer carried."""

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
    """Who pays or is paid."""

    name: Text140
    address: PostalAddress | None = None


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An account, by IBAN or by its bank's own number."""

    iban: Iban | None = None
    number: Text34 | None = None


class OriginalMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The message that another one is about."""

    message_id: Text35
    message_name: MessageName
    created_at: datetime
    uetr: Uetr
    end_to_end_id: Text35 | None = None


class CreditTransfer(msgspec.Struct, frozen=True, kw_only=True, tag="pacs.008.001.08"):
    """A customer's payment."""

    message_id: Imad
    created_at: datetime
    uetr: Uetr
    end_to_end_id: Text35
    instruction_id: Text35 | None = None
    amount: Cents
    settles_on: date
    charges: Annotated[str, Meta(pattern="^(DEBT|CRED|SHAR|SLEV)$")] = "SLEV"
    kind: Annotated[str, Meta(pattern="^CTR[CDS]$")] = "CTRC"
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
    """What the bank of whoever is paid is asked to do."""
    remittance: Text140 | None = None


class PaymentReturn(msgspec.Struct, frozen=True, kw_only=True, tag="pacs.004.001.10"):
    """A payment that comes back. Debtor and creditor are those of the return.

    `amount` is what settles; banks on the way may have kept `charges` of the original amount.
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
    kind: Annotated[str, Meta(pattern="^CTR[CDS]$")] = "CTRC"


class PaymentStatus(msgspec.Struct, frozen=True, kw_only=True, tag="pacs.002.001.10"):
    """What has become of a payment: ACSC settled, PDNG waiting, RJCT rejected."""

    message_id: Text35
    created_at: datetime
    original: OriginalMessage
    status: Code
    reason: Text35 | None = None
    information: Text105 | None = None
    receiver: RoutingNumber


class ReturnRequest(msgspec.Struct, frozen=True, kw_only=True, tag="camt.056.001.08"):
    """A sender asks for his payment back."""

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
    """The answer: CNCL the payment comes back, RJCR it does not, PDCR it is being looked at."""

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
    """The business application header: from whom to whom, and which message follows.

    `business_id` of a message that arrives is its OMAD. Ends of the connection are routing numbers
    or the names of connection parties.
    """

    sender: Annotated[str, Meta(pattern="^[A-Z0-9]{9}$")]
    receiver: Annotated[str, Meta(pattern="^[A-Z0-9]{9}$")]
    business_id: Text35
    message_name: MessageName
    environment: Annotated[str, Meta(pattern="^(TEST|PROD)$")]
    created_at: datetime


class FedwireMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message with its header."""

    header: Header
    message: Message


FileDirection = Literal["outgoing", "incoming"]
"""Of a file: from us to the service, or from it to us."""
FEDWIRE_ROUTING_NUMBER = "021151080"
"""The routing number of the service itself, which sends statuses."""
MISTAKES_MAX = 100
"""Mistakes of one file that are told."""


class FedwireMistake(NamedTuple):
    """One thing that is wrong: the line, counted from 1, the element and the reason."""

    line: int
    element: str
    reason: str

    @override
    def __str__(self) -> str:
        return f"line {self.line}, {self.element}: {self.reason}"


class InvalidFedwireFile(ValueError):
    """Nothing of the file is taken. `mistakes` names lines and reasons, the first hundred."""

    def __init__(self, mistakes: Sequence[FedwireMistake]) -> None:
        self.mistakes = tuple(mistakes[:MISTAKES_MAX])
        super().__init__("; ".join(map(str, self.mistakes[:3])))
