"""Cards of a customer as its partner uses them, and the keys with which clients read their numbers."""

import base64
import random
import secrets
from functools import cache
from typing import Any

import psutil
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from billfold.sandbox.card_processor.vault import CardVault

SHIPPING = {
    "street_address": "9 Larkmoor Road",
    "city": "Vantorp",
    "state": "NV",
    "postal_code": "89507",
    "country": "US",
}
PIN = "4711"


@cache
def client_key():
    """The private key of a client, made once: 4096 bits take seconds."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=4096)


def unread_key(seed=None):
    """A public key whose private one nobody has; the same for the same seed."""
    bits = secrets.randbits(4096) if seed is None else random.Random(seed).getrandbits(4096)
    return rsa.RSAPublicNumbers(65_537, bits | 1 << 4095 | 1).public_key()


def pem(public_key, form=PublicFormat.PKCS1):
    return public_key.public_bytes(Encoding.PEM, form).decode()


def decrypted(answer, how=None):
    """Return number, CVV and expiration, which were encrypted to the client's key."""
    values = (answer[f"encrypted_{name}"] for name in ("pan", "cvv", "expiration"))
    return [client_key().decrypt(base64.b64decode(value), how or padding.PKCS1v15()).decode() for value in values]


def encrypted_pin(key, pin=PIN):
    """Return the body that sets a PIN, encrypted to the processor's key."""
    loaded: Any = load_pem_public_key(key.encode())
    return {"encrypted_pin": base64.b64encode(loaded.encrypt(pin.encode(), padding.PKCS1v15())).decode()}


def processors():
    """Return the processes of card processors that this one has started."""
    return [each for each in psutil.Process().children() if "billfold.sandbox.card_processor.vault" in each.cmdline()]


class Holder:
    """A customer of the partner with a Pocket, and its cards."""

    def __init__(self, desk, pocket):
        self.desk, self.pocket = desk, pocket
        self.account = f"/api/v1/service-accounts/{pocket.id}"

    def status_path(self, card_id):
        return f"{self.account}/cards/{card_id}/status/"

    async def set_status(self, card_id, status, **fields):
        return await self.desk.patch(self.status_path(card_id), {"card_status": status, **fields})

    def new_virtual_card(self, key=None):
        """Return the path and the body that make one."""
        return f"{self.account}/virtual-cards/", {"public_key": pem(key or unread_key())}

    async def virtual_card(self, key=None):
        return await self.desk.post(*self.new_virtual_card(key))

    def order(self):
        """Return the path and the body that order a card."""
        return f"{self.account}/card-orders/", {"name_on_card": "Ada Marsh", "shipping_address": SHIPPING}

    async def ordered(self):
        return await self.desk.post(*self.order())

    async def produced(self, order):
        """Return the id of the card that was made of an order."""
        await self.desk.post("/api/v1/sandbox/generate-card/", {"card_order_id": order["card_order_id"]}, status=202)
        made = await self.desk.get(f"{self.account}/card-orders/{order['card_order_id']}/")
        assert made["status"] == "CARD_CREATED"
        return made["card_id"]

    def numbers(self):
        """Return how many card numbers the processor has issued."""
        vault = CardVault(self.desk.bank.settings.state_dir / "card_processor")
        return vault.database.execute("SELECT count(*) FROM card").fetchone()

    async def encrypted(self, pin):
        return encrypted_pin((await self.desk.get("/api/v1/public-keys/"))["set_pin"], pin)

    async def events(self):
        """Return the statuses that events of cards named, in their order."""
        rows = await self.desk.bank.pool.fetch(
            "SELECT kind FROM event WHERE customer_id = $1 AND kind LIKE 'card.%' ORDER BY event_no",
            self.pocket.customer,
        )
        return [row["kind"].removeprefix("card.status.") for row in rows]
