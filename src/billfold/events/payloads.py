"""Payloads of events about policies, disputes and reversals."""

from typing import Annotated
from uuid import UUID

import msgspec

Cents = Annotated[int, msgspec.Meta(description="USD cents.")]


class CardDisputePayload(msgspec.Struct, frozen=True, kw_only=True):
    """A dispute of a payment by card, and the status it has now."""

    dispute_id: UUID
    card_id: UUID
    amount: Cents
    status: str


class ReversalRequestPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A request to pay an on-us transfer back, as both customers see it."""

    reversal_request_id: UUID
    on_us_id: UUID
    amount: Cents
    status: str


class PolicyPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The policy of a customer as proposed or approved by an authorization request, and its version."""

    authorization_request_id: UUID
    version: int
