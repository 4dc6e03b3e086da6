"""Cards in a simulated history: purchases whose messages and records arrive in any order, late or twice."""

from datetime import date, timedelta
from typing import Any
from uuid import UUID

from tests.simulation.operating import new_id, of_a_pocket

from billfold.payments.cards.authorizations.commands import (
    AuthorizeCard,
    ChargeBack,
    ClearCard,
    ExpireAuthorization,
    IncrementAuthorization,
    Merchant,
    RefundCard,
    Represent,
    ReverseAuthorization,
    references_of,
)
from billfold.payments.cards.commands import CreateVirtualCard

SHOPS = tuple(Merchant(name=name, category_code=code) for name, code in (("Shop", "5411"), ("Hotel", "7011")))
EXPIRES_ON = date(2029, 6, 30)
PURCHASES_OF_A_CARD = 30


def learn(life, step, outcome):
    """Remember results for later steps."""
    if isinstance(step, CreateVirtualCard):
        life.cards.append((step.customers[0], step.card_id))
    elif isinstance(step, ClearCard):
        life.cleared.append((step.customers[0], step.card_id, UUID(outcome["record_id"])))


@of_a_pocket
def card(life, place):
    if len(life.cards) > life.wanted:
        return None
    card_id = new_id(life, "card")
    fields = {"name": "A card", "last_four": "4242", "expires_on": EXPIRES_ON}
    return life.submit(CreateVirtualCard, place.customer, card_id=card_id, pocket_id=place.id, **fields)


def message(life):
    """Send a message about a purchase; about an old one it is late."""
    kind = life.random.choice(
        (AuthorizeCard,) * 4 + (IncrementAuthorization, ReverseAuthorization, ExpireAuthorization)
    )
    fields: dict[str, Any] = {"merchant": life.random.choice(SHOPS)}
    if kind is ExpireAuthorization:
        fields["due"] = life.bank.now + timedelta(days=life.random.randint(0, 10))
    else:
        fields["amount"] = life._cents() // life.random.choice((1, 20, 400)) + 1
    if kind is AuthorizeCard:
        fields |= {"is_partial_allowed": life.random.random() < 0.5, "is_advice": life.random.random() < 0.1}
    return _about_a_card(life, kind, reference=_purchase(life), **fields)


def record(life):
    """Settle a purchase, or a later refund or dispute of one."""
    fields: dict[str, Any] = {
        "record_id": new_id(life, "card"),
        "amount": life._cents() // life.random.choice((1, 20, 400)) + 1,
        "settles_on": life.bank.calendars.add_fed_days(life.bank.now.date(), 2),
    }
    kind = life.random.choice((ClearCard,) * 4 + (RefundCard, ChargeBack, Represent))
    if kind in {ChargeBack, Represent}:
        if not life.cleared:
            return None
        customer, card_id, original = life.random.choice(life.cleared)
        references = references_of(card_id, None, original)
        return life.submit(kind, customer, references=references, card_id=card_id, original_id=original, **fields)
    fields["merchant"] = life.random.choice(SHOPS)
    if kind is ClearCard:
        fields["is_final"] = life.random.random() < 0.7
    reference = None if kind is RefundCard or life.random.random() < 0.2 else _purchase(life)
    return _about_a_card(life, kind, reference=reference, **fields)


def _purchase(life):
    return str(life.random.randrange(PURCHASES_OF_A_CARD))


def _about_a_card(life, kind, *, reference, **fields):
    if not life.cards:
        return None
    customer, card_id = life.random.choice(life.cards)
    references = references_of(card_id, reference)
    return life.submit(kind, customer, references=references, card_id=card_id, network_reference=reference, **fields)


PAYING_BY_CARD = {"card": card, "card_message": message, "card_record": record}
