"""The command that gives cash back. References the card."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from billfold.ledger.commands import Command, Reference
from billfold.platform.database.rows import Row

CASH_BACK_JOB: Final = "card.cash_back"
"""Gives the cash back of a month that is over; its object is the partner."""
NEVER_PURCHASES: Final = ("6010", "6011")
"""Categories of cash, over the counter and from a machine (ISO 18245): no rule counts them."""
BASIS_POINTS_MAX: Final = 1_000


class CashBackRule(msgspec.Struct, frozen=True, kw_only=True):
    """A partner's rule from a month on. `customer_id` is the partner's own; `cap` is per card and month."""

    customer_id: UUID
    version: int
    partner_id: UUID
    from_month: str
    basis_points: int
    excluded_categories: list[str]
    cap: int | None
    created_at: datetime


class CardMonth(msgspec.Struct, frozen=True, kw_only=True):
    """What a card paid and got back in a month, booked by its end.

    `carried_in`, zero or below, is what refunds of the customer's other cards, and of months before, take off it.
    """

    customer_id: UUID
    card_id: UUID
    purchases: int
    refunds: int
    carried_in: int


class CashBackRow(Row, frozen=True, kw_only=True):
    """Cash back of a card for a month; without `entry_no` nothing was to be given, or no Pocket was open to get it."""

    table = "cash_back"
    key_column = "cash_back_id"
    fingerprinted = True

    customer_id: UUID
    cash_back_id: UUID
    card_id: UUID
    period: str
    rule_version: int
    purchases: int
    refunds: int
    carried_in: int
    amount: int
    pocket_id: UUID | None
    entry_no: int | None
    created_at: datetime


class GiveCashBack(Command, frozen=True, kw_only=True):
    """Give a card's cash back for a month, by a version of the partner's rule. Amounts are cents."""

    reference_kinds = (Reference.CARD,)
    needs_identifiers = False

    cash_back_id: UUID
    card_id: UUID
    period: str
    rule_version: int
    basis_points: int
    cap: int | None
    purchases: int
    refunds: int
    carried_in: int
