"""Disputes of card payments, and their commands. Amounts are cents."""

from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID, uuid5

import msgspec

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.platform.database.rows import Row

DISPUTE_JOB: Final = "card.dispute"
"""Credits a dispute provisionally, or ends it when its time has run out; its object is the dispute."""


class DisputeStatus(StrEnum):
    """WON, LOST, WITHDRAWN and EXPIRED are final, but that a merchant may still represent what was WON."""

    OPENED = "OPENED"
    PROVISIONALLY_CREDITED = "PROVISIONALLY_CREDITED"
    WON = "WON"
    LOST = "LOST"
    WITHDRAWN = "WITHDRAWN"
    EXPIRED = "EXPIRED"


DOCUMENTS_MAX: Final = 20
"""Documents of a dispute, given at its opening or later."""
OPEN: Final = frozenset({DisputeStatus.OPENED, DisputeStatus.PROVISIONALLY_CREDITED})


class DisputeReason(StrEnum):
    """The categories that the networks' reason codes come under."""

    FRAUD = "FRAUD"
    AUTHORIZATION = "AUTHORIZATION"
    DUPLICATE = "DUPLICATE"
    INCORRECT_AMOUNT = "INCORRECT_AMOUNT"
    NOT_RECEIVED = "NOT_RECEIVED"
    NOT_AS_DESCRIBED = "NOT_AS_DESCRIBED"
    CANCELLED = "CANCELLED"
    CREDIT_NOT_PROCESSED = "CREDIT_NOT_PROCESSED"


class DisputeRow(Row, frozen=True, kw_only=True):
    """A dispute of the purchase `record_id`, as stored. `document_ids` are separated by spaces.

    `recovered` is what has been returned of its amount, `charged_back` of that by the network. `advanced` is what the
    bank has credited provisionally and not got back, `written_off` what it bears itself of a credit that is final, None
    before. `credit_due_at` and `decide_by` are the days of Regulation E.
    """

    table = "card_dispute"
    key_column = "dispute_id"
    noun = "card dispute"
    fingerprinted = True
    keeps_former = True

    customer_id: UUID
    dispute_id: UUID
    record_id: UUID
    authorization_id: UUID | None
    card_id: UUID
    pocket_id: UUID
    merchant: str
    amount: int
    reason: DisputeReason
    status: DisputeStatus
    advanced: int = 0
    recovered: int = 0
    charged_back: int = 0
    written_off: int | None = None
    document_ids: str
    credit_due_at: datetime
    decide_by: datetime
    created_at: datetime
    updated_at: datetime

    @property
    def evidence_ids(self) -> list[UUID]:
        """The documents of its customer about it."""
        return [UUID(each) for each in self.document_ids.split()]

    @property
    def is_open(self) -> bool:
        """True while its Pocket must stay open: money may still be taken back."""
        return self.advanced > 0


class RefundSeen(msgspec.Struct, frozen=True):
    """A refund to a card, with the authorization that its reference names; merchants often send one of their own."""

    card_id: UUID
    amount: int
    merchant: str
    authorization_id: UUID | None
    created_at: datetime


def refund_id_of(record_id: UUID) -> UUID:
    """Return the id under which rules find a refund."""
    return uuid5(record_id, "refund")


class OpenDispute(Command, frozen=True, kw_only=True):
    """Dispute `amount` cents of a purchase, all that is left if None. References it, its card and the documents."""

    reference_kinds = (Reference.CARD_AUTHORIZATION, Reference.CARD_DISPUTE, Reference.DOCUMENT)
    audit = AuditedAction("card_dispute", "opened", fields=("record_id", "amount", "reason"), key="dispute_id")
    dispute_id: UUID
    record_id: UUID
    amount: int | None
    reason: DisputeReason
    document_ids: tuple[UUID, ...] = ()


class DecideDispute(Command, frozen=True, kw_only=True):
    """Move a dispute on to a status; None: to what is due because a time has come. References the dispute."""

    reference_kinds = (Reference.CARD_DISPUTE,)
    audit = AuditedAction("card_dispute", "decided", fields=("dispute_id", "status"), key="dispute_id")
    dispute_id: UUID
    status: DisputeStatus | None = None


class AddDisputeDocuments(Command, frozen=True, kw_only=True):
    """Add documents to a dispute that is not decided. References it and them."""

    reference_kinds = (Reference.CARD_DISPUTE, Reference.DOCUMENT)
    audit = AuditedAction("card_dispute", "documented", fields=("dispute_id", "document_ids"), key="dispute_id")
    dispute_id: UUID
    document_ids: tuple[UUID, ...]
