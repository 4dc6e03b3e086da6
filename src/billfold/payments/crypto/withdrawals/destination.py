"""What stands against paying an address, wherever it is known in plain text.

A counterparty is refused by it when it is added, a payment when it is requested, approved and sent.
"""

from __future__ import annotations

from billfold.onboarding.screening.screening import CurrentList
from billfold.data_keys.keys import DataKeys
from billfold.payments.crypto.withdrawals.ports import Signer
from billfold.payments.crypto.chains.types import Chains
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.accounts.counterparties.sealed_details import open_details
from billfold.payments.crypto.withdrawals.commands import Objection
from billfold.payments.crypto.withdrawals.store.transactions import is_own_address

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection, Pool)

_UNAVAILABLE = Objection("rail-not-available", "The bank sends nothing on this chain.")
_TOKEN = Objection("wallet-not-payable", "The address is that of a token's contract: what is sent there is lost.")
_OWN = Objection("wallet-not-payable", "The address is one of this bank: pay its Pocket by an on-us transfer.")
_LISTED = Objection("sanction-screen-failed", "The address is on a sanctions list.")


async def find_objection(bank: Bank, conn: Connection | Pool, chain_name: str, address: str) -> Objection | None:
    """Return why an address of a chain is not paid; None when it is."""
    chain = bank.ports[Chains].get(chain_name)
    if chain is None or bank.ports.get(Signer) is None:
        return _UNAVAILABLE
    if any(each.find_token(address) is not None for each in bank.ports[Chains].values()):
        return _TOKEN
    if await is_own_address(conn, address):
        return _OWN
    return _LISTED if await bank.ports[CurrentList].has_wallet(conn, address) else None


async def find_objection_to(
    bank: Bank, conn: Connection | Pool, customer_id: UUID, details: Mapping[str, Any]
) -> Objection | None:
    """Return the same for the sealed details of a counterparty. In a transaction its key was loaded before."""
    data_key = (await bank.ports[DataKeys].load(conn, (customer_id,))).get(customer_id)
    opened = open_details(data_key, details)
    if opened.get("wallet_address") is None:
        return Objection("counterparty-not-verified", "The counterparty has no wallet any more.")
    return await find_objection(bank, conn, opened["chain"], opened["wallet_address"])
