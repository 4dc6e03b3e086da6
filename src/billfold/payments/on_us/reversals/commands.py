"""Requests to pay an on-us transfer back, and their commands."""

from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from billfold.ledger.commands import Command, Reference
from billfold.platform.database.rows import Row

EXPIRY_JOB: Final = "on_us.reversal_expiry"
"""Ends a request that nobody answered; its object is the request."""


class ReversalStatus(StrEnum):
    """REQUESTED until the payee pays back or declines, the requester cancels, or the time has run out."""

    REQUESTED = "REQUESTED"
    ACCEPTED = "ACCEPTED"
    DECLINED = "DECLINED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"


class ReversalRequestRow(Row, frozen=True, kw_only=True):
    """A request as stored, with the customer that is asked. The transfer `reversed_by` paid `transfer_id` back."""

    table = "reversal_request"
    key_column = "reversal_id"
    noun = "reversal request"
    fingerprinted = True
    keeps_former = True

    customer_id: UUID
    reversal_id: UUID
    requester_id: UUID
    transfer_id: UUID
    amount: int
    reason: str | None
    status: ReversalStatus
    reversed_by: UUID | None
    expires_at: datetime
    created_at: datetime
    updated_at: datetime


class RequestReversal(Command, frozen=True, kw_only=True):
    """Ask the payee of a transfer for `amount` cents of it, all that is left if None.

    `customers` is (payee, payer). References the transfer.
    """

    reference_kinds = (Reference.ON_US_TRANSFER,)
    reversal_id: UUID
    transfer_id: UUID
    amount: int | None
    reason: str | None = None


class EndReversalRequest(Command, frozen=True, kw_only=True):
    """Decline, cancel or expire a request; `customers` is (payee, payer). References the request."""

    reference_kinds = (Reference.ON_US_TRANSFER,)
    reversal_id: UUID
    status: ReversalStatus
