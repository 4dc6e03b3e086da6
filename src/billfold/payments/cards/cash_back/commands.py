"""The command that gives cash back. References the card."""

from uuid import UUID

from billfold.ledger.commands import Command, Reference


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
