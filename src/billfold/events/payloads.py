"""What an event says besides its envelope: one shape for each family of kinds.

A payload only gets more fields. One that would lose or change a field is a new kind.
"""

from datetime import date
from typing import Annotated
from uuid import UUID

import msgspec

Account = Annotated[UUID, msgspec.Meta(description="The Pocket whose account it is.")]
Cents = Annotated[int, msgspec.Meta(description="USD cents.")]


class ApplicationPayload(msgspec.Struct, frozen=True, kw_only=True):
    """An application and nothing of what it says."""

    application_id: UUID


class CardStatusPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A card and the status it has now."""

    card_id: UUID
    status: str


class CardTransactionPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A payment by card."""

    card_id: UUID
    amount: Cents
    account_id: Account


class AchPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An ACH entry. `ach_id` is left out where the entry has none."""

    service_account_id: Account
    ach_id: UUID | msgspec.UnsetType = msgspec.UNSET


class WirePayload(msgspec.Struct, frozen=True, kw_only=True):
    """A wire."""

    wire_id: UUID
    service_account_id: Account


class OnUsPayload(msgspec.Struct, frozen=True, kw_only=True):
    """An on-us transfer, as its payer sees it."""

    on_us_id: UUID
    origin_account_id: Account
    destination_account_id: Account


class OnUsReceivedPayload(msgspec.Struct, frozen=True, kw_only=True):
    """An on-us transfer, as whoever is paid sees it."""

    on_us_id: UUID
    transaction_activity_id: Annotated[
        UUID, msgspec.Meta(description="The `id` of the transaction of the receiving Pocket.")
    ]
    receiving_pocket_id: UUID


class CryptoPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer over a blockchain."""

    crypto_transfer_id: UUID
    service_account_id: Account


class MaturityPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A trade of the activity MATURITY."""

    trade_id: UUID
    pocket_id: UUID
    cusip: Annotated[str, msgspec.Meta(min_length=9, max_length=9)]


class SettlementPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A Pocket in which something was to settle on `settlement_date`, and the open day on which it settles now."""

    pocket_id: UUID
    settlement_date: date
    moved_to: date


class ReportPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for a report. `report_id` is left out until there is a report."""

    report_request_id: UUID
    report_id: UUID | msgspec.UnsetType = msgspec.UNSET


class DailyRootPayload(msgspec.Struct, frozen=True, kw_only=True):
    """What the bank has signed of a day: `root` is a JWS that the published keys of documents verify."""

    day: date
    root: str
