"""Commands about the money of cards. All reference the card, and the authorization or purchase that they are about."""

from datetime import date, datetime
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.payments.cards.authorizations.types import (
    EntryMode,
    Merchant,
    authorization_id_of,
    spending_id_of,
)

_SEEN = (Reference.CARD_AUTHORIZATION,)


def references_of(card_id: UUID, network_reference: str | None = None, *others: UUID) -> tuple[UUID, ...]:
    """Return what a command about a card references: itself, its limits, and the authorization of a purchase."""
    own = () if network_reference is None else (authorization_id_of(card_id, network_reference),)
    return (card_id, spending_id_of(card_id), *own, *others)


class CardMessage(Command, frozen=True, kw_only=True):
    """A message of the card processor about one purchase; its key is the id of the message."""

    reference_kinds = _SEEN
    needs_identifiers = False

    card_id: UUID
    network_reference: str
    merchant: Merchant
    entry_mode: EntryMode | None = None
    is_preauthorization: bool = False


class CardRequest(CardMessage, frozen=True, kw_only=True):
    """Wants so many cents, `cash` of them paid out in cash; the flags say what the terminal can do with less."""

    amount: int
    cash: int = 0
    is_partial_allowed: bool = False
    is_purchase_only_allowed: bool = False


class AuthorizeCard(CardRequest, frozen=True, kw_only=True):
    """Decide about a purchase of so many cents; an advice has been decided by others."""

    is_advice: bool = False


class IncrementAuthorization(CardRequest, frozen=True, kw_only=True):
    """Decide about so many cents more for a purchase that is held."""


class ReverseAuthorization(CardMessage, frozen=True, kw_only=True):
    """Release so many cents of a hold; None: all. `is_late`: the bank's own approval came too late."""

    amount: int | None = None
    is_late: bool = False


class ExpireAuthorization(CardMessage, frozen=True, kw_only=True):
    """Release a hold whose time is over by `due`."""

    due: datetime


class InquireBalance(Command, frozen=True, kw_only=True):
    """Ask what a card could pay now."""

    reference_kinds = (Reference.CARD,)
    needs_identifiers = False
    is_recorded = False

    card_id: UUID
    entry_mode: EntryMode | None = None


class CardRecord(Command, frozen=True, kw_only=True):
    """A record of the processor's settlement. `amount` and what the bank earns of it are cents."""

    reference_kinds = _SEEN
    needs_identifiers = False

    record_id: UUID
    card_id: UUID
    amount: int
    settles_on: date
    network_reference: str | None = None
    interchange_cents: int = 0
    entry_mode: EntryMode | None = None
    is_preauthorization: bool = False


class ClearCard(CardRecord, frozen=True, kw_only=True):
    """Take the money of a purchase. After the final record nothing more is held for it."""

    merchant: Merchant
    is_final: bool = True


class RefundCard(CardRecord, frozen=True, kw_only=True):
    """Credit what a merchant gives back."""

    merchant: Merchant


class ChargeBack(CardRecord, frozen=True, kw_only=True):
    """Credit a disputed purchase. References also the purchase."""

    original_id: UUID


class Represent(CardRecord, frozen=True, kw_only=True):
    """Take back what was charged back. References also the purchase."""

    original_id: UUID


class SetCardLimits(Command, frozen=True, kw_only=True):
    """Set what a card may spend in a day, in cents: in all (None: no limit), and by merchant category."""

    reference_kinds = _SEEN
    audit = AuditedAction("card", "limited", fields=("daily", "categories"))
    needs_identifiers = False

    card_id: UUID
    daily: int | None
    categories: dict[str, int]
