"""Records of a settlement file, in the file format and as stored. Amounts are cents."""

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final, NamedTuple
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.ledger.types import Direction
from billfold.payments.cards.authorizations.commands import Merchant

FORMAT: Final = "BILLFOLD-CARD-SETTLEMENT"
VERSION: Final = 1
AMOUNT_MAX: Final = 999_999_999_99
"""Cents of one record."""

Cents = Annotated[int, msgspec.Meta(ge=1, le=AMOUNT_MAX)]
SignedCents = Annotated[int, msgspec.Meta(ge=-AMOUNT_MAX, le=AMOUNT_MAX)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Reference = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z-]{1,40}\Z")]
NetworkReference = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,40}\Z")]


class RecordType(StrEnum):
    """Presentments, representments and fees are paid by the bank, refunds and chargebacks are paid to it."""

    PRESENTMENT = "PRESENTMENT"
    REFUND = "REFUND"
    CHARGEBACK = "CHARGEBACK"
    REPRESENTMENT = "REPRESENTMENT"
    FEE = "FEE"
    UNREADABLE = "UNREADABLE"


class FeeKind(StrEnum):
    """The party that charges a fee."""

    PROCESSOR = "PROCESSOR"
    NETWORK = "NETWORK"


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="record"):
    """One line: a JSON object whose `record` is its type."""


class Header(_Line, frozen=True, kw_only=True, tag="HEADER"):
    """The first line. `bank` is the routing number of the bank that the file is for."""

    format: str
    version: int
    reference: Reference
    bank: str
    settles_on: date
    created_at: datetime
    currency: str


class _CardRecord(_Line, frozen=True, kw_only=True):
    """Fields of card records. `interchange` is received by the bank; interchange that it returns is negative."""

    type: ClassVar[RecordType]
    direction: ClassVar[Direction]

    record_id: UUID
    card_id: UUID
    amount: Cents
    interchange: SignedCents = 0
    network_reference: NetworkReference | None = None

    @property
    def paid(self) -> int:
        """The amount that the bank pays, without interchange; negative if it is paid."""
        return self.amount if self.direction == Direction.DEBIT else -self.amount


class Presentment(_CardRecord, frozen=True, kw_only=True, tag="PRESENTMENT"):
    """A purchase, or a part of one: `is_final` unless another part follows."""

    type = RecordType.PRESENTMENT
    direction = Direction.DEBIT

    merchant: Merchant
    is_final: bool = True


class Refund(_CardRecord, frozen=True, kw_only=True, tag="REFUND"):
    """A merchant's refund."""

    type = RecordType.REFUND
    direction = Direction.CREDIT

    merchant: Merchant


class Chargeback(_CardRecord, frozen=True, kw_only=True, tag="CHARGEBACK"):
    """A disputed presentment, `original_record_id`, is returned in full or in part."""

    type = RecordType.CHARGEBACK
    direction = Direction.CREDIT

    original_record_id: UUID
    reason_code: Reference


class Representment(_CardRecord, frozen=True, kw_only=True, tag="REPRESENTMENT"):
    """The merchant proves a charged-back presentment, `original_record_id`, and is paid again."""

    type = RecordType.REPRESENTMENT
    direction = Direction.DEBIT

    original_record_id: UUID


class Fee(_Line, frozen=True, kw_only=True, tag="FEE"):
    """A fee that the processor or the network charges the bank."""

    type: ClassVar[RecordType] = RecordType.FEE
    interchange: ClassVar[int] = 0

    record_id: UUID
    kind: FeeKind
    amount: Cents
    description: Text

    @property
    def paid(self) -> int:
        """The amount that the bank pays."""
        return self.amount


class Unreadable(NamedTuple):
    """A line that is not a record, and why; `paid` is its remainder from the trailer."""

    reason: str
    paid: int = 0
    interchange: int = 0
    type: RecordType = RecordType.UNREADABLE


class Total(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of records of a type, and their sum."""

    count: int = 0
    amount: int = 0


class Trailer(_Line, frozen=True, kw_only=True, tag="TRAILER"):
    """The last line. A positive `net_settlement` is paid by the bank."""

    records: int
    presentments: Total
    refunds: Total
    chargebacks: Total
    representments: Total
    fees: Total
    interchange: int
    net_settlement: int


RecordOfCard = Presentment | Refund | Chargeback | Representment
Record = RecordOfCard | Fee
NumberedRecord = tuple[int, Record | Unreadable]


class SettlementFile(NamedTuple):
    """A file as read; records with their lines, counted from 1."""

    header: Header
    records: list[NumberedRecord]
    trailer: Trailer


class SettlementMistake(NamedTuple):
    """The reason why a file is refused; line 0 is the whole file."""

    line: int
    reason: str

    @override
    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else f"file: {self.reason}"


class SettlementFileRow(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted file with the totals of its trailer."""

    file_id: UUID
    reference: str
    settles_on: date
    records: int
    presentments: int
    refunds: int
    chargebacks: int
    representments: int
    fees: int
    interchange: int
    net_settlement: int


class SettlementRecordRow(msgspec.Struct, frozen=True, kw_only=True):
    """A record of an accepted file. `item_id` is its item in suspense if it is not booked.

    `reason` is why it cannot be booked, if the record itself is wrong.
    """

    file_id: UUID
    line: int
    type: RecordType
    record_id: UUID | None
    card_id: UUID | None
    direction: Direction
    amount: int
    interchange: int
    item_id: UUID
    reason: str | None
