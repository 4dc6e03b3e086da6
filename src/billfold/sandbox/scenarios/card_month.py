"""`card-month`: a month of a virtual card, with all that merchants and networks do."""

import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from billfold.payments.cards.detail_keys import KEY_BITS
from billfold.sandbox.scenarios.player import V1, V2, Player
from billfold.sandbox.scenarios.types import Scenario, Step

_POCKET = "Travel"


def _begin(player: Player) -> str:
    when = player.next_week()
    player.open_customer()
    pocket = player.open_pocket(_POCKET, "UST-4W")
    player.receive_wire(_POCKET, 25_000_00, "Northwind Trading LLC")
    key = _unread_key(player.ids["customer"])
    card = player.client.post(f"{V1}/service-accounts/{pocket}/virtual-cards/", {"public_key": key})
    player.ids["card"] = card.at("card_id")
    return f"{player.customer_name} has $25,000.00 in bills and a virtual card. It is {when}"


def _buy(player: Player) -> str:
    meal = _authorize(player, "meal", 84_00)
    hotel = _authorize(player, "hotel", 620_00, is_preauthorization=True)
    declined = _authorize(player, "screened", 50_04)
    return f"A meal is {meal}, a hotel {hotel}; an amount that ends in 04 is {declined}."


def _clear(player: Player) -> str:
    player.go_to(player.weekday(3))
    _clearing(player, "meal", 100_80)
    _simulate(player, "card-increment/", network_reference=player.ids["hotel"], amount_usdc=180_00)
    player.ids["hotel record"] = _clearing(player, "hotel", 800_00)
    return "The meal is cleared with a tip, the hotel with another night."


def _late(player: Player) -> str:
    happened = player.go_to(player.weekday(9))
    _authorize(player, "car", 300_00)
    _simulate(player, "card-reversal/", network_reference=player.ids["car"], amount_usdc=120_00)
    _simulate(player, "card-clearing/", amount_usdc=42_50)
    return f"A rented car is reversed in part; a kiosk clears without a hold. On the way: {happened}."


def _refund(player: Player) -> str:
    _simulate(player, "card-refund/", amount_usdc=35_00)
    _simulate(player, "card-hold-expiry/", network_reference=player.ids["car"])
    return "A merchant gives $35.00 back; the hold of the car has run out."


def _dispute(player: Player) -> str:
    happened = player.go_to(player.weekday(16))
    _simulate(player, "card-chargeback/", record_id=player.ids["hotel record"])
    _simulate(player, "card-representment/", record_id=player.ids["hotel record"])
    return f"The hotel is charged back, and proves its bill. On the way: {happened}."


def _month_end(player: Player) -> str:
    happened = player.go_to(player.weekday(35))
    rows = player.client.get(f"{V2}/pockets/{player.ids[_POCKET]}/transactions/?limit=100").body["items"]
    return f"{len(rows)} transactions; the Pocket is worth {player.value(_POCKET)}. On the way: {happened}."


def _unread_key(seed: str) -> str:
    """Return a public key that nobody has the private one of: nobody reads the number of the card."""
    modulus = int.from_bytes(hashlib.shake_256(seed.encode()).digest(KEY_BITS // 8)) | 1 << KEY_BITS - 1 | 1
    key = rsa.RSAPublicNumbers(65_537, modulus).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode()


def _authorize(player: Player, name: str, cents: int, **more: object) -> str:
    found = _simulate(player, "card-authorization/", amount_usdc=cents, **more)
    player.ids[name] = found["network_reference"]
    return str(found["decision"])


def _clearing(player: Player, name: str, cents: int) -> str:
    record = _simulate(player, "card-clearing/", network_reference=player.ids[name], amount_usdc=cents)
    return str(record["record_id"])


def _simulate(player: Player, path: str, **body: Any) -> dict[str, Any]:
    return player.simulate(path, card_id=player.ids["card"], **body)


CARD_MONTH = Scenario(
    "card-month",
    "A month of a virtual card: purchases and a screened one, tips and increments, a partial reversal, a clearing"
    " without a hold, a refund, an expired hold, a chargeback and the answer to it.",
    (
        Step("A card is funded and created", _begin),
        Step("Purchases are authorized", _buy),
        Step("They are cleared for other amounts", _clear),
        Step("The second week", _late),
        Step("A refund, and a hold that runs out", _refund),
        Step("A dispute", _dispute),
        Step("The month ends", _month_end),
    ),
)
