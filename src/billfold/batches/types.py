"""A batch and its rows as stored, and what a row orders."""

from datetime import date, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.notes.schemas import ExternalId, Metadata
from billfold.approvals.transfer_orders import Description, Instructions, Reference
from billfold.approvals.types import ApprovalRequirement, StoredRequest
from billfold.ledger.book.notes import Note
from billfold.payments.on_us.schemas import Cents, Endpoint

ROWS_MAX: Final = 1000
ROWS_PER_PART: Final = 50
"""Rows of one batch that are carried out, or audited, together; other work comes before the next."""
BatchKind = Literal["TRANSFERS", "COUNTERPARTIES", "POCKETS"]
BatchMode = Literal["ATOMIC", "INDEPENDENT"]
RowState = Literal["WAITING", "COMPLETED", "FAILED"]
RowType = Literal[
    "INTERNAL_REALLOCATION", "PEER_TO_PEER", "WIRE", "PARTNER_CUSTOMER_FUNDING", "PARTNER_CUSTOMER_DEFUNDING"
]
CounterpartyType = Literal["ach", "wire", "on_us", "international_wire", "crypto_wallet_address"]
RowKey = Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+\Z")]
BatchStatus = Literal["PENDING", "PROCESSING", "COMPLETED", "FAILED", "DENIED", "CANCELLED", "EXPIRED"]
RUN_BATCH: Final = "batch.run"
EXPIRE_BATCH: Final = "batch.expire"
"""Kinds of scheduled jobs; the object is the batch."""


class TransferRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A transfer of a batch: its fields are the columns of a CSV. `amount_usdc` is in cents."""

    type: RowType
    from_pocket_id: UUID
    amount_usdc: Cents
    to_pocket_id: UUID | None = None
    counterparty_id: UUID | None = None
    description: Description | None = None
    end_to_end_identification: Reference | None = None
    wire_instructions: Instructions | None = None
    source: Endpoint | None = None
    target: Endpoint | None = None
    # Left out of the content of rows without them, whose hash must stay that of earlier releases.
    hold_id: UUID | UnsetType | None = UNSET
    external_id: ExternalId | UnsetType | None = UNSET
    metadata: Metadata | UnsetType | None = UNSET
    idempotency_key: RowKey | None = None


class StoredTransfer(TransferRow, frozen=True, kw_only=True):
    """A transfer of a partner's batch as stored: its note is sealed, with the key of the customer that pays."""

    attached: Note | UnsetType = UNSET
    customer_id: UUID | UnsetType = UNSET


_TEXTS = (
    "business_name first_name last_name display_name routing_number account_number account_type identifier"
    " identifier_code identifier_type institution_name wire_instructions street_address street_address2 city"
    " postal_code state country chain wallet_address"
)
_FIELDS: list[tuple[str, Any, Any]] = [
    ("customer_id", UUID | None, None),
    *((name, str | None, None) for name in _TEXTS.split()),
    ("verification", Literal["incoming_wire", "micro_deposits", "unverified"] | None, None),
    ("external_id", str | None, None),
    ("metadata", dict[str, str] | None, None),
    ("idempotency_key", RowKey | None, None),
]
NewCounterparty: Any = msgspec.defstruct(
    "NewCounterparty", [("type", CounterpartyType), *_FIELDS], frozen=True, forbid_unknown_fields=True, kw_only=True
)
"""A counterparty of a batch: the fields of a single one, side by side, as the columns of a CSV.

`customer_id` is of the Partner API. `verification` is one that needs no document.
"""


class NewPocket(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Pocket of a batch: the fields of a single one. `customer_id` is of the Partner API."""

    customer_id: UUID | None = None
    pocket_name: str
    deposit_strategy_id: str | None = None
    reinvestment_strategy_id: str | UnsetType | None = UNSET
    trading_strategy_id: str | None = None
    pocket_configuration_id: str | None = None
    external_id: str | None = None
    metadata: dict[str, str] | None = None
    idempotency_key: RowKey | None = None


class RowProblem(msgspec.Struct, frozen=True, kw_only=True):
    """The reason for which a row was not carried out: the code of a problem, and the field if it is about one."""

    code: str
    detail: str
    field: str | None = None


REUSED: Final = RowProblem(
    code="idempotency-key-reused", detail="The key belongs to another row of a batch.", field="idempotency_key"
)


class ReadRow(NamedTuple):
    """A row as it was sent, `number` from 1: its `TransferRow`, `NewCounterparty` or `NewPocket`, or its problems.

    `place` names it in messages.
    """

    number: int
    key: str | None
    order: Any
    problems: tuple[RowProblem, ...]
    place: str = ""


class Batch(StoredRequest, frozen=True, kw_only=True):
    """A batch. Its content lists the hashes of its rows in order; `asked` is the hash of the request as sent.

    `amount` is the sum of its rows in cents. A batch of a partner lies with the partner's own customer; nobody approves
    it. `refused` is the code with which the rows of an atomic one were refused together.
    """

    partner_id: UUID | None
    mode: BatchMode
    kind: BatchKind
    asked: bytes
    row_count: int
    amount: int
    business_date: date
    completed: int
    failed: int
    refused: str | None
    finished_at: datetime | None

    @property
    def shown_status(self) -> BatchStatus:
        """The status with that of the execution."""
        if self.status != "APPROVED":
            return self.status
        if self.finished_at is None:
            return "PROCESSING"
        return "COMPLETED" if self.refused is None else "FAILED"


class BatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row as stored. `content` is the JSON text that is approved, None if the row could not be read.

    `object_id` is the id of the transfer, or counterparty, that it makes. `terms` is the requirement of the row alone.
    """

    row_no: int
    row_key: str | None = None
    content: str | None = None
    content_hash: bytes | None = None
    object_id: UUID | None = None
    amount: int | None = None
    terms: ApprovalRequirement | None = None
    state: RowState = "WAITING"
    problem: RowProblem | None = None

    @property
    def owner(self) -> UUID | None:
        """The customer whose key its content is sealed with, if it names one."""
        return None if self.content is None else msgspec.json.decode(self.content, type=_Owned).customer_id


class _Owned(msgspec.Struct):
    customer_id: UUID | None = None


class RowResult(NamedTuple):
    """The result of a row: COMPLETED, or FAILED for a reason."""

    number: int
    problem: RowProblem | None = None
