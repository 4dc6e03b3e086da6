"""A program of a partner: it creates a virtual card, reads its number and pays with it, and activates a physical one.

    python examples/cards.py

It reads `.billfold/sandbox.json`, which `make sandbox` writes, or that of `BILLFOLD_STATE_DIR`. Nobody but this program
reads the number, the CVV and the PIN: the bank has neither key.
"""

import argparse
import base64
import secrets
from pathlib import Path
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from billfold_client.local import local_client
from billfold_client.partner import AddressFields, CardActivity, PartnerApi
from billfold_client.sandbox import partner_auth, read_sandbox, run_with_sandbox

SHIPPING: AddressFields = {
    "street_address": "9 Larkmoor Road",
    "city": "Reno",
    "state": "NV",
    "postal_code": "89507",
    "country": "US",
}


def main() -> None:
    """Sign with the sandbox's credentials, and use a card of each type."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--box", type=Path, default=None)
    box = read_sandbox(options.parse_args().box)
    with PartnerApi(local_client(box["partner_url"], box["ca_file"], partner_auth(box))) as api:
        pocket = api.create_pocket(box["customer_id"], pocket_name="Cards", deposit_strategy_id="UST-4W")
        portal = next(iter(api.list_portals(pocket.id)))
        api.sandbox_wire(portal_id=portal.id, amount_usdc=10_000_00, sender_name="Contoso")
        card_id = read_virtual_card(api, pocket.id)
        api.sandbox_card_swipe(card_id=card_id, amount_usdc=42_50)
        paid = next(each for each in api.list_transactions() if isinstance(each, CardActivity))
        print(f"CARD {paid.status}: {paid.amount.formatted}")
        activate_physical_card(api, pocket.id)


def read_virtual_card(api: PartnerApi, pocket_id: UUID) -> UUID:
    """Create a card, and decrypt what only this program can read: the key is for this one request."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=4096)
    public_key = key.public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode()
    card = api.create_virtual_card(pocket_id, public_key=public_key)
    number, cvv, expiration = (
        key.decrypt(base64.b64decode(each), padding.PKCS1v15()).decode()
        for each in (card.encrypted_pan, card.encrypted_cvv, card.encrypted_expiration)
    )
    print(f"Virtual card {number}, CVV {cvv}, valid through {expiration}")
    return card.card_id


def activate_physical_card(api: PartnerApi, pocket_id: UUID) -> None:
    """Order a card, let the sandbox make it, give it a PIN and switch it on."""
    order = api.create_card_order(pocket_id, name_on_card="Ada Marsh", shipping_address=SHIPPING)
    api.sandbox_generate_card(card_order_id=order.card_order_id)
    card_id = api.get_card_order(pocket_id, order.card_order_id).card_id
    assert card_id
    key = load_pem_public_key(api.get_public_keys().set_pin.encode())
    assert isinstance(key, rsa.RSAPublicKey)
    pin = f"{secrets.randbelow(10_000):04}".encode()
    api.set_card_pin(pocket_id, card_id, encrypted_pin=base64.b64encode(key.encrypt(pin, padding.PKCS1v15())).decode())
    switched = api.set_card_status(pocket_id, card_id, card_status="ONLINE", magstripe_status="ON")
    print(f"Physical card {switched.status}, magnetic stripe {switched.magstripe_status}")


if __name__ == "__main__":
    run_with_sandbox(main)
