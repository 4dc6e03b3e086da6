"""The kinds of events: their visibility, payload, cause, and an example.

A flow raises a kind by its constant with a payload of its type; the type checker enforces that
the two belong together. Kinds whose cause is not built yet are listed in `docs/unraised.toml`.
"""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any
from uuid import UUID

import msgspec

from billfold.events.payloads import CardDisputePayload, Cents, PolicyPayload, ReversalRequestPayload
from billfold.ledger.types import EventKind, Payload

Account = Annotated[UUID, msgspec.Meta(description="The Pocket whose account it is.")]


class ApplicationPayload(msgspec.Struct, frozen=True, kw_only=True):
    """An application without its contents."""

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
    """An ACH entry. `ach_id` is omitted if the entry has none."""

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
    """An on-us transfer, as its payee sees it."""

    on_us_id: UUID
    transaction_activity_id: Annotated[
        UUID, msgspec.Meta(description="The `id` of the transaction of the receiving Pocket.")
    ]
    receiving_pocket_id: UUID


class HoldPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A hold on a Pocket: the cents placed, captured or let go, and those that it still keeps."""

    hold_id: UUID
    pocket_id: UUID
    amount: Cents
    remaining: Cents


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
    """A Pocket with trades or payments due on `settlement_date`, and the open day on which they settle now."""

    pocket_id: UUID
    settlement_date: date
    moved_to: date


class SeriesPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A series of transfers and its state: ACTIVE, PAUSED, CANCELLED or ENDED."""

    series_id: UUID
    state: str


class SeriesRunPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The run of a series for a day of its rule, which is a transfer request. `reason` says why nothing moved."""

    series_id: UUID
    transfer_request_id: UUID
    run_on: date
    reason: str | msgspec.UnsetType = msgspec.UNSET


class PocketPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A Pocket and the status it has now."""

    pocket_id: UUID
    status: str


class PortalPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A portal and the status it has now."""

    portal_id: UUID
    pocket_id: UUID
    status: str


class CounterpartyPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A counterparty and the status it has now."""

    counterparty_id: UUID
    status: str


class CustomerPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A customer and the status it has now."""

    customer_id: UUID
    status: str


class LimitsPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A customer whose limits are to be read again."""

    customer_id: UUID


class CardPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A card."""

    card_id: UUID


class RequestPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A transfer request and the status it has now. `reason` says why an approved one could not be executed."""

    transfer_request_id: UUID
    status: str
    reason: str | msgspec.UnsetType = msgspec.UNSET


class MemberPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a team, with the role and the status they have now."""

    member_id: UUID
    role: str
    status: str


class StatementPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A statement."""

    statement_id: UUID


class BatchPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that has ended: how many of its rows were carried out, and how many were not."""

    batch_id: UUID
    completed: int
    failed: int


class ReportPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for a report. `report_id` is omitted until there is a report."""

    report_request_id: UUID
    report_id: UUID | msgspec.UnsetType = msgspec.UNSET


class DailyRootPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A daily root that the bank has signed: `root` is a JWS that the published keys of documents verify."""

    day: date
    root: str


_CARD = UUID("3f6a2b7e-52f0-4c6e-9a57-1d0c8b7e4a10")
_POCKET = UUID("8c2e6f1a-0d3b-4f7e-8a9c-5b1d2e3f4a60")
_OTHER = UUID("b7d1c3e5-9f80-4a2b-8c4d-6e5f7a8b9c01")
_TRANSFER = UUID("5d4c3b2a-1f0e-4d9c-8b7a-697867564534")
_ACTIVITY = UUID("c9e8d7f6-a5b4-4c3d-8e2f-1a0b9c8d7e6f")

_application = ApplicationPayload(application_id=_TRANSFER)
_ach = AchPayload(service_account_id=_POCKET, ach_id=_TRANSFER)
_wire = WirePayload(wire_id=_TRANSFER, service_account_id=_POCKET)
_on_us = OnUsPayload(on_us_id=_TRANSFER, origin_account_id=_POCKET, destination_account_id=_OTHER)
_on_us_received = OnUsReceivedPayload(on_us_id=_TRANSFER, transaction_activity_id=_ACTIVITY, receiving_pocket_id=_OTHER)
_crypto = CryptoPayload(crypto_transfer_id=_TRANSFER, service_account_id=_POCKET)
_card_transaction = CardTransactionPayload(card_id=_CARD, amount=12_50, account_id=_POCKET)
_hold = HoldPayload(hold_id=_TRANSFER, pocket_id=_POCKET, amount=125_00, remaining=0)
_maturity = MaturityPayload(trade_id=_ACTIVITY, pocket_id=_POCKET, cusip="912797PX6")
_settlement = SettlementPayload(pocket_id=_POCKET, settlement_date=date(2025, 6, 5), moved_to=date(2025, 6, 6))
_report_completed = ReportPayload(report_request_id=_TRANSFER, report_id=_ACTIVITY)
_daily_root = DailyRootPayload(
    day=date(2025, 6, 2), root="eyJhbGciOiJFZERTQSJ9.eyJkYXkiOiIyMDI1LTA2LTAyIn0.c2lnbmF0dXJl"
)
_report_failed = ReportPayload(report_request_id=_TRANSFER)
_series_run = SeriesRunPayload(series_id=_OTHER, transfer_request_id=_TRANSFER, run_on=date(2025, 6, 2))


def _card(status: str) -> CardStatusPayload:
    return CardStatusPayload(card_id=_CARD, status=status)


def _for_customers(name: str, meaning: str, example: Payload) -> EventKind[Payload]:
    return EventKind(name, meaning, example, customer=True)


def _for_both(name: str, meaning: str, example: Payload) -> EventKind[Payload]:
    return EventKind(name, meaning, example, partner=True, customer=True)


APPLICATION_APPROVED = _for_both("application.approved", "An application was approved.", _application)
APPLICATION_REJECTED = _for_both("application.rejected", "An application was rejected.", _application)
APPLICATION_MANUAL_REVIEW = _for_both(
    "application.manual_review", "An application waits for manual review.", _application
)
APPLICATION_DOCUMENTS_NEEDED = _for_both(
    "application.documents_needed", "An application waits for documents.", _application
)
CARD_OPEN = _for_both("card.status.open", "A card can be used.", _card("ONLINE"))
CARD_LOCKED = _for_both("card.status.locked", "A card was switched off temporarily.", _card("OFFLINE"))
CARD_FROZEN = _for_both("card.status.frozen", "The bank froze a card.", _card("FROZEN"))
CARD_CLOSED = _for_both("card.status.closed", "A card was closed permanently.", _card("CLOSED"))
CARD_APPROVED = _for_both("card.transaction.approved", "A payment by card was approved.", _card_transaction)
CARD_REJECTED = _for_both("card.transaction.rejected", "A payment by card was declined.", _card_transaction)
CARD_ON_HOLD = _for_both("card.transaction.on_hold", "Money is held for a payment by card.", _card_transaction)
CARD_REVERSED = _for_both(
    "card.transaction.reversed", "Money held for a payment by card was released.", _card_transaction
)
ACH_IN_SUCCESS = _for_both("transfers.ach.in.success", "An incoming ACH entry was booked.", _ach)
ACH_IN_REJECTED = _for_both("transfers.ach.in.rejected", "An incoming ACH entry was rejected, or returned later.", _ach)
ACH_OUT_SENT = _for_both("transfers.ach.out.sent", "An outgoing ACH entry was sent to the network.", _ach)
ACH_OUT_SUCCESS = _for_both("transfers.ach.out.success", "An outgoing ACH entry is final.", _ach)
ACH_OUT_REJECTED = _for_both("transfers.ach.out.rejected", "An outgoing ACH entry was rejected or came back.", _ach)
WIRE_OUT_QUEUED = _for_both("transfers.wire.out.queued", "An outgoing wire waits for funds of the bank.", _wire)
WIRE_OUT_PROCESSING = _for_both("transfers.wire.out.processing", "An outgoing wire is on its way.", _wire)
WIRE_OUT_SUCCESS = _for_both("transfers.wire.out.success", "An outgoing wire has settled.", _wire)
WIRE_OUT_REJECTED = _for_both("transfers.wire.out.rejected", "An outgoing wire was rejected and refunded.", _wire)
WIRE_IN_SUCCESS = _for_both("transfers.wire.in.success", "An incoming wire was booked.", _wire)
WIRE_IN_REJECTED = _for_both("transfers.wire.in.rejected", "An incoming wire was rejected and returned.", _wire)
CARD_DISPUTE_UPDATED = _for_both(
    "card.dispute.updated",
    "A dispute of a payment by card was opened, credited provisionally, decided or withdrawn.",
    CardDisputePayload(dispute_id=_TRANSFER, card_id=_CARD, amount=12_50, status="OPENED"),
)
ON_US_PROCESSING = _for_both("transfers.on-us.processing", "An on-us transfer was accepted for later.", _on_us)
ON_US_SUCCESS = _for_both(
    "transfers.on-us.success", "An on-us transfer was carried out, between customers or between Pockets of one.", _on_us
)
ON_US_REJECTED = _for_both("transfers.on-us.rejected", "An on-us transfer was rejected; nothing moved.", _on_us)
ON_US_REVERSAL_UPDATED = _for_both(
    "transfers.on-us.reversal.updated",
    "A request to pay an on-us transfer back was made or answered; only its payee is told of a new one.",
    ReversalRequestPayload(reversal_request_id=_OTHER, on_us_id=_TRANSFER, amount=250_00, status="REQUESTED"),
)
ON_US_RECEIVED = _for_both("transfers.on-us.received", "Another customer paid by on-us transfer.", _on_us_received)
CRYPTO_IN_SUCCESS = _for_both("transfers.crypto.deposit.success", "A crypto deposit was booked.", _crypto)
CRYPTO_OUT_PROCESSING = _for_both(
    "transfers.crypto.withdrawal.processing", "A crypto withdrawal was accepted.", _crypto
)
CRYPTO_OUT_SUCCESS = _for_both("transfers.crypto.withdrawal.success", "A crypto withdrawal was carried out.", _crypto)
CRYPTO_OUT_REJECTED = _for_both("transfers.crypto.withdrawal.rejected", "A crypto withdrawal was rejected.", _crypto)
SERIES_UPDATED = _for_customers(
    "transfers.series.updated",
    "A series of transfers became active, was paused or cancelled, or has ended.",
    SeriesPayload(series_id=_OTHER, state="PAUSED"),
)
SERIES_RUN = _for_customers(
    "transfers.series.run", "A transfer of a series was made, or waits for an approval of its own.", _series_run
)
SERIES_RUN_SKIPPED = _for_customers(
    "transfers.series.run.skipped",
    "A transfer of a series was left out: it is paused, the day closed or over, or there is nothing to move.",
    msgspec.structs.replace(_series_run, reason="CLOSED_DAY"),
)
SERIES_RUN_FAILED = _for_customers(
    "transfers.series.run.failed",
    "A transfer of a series could not be made, and nothing moved.",
    msgspec.structs.replace(_series_run, reason="INSUFFICIENT_FUNDS"),
)
BATCH_COMPLETED = _for_both(
    "batches.completed",
    "All rows of a batch have a result.",
    BatchPayload(batch_id=_TRANSFER, completed=998, failed=2),
)
BATCH_FAILED = _for_both(
    "batches.failed",
    "An atomic batch was refused: none of its rows was carried out.",
    BatchPayload(batch_id=_TRANSFER, completed=0, failed=1000),
)
HOLD_CREATED = _for_both(
    "hold.created",
    "A hold keeps money in a Pocket.",
    HoldPayload(hold_id=_TRANSFER, pocket_id=_POCKET, amount=125_00, remaining=125_00),
)
HOLD_CAPTURED = _for_both("hold.captured", "A payment has used an amount of the hold that it names.", _hold)
HOLD_RELEASED = _for_both("hold.released", "What a hold still kept was let go.", _hold)
HOLD_EXPIRED = _for_both("hold.expired", "A hold has expired; what it still kept was let go.", _hold)
TRADE_MATURITY = _for_both("trades.maturity", "A Treasury bill of a Pocket matured and was paid back.", _maturity)
SETTLEMENT_MOVED = _for_both(
    "settlements.moved",
    "A day was declared closed, or open again: the trades and payments of a Pocket that were to settle on it move.",
    _settlement,
)
_pocket = PocketPayload(pocket_id=_POCKET, status="OPEN")
_portal = PortalPayload(portal_id=_OTHER, pocket_id=_POCKET, status="OPEN")
_counterparty = CounterpartyPayload(counterparty_id=_OTHER, status="LINKED")
POCKET_CREATED = _for_both("pocket.created", "A Pocket was opened.", _pocket)
POCKET_UPDATED = _for_both("pocket.updated", "A Pocket was changed, frozen, unfrozen or closed.", _pocket)
PORTAL_CREATED = _for_both("portal.created", "A portal was opened, by itself or with its Pocket.", _portal)
PORTAL_UPDATED = _for_both("portal.updated", "A portal was changed or closed.", _portal)
COUNTERPARTY_CREATED = _for_both("counterparty.created", "A counterparty was added.", _counterparty)
COUNTERPARTY_UPDATED = _for_both("counterparty.updated", "The status of a counterparty has changed.", _counterparty)
CUSTOMER_UPDATED = _for_both(
    "customer.updated",
    "A customer was frozen, unfrozen or closed.",
    CustomerPayload(customer_id=_OTHER, status="FROZEN"),
)
CUSTOMER_LIMITS_UPDATED = _for_both(
    "customer.limits.updated",
    "A feature of a customer was switched on or off; switching it for all of a partner's customers raises none.",
    LimitsPayload(customer_id=_OTHER),
)
CARD_LIMITS_UPDATED = _for_both("card.limits.updated", "The limits of a card were changed.", CardPayload(card_id=_CARD))
REQUEST_UPDATED = _for_customers(
    "transfers.request.updated",
    "A transfer request was made, approved, denied, cancelled, has expired, or could not be executed.",
    RequestPayload(transfer_request_id=_TRANSFER, status="PENDING"),
)
_policy = PolicyPayload(authorization_request_id=_OTHER, version=2)
POLICY_PROPOSED = _for_customers("policy.proposed", "Another policy was proposed.", _policy)
POLICY_UPDATED = _for_customers("policy.updated", "Another policy is in force.", _policy)
MEMBER_UPDATED = _for_customers(
    "team.member.updated",
    "The role or the status of a member was changed.",
    MemberPayload(member_id=_OTHER, role="APPROVER", status="ACTIVE"),
)
STATEMENT_AVAILABLE = _for_both(
    "statements.available", "A statement can be downloaded.", StatementPayload(statement_id=_OTHER)
)
REPORT_COMPLETED = _for_both("reports.completed", "A report is ready.", _report_completed)
REPORT_FAILED = _for_both("reports.failed", "A report could not be created.", _report_failed)
DAILY_ROOT_PUBLISHED = EventKind(
    "proofs.daily-root.published",
    "The bank has signed what it owed at the close of a day.",
    _daily_root,
    partner=True,
)

KINDS: Mapping[str, EventKind[Any]] = {
    each.name: each
    for each in sorted(
        (each for each in list(globals().values()) if isinstance(each, EventKind)), key=lambda each: each.name
    )
}
"""All kinds, by name, in the order of names."""

PARTNER_KINDS = tuple(each.name for each in KINDS.values() if each.partner)
"""Event types that a partner can receive through the Partner API."""
CUSTOMER_KINDS = tuple(each.name for each in KINDS.values() if each.customer)
"""Event types that a customer can receive through the Customer API."""
