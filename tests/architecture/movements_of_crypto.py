"""Movements of crypto deposits."""

from typing import Any
from uuid import UUID

from billfold.accounts.portals.commands import OpenPortal, Wallet
from billfold.payments.crypto.deposits.rules import (
    ChainDeposit,
    CreditDeposit,
    HoldReason,
    RecordUnbooked,
    RestoreDeposit,
    WriteOffDeposit,
)

PLACE: dict[str, Any] = {"block_number": 7, "block_hash": "0x" + "b" * 64, "log_index": 0}


def chain_deposit(cents):
    """Return an on-chain deposit of some cents."""
    token: dict[str, Any] = {"token": "0xT", "asset": "USDC", "decimals": 6, "minimum_cents": 100}
    parties: dict[str, Any] = {"sender": "0xS", "recipient": "0xR", "units": str(cents * 10_000)}
    return ChainDeposit(chain="ETHEREUM", tx_hash="0x" + "a" * 64, **PLACE, **token, **parties)


def play_crypto(new_stage):
    stage = new_stage()
    house, anna = stage.house(), stage.new_customer("Anna")
    pocket = stage.new_pocket(anna)
    wallet = Wallet(chain="ETHEREUM", address="0xR", asset="USDC", xpub_id=1, index=0)
    with stage.row("Crypto portal opened"):
        opened = stage.submit(OpenPortal, anna, pocket_id=pocket.id, name="On chain", wallet=wallet)
    place = {"portal_id": UUID(opened["portal_id"]), "pocket_id": pocket.id}

    def send(kind, number, cents, **fields):
        ids = {"deposit_id": UUID(int=number), "references": (UUID(int=number), place["portal_id"])}
        stage.submit(kind, anna, deposit=chain_deposit(cents), **place, **ids, **fields)

    with stage.row("Crypto deposit"):
        send(CreditDeposit, 1, 500_00)
    with stage.row("Crypto deposit carried"):
        send(CreditDeposit, 2, 50)
    with stage.row("Crypto deposit recorded, not credited"):
        send(RecordUnbooked, 3, 500_00, amount=500_00, reason=HoldReason.SENDER_LISTED)
    credited = {"deposit_id": UUID(int=1), "references": (UUID(int=1),)}
    with stage.row("Crypto deposit reorged after credit"):
        stage.submit(WriteOffDeposit, anna, house, **credited)
    with stage.row("Crypto deposit on the chain again"):
        stage.submit(RestoreDeposit, anna, house, **PLACE, **credited)
