"""Transactions: one variant per type, and their older form in v1."""

from datetime import datetime
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.accounts.notes.types import ShownNote
from billfold.accounts.transactions.settlement import TransactionRow, settles_at
from billfold.http.schemas import Amount, one_of, usd
from billfold.platform.calendars import Calendars


class Shared(ShownNote, kw_only=True):
    """The fields of every variant."""

    id: UUID
    transaction_id: UUID
    description: str
    amount: Amount
    time_booked: datetime
    time_settled: datetime | None
    status: Annotated[str, one_of("BOOKED", "SETTLED")]
    title: str
    direction: Annotated[str, one_of("DEBIT", "CREDIT")]
    pocket_id: UUID
    customer_id: UUID
    remittance_information: dict[str, Any] | None

    @property
    def other_party(self) -> str:
        """Return the name of who paid or was paid; empty if there is none besides the title."""
        for name in ("counterparty_name", "company_name", "counterparty"):
            if isinstance(found := getattr(self, name, None), str) and found:
                return found
        return ""

    @property
    def headline(self) -> str:
        """Return what people know a transaction by: the other party, else the title."""
        return self.other_party or self.title


class AchActivity(Shared, kw_only=True, tag_field="type", tag="ACH"):
    """An ACH entry."""

    company_name: str = ""
    company_entry_description: str | None = None
    individual_identification_number: str | None = None
    trace_number: str | None = None
    ach_id: UUID | None = None
    ach_direction: Annotated[str, one_of("RECEIVING", "ORIGINATION")] = "RECEIVING"
    portal_id: UUID | None = None
    object_type: Literal["ACHTransactionActivity"] = "ACHTransactionActivity"

    @property
    @override
    def headline(self) -> str:
        """Return who originated a received entry; the company of an originated one is the customer itself."""
        originated = self.ach_direction == "ORIGINATION"
        return (self.company_entry_description if originated else self.other_party) or self.title


class WireActivity(Shared, kw_only=True, tag_field="type", tag="WIRE"):
    """A wire."""

    wire_type: Annotated[str, one_of("PAYMENT", "REVERSAL", "RETURN")] = "PAYMENT"
    original_wire_id: UUID | None = None
    wire_id: UUID | None = None
    reference_number: str | None = None
    end_to_end_identification: str | None = None
    uetr: str | None = None
    imad: str | None = None
    omad: str | None = None
    counterparty_name: str | None = None
    counterparty_id: UUID | None = None
    portal_id: UUID | None = None
    object_type: Literal["WireTransactionActivity"] = "WireTransactionActivity"


class CardActivity(Shared, kw_only=True, tag_field="type", tag="CARD"):
    """A card payment."""

    card_id: UUID | None = None
    counterparty: str | None = None
    location: dict[str, Any] | None = None
    terminal_id: str | None = None
    merchant_type: str | None = None
    issue_id: str | None = None
    pre_authorization: bool = False
    merchant_category_code: str | None = None
    object_type: Literal["CardTransactionActivity"] = "CardTransactionActivity"


class OnUsActivity(Shared, kw_only=True, tag_field="type", tag="ON_US"):
    """A transfer between Pockets of this bank."""

    on_us_transfer_id: UUID
    on_us_transfer_type: Annotated[
        str, one_of("PARTNER_CUSTOMER_FUNDING", "PARTNER_CUSTOMER_DEFUNDING", "INTERNAL_REALLOCATION", "PEER_TO_PEER")
    ]
    reverses_id: UUID | None = None
    """The transfer that it pays back."""
    source: str | None = None
    target: str | None = None
    counterparty: dict[str, Any] | None = None
    end_to_end_identification: str | None = None
    object_type: Literal["OnUsTransactionActivity"] = "OnUsTransactionActivity"


class FeeActivity(Shared, kw_only=True, tag_field="type", tag="FEE"):
    """A fee."""

    fee_type: Annotated[str, one_of("AUM_FEE", "WIRE_FEE", "SAME_DAY_FEE")]
    related_transaction_id: UUID | None = None
    object_type: Literal["FeeTransactionActivity"] = "FeeTransactionActivity"

    @property
    @override
    def headline(self) -> str:
        """Return what the fee is for, like "Fee for June 2025"."""
        return self.description


class CreditActivity(Shared, kw_only=True, tag_field="type", tag="CREDIT"):
    """A credit from the bank."""

    credit_type: Annotated[str, one_of("CASH_BACK", "PROMOTION", "ADJUSTMENT")] = "ADJUSTMENT"
    period: str | None = None
    card_id: UUID | None = None
    object_type: Literal["CreditTransactionActivity"] = "CreditTransactionActivity"


class GenericActivity(Shared, kw_only=True, tag_field="type", tag="GENERIC"):
    """Anything else."""

    object_type: Literal["GenericTransactionActivity"] = "GenericTransactionActivity"


class SweepActivity(Shared, kw_only=True, tag_field="type", tag="SWEEP"):
    """Between the bank account and the brokerage account of one Pocket."""

    trade_id: UUID | None = None
    sweep_direction: Annotated[str, one_of("TO_BROKERAGE", "TO_BANK")] = "TO_BROKERAGE"
    object_type: Literal["SweepTransactionActivity"] = "SweepTransactionActivity"


Transaction = (
    AchActivity
    | WireActivity
    | CardActivity
    | OnUsActivity
    | FeeActivity
    | CreditActivity
    | GenericActivity
    | SweepActivity
)
_VARIANTS: dict[str, Any] = {variant.__struct_config__.tag: variant for variant in get_args(Transaction)}
_FIELDS = {
    kind: frozenset(variant.__struct_fields__) - frozenset(Shared.__struct_fields__)
    for kind, variant in _VARIANTS.items()
}

V1_TYPES = {
    "ACH": ("ACH",),
    "WIRE": ("WIRE",),
    "CARD": ("CARD",),
    "ON_US": ("ON_US",),
    "WIRE_FEE": ("FEE:WIRE_FEE",),
    "CASH_BACK": ("CREDIT:CASH_BACK",),
    "GENERIC": ("GENERIC", "FEE:AUM_FEE", "CREDIT:PROMOTION", "CREDIT:ADJUSTMENT"),
}
"""Each type of v1 and its current type. Types without a v1 name are GENERIC there."""
_V1_TYPE = {v2_type: v1_type for v1_type, kinds in V1_TYPES.items() for v2_type in kinds}


class V1Transaction(msgspec.Struct, kw_only=True):
    """A transaction of v1; `details` holds one block named after its type."""

    id: UUID
    service_account_id: UUID
    amount: Amount
    timestamp: datetime
    status: Literal["PENDING", "COMPLETED"]
    details: dict[str, Any]
    object_type: Literal["Transaction"] = "Transaction"


def render_transaction(row: TransactionRow, now: datetime, calendars: Calendars) -> Transaction:
    """Return a transaction for display, v2. SETTLED from its instant on."""
    details = msgspec.json.decode(row.details)
    at = settles_at(row, calendars)
    settled = now >= at
    fields = _FIELDS[row.type]
    variant: Transaction = _VARIANTS[row.type](
        id=row.activity_id,
        transaction_id=row.transaction_id,
        description=row.description,
        amount=usd(row.amount),
        time_booked=row.booked_at,
        time_settled=at if settled else None,
        status="SETTLED" if settled else "BOOKED",
        title=row.title,
        direction=row.direction,
        pocket_id=row.pocket_id,
        customer_id=row.customer_id,
        remittance_information=msgspec.json.decode(row.remittance or "null"),
        external_id=details.get("external_id"),
        metadata=details.get("metadata", {}),
        **{name: value for name, value in details.items() if name in fields},
    )
    return variant


def render_v1_transaction(row: TransactionRow, now: datetime, calendars: Calendars) -> V1Transaction:
    """Return the same transaction in its older form."""
    block = {
        name: value
        for name, value in msgspec.json.decode(row.details).items()
        if name not in ShownNote.__struct_fields__
    }
    kind = block.get("fee_type") or block.get("credit_type")
    v1_type = _V1_TYPE.get(f"{row.type}:{kind}" if kind else row.type, "GENERIC")
    details: dict[str, Any] = {
        "title": row.title,
        "transaction_type": v1_type,
        "sub_title": row.description,
        "transaction_type_title": row.title,
        "direction": row.direction,
    }
    if v1_type != "GENERIC":
        details[f"{v1_type.lower()}_transaction"] = block
    return V1Transaction(
        id=row.activity_id,
        service_account_id=row.pocket_id,
        amount=usd(row.amount),
        timestamp=row.booked_at,
        status="COMPLETED" if now >= settles_at(row, calendars) else "PENDING",
        details=details,
    )
