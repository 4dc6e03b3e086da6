"""Checks of cards and card orders: created by a command, found in the directory; their columns have fingerprints."""

from billfold.ledger.checks import TrackedTable, creation_checks, directory_checks
from billfold.payments.cards.commands import CreateVirtualCard, OrderCard, ProduceCard
from billfold.platform.database.checks import Check

_CARD = TrackedTable("card", "card_id", (CreateVirtualCard, ProduceCard), created_at="created_at")
_ORDER = TrackedTable("card_order", "card_order_id", (OrderCard,), created_at="created_at")
CHECKS = (
    *creation_checks(_CARD),
    *directory_checks(_CARD),
    Check(
        "card",
        "its partner is not that of its Pocket",
        """SELECT c.customer_id, c.card_id FROM card c JOIN pocket p USING (customer_id, pocket_id)
            WHERE c.partner_id <> p.partner_id""",
    ),
    *creation_checks(_ORDER),
    *directory_checks(_ORDER),
    Check(
        "card_order",
        "its card is another's, or missing",
        """SELECT o.customer_id, o.card_order_id FROM card_order o
            WHERE o.card_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM card c
              WHERE c.customer_id = o.customer_id AND c.card_id = o.card_id
                AND c.card_order_id = o.card_order_id AND c.pocket_id = o.pocket_id)""",
    ),
)
COUNTED = ("card", "card_order")
