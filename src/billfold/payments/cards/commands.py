"""Commands about cards and their orders."""

from datetime import date
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.payments.cards.types import CardStatus, CardType, ClosureReason, MagstripeStatus


class CreateVirtualCard(Command, frozen=True, kw_only=True):
    """Record a virtual card that the processor has issued."""

    audit = AuditedAction("card", "created", fields=("pocket_id", "last_four"))
    needs_identifiers = False

    card_id: UUID
    pocket_id: UUID
    name: str
    last_four: str
    expires_on: date


class OrderCard(Command, frozen=True, kw_only=True):
    """Order a physical card. `shipping_address` is sealed."""

    audit = AuditedAction("card_order", "created", fields=("pocket_id", "name_on_card"))
    needs_identifiers = False

    card_order_id: UUID
    pocket_id: UUID
    name_on_card: str
    shipping_address: str


class PlaceCardOrder(Command, frozen=True, kw_only=True):
    """Record that the processor has an order. References the order."""

    reference_kinds = (Reference.CARD,)
    needs_identifiers = False

    card_order_id: UUID


class ProduceCard(Command, frozen=True, kw_only=True):
    """Record the card that the processor has made of an order. References the order."""

    reference_kinds = (Reference.CARD,)
    needs_identifiers = False

    card_order_id: UUID
    card_id: UUID
    last_four: str
    expires_on: date


class SetCardStatus(Command, frozen=True, kw_only=True):
    """Switch a card ONLINE or OFFLINE, or close it. References the card, and its order."""

    reference_kinds = (Reference.CARD,)
    audit = AuditedAction("card", "updated", fields=("status", "magstripe_status"))
    needs_identifiers = False

    card_id: UUID
    status: CardStatus
    magstripe_status: MagstripeStatus = MagstripeStatus.OFF


class RecordPin(Command, frozen=True, kw_only=True):
    """Record that the processor has the PIN of a card. References the card."""

    reference_kinds = (Reference.CARD,)
    audit = AuditedAction("card", "pin_set")
    needs_identifiers = False

    card_id: UUID


class CloseCard(Command, frozen=True, kw_only=True):
    """Close a card; `only` refuses the other type. References the card."""

    reference_kinds = (Reference.CARD,)
    audit = AuditedAction("card", "closed", fields=("reason", "lost_stolen_on"))
    needs_identifiers = False

    card_id: UUID
    reason: ClosureReason | None = None
    lost_stolen_on: date | None = None
    only: CardType | None = None


class CloseCardsOfPocket(Command, frozen=True, kw_only=True):
    """Close the cards of a Pocket that has been closed. References them."""

    reference_kinds = (Reference.CARD,)
    needs_identifiers = False

    pocket_id: UUID


class FreezeCard(Command, frozen=True, kw_only=True):
    """Freeze a card, or unfreeze it: what only the bank does. References the card."""

    reference_kinds = (Reference.CARD,)
    audit = AuditedAction("card", lambda c: "frozen" if c.is_frozen else "unfrozen", fields=("reason",))
    needs_identifiers = False

    card_id: UUID
    is_frozen: bool
    reason: str | None = None
