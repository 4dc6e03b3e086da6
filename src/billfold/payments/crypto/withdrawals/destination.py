"""What stands against paying an address, wherever it is known in plain text.

A counterparty is refused by it when it is added, a payment when it is requested, approved and sent.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from billfold.accounts.counterparties.ports import OwnWallets
from billfold.accounts.counterparties.sealed_details import open_details
from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank, Ports
from billfold.payments.crypto.chains import Chains
from billfold.payments.crypto.withdrawals.commands import Objection
from billfold.payments.crypto.withdrawals.signing import Signer
from billfold.payments.crypto.withdrawals.store import is_own_address
from billfold.platform.database.connection import Db
from billfold.screening.screening import CurrentList

_UNAVAILABLE = Objection("rail-not-available", "The bank sends nothing on this chain.")
_TOKEN = Objection("wallet-not-payable", "The address is that of a token's contract: what is sent there is lost.")
_OWN = Objection("wallet-not-payable", "The address is one of this bank: pay its Pocket by an on-us transfer.")
_LISTED = Objection("sanction-screen-failed", "The address is on a sanctions list.")


async def find_objection(bank: Bank, conn: Db, chain_name: str, address: str) -> Objection | None:
    """Return why an address of a chain is not paid; None when it is."""
    chain = bank.ports[Chains].get(chain_name)
    if chain is None or bank.ports.get(Signer) is None:
        return _UNAVAILABLE
    if bank.ports[OwnWallets].is_token(address):
        return _TOKEN
    if await is_own_address(conn, address):
        return _OWN
    return _LISTED if await bank.ports[CurrentList].has_wallet(conn, address) else None


async def find_objection_to(bank: Bank, conn: Db, customer_id: UUID, details: Mapping[str, Any]) -> Objection | None:
    """Return the same for the sealed details of a counterparty. In a transaction its key was loaded before."""
    data_key = (await bank.ports[DataKeys].load(conn, (customer_id,))).get(customer_id)
    opened = open_details(data_key, details)
    if opened.get("wallet_address") is None:
        return Objection("counterparty-not-verified", "The counterparty has no wallet any more.")
    return await find_objection(bank, conn, opened["chain"], opened["wallet_address"])


class BankWallets:
    """The addresses of the bank itself, for those who add counterparties."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def is_token(self, address: str) -> bool:
        """Tell whether it is the contract of a token: what is sent there is lost."""
        return any(chain.find_token(address) is not None for chain in self._ports[Chains].values())

    async def pays_from(self, address: str) -> bool:
        """Tell whether the bank pays from this wallet. Raises Unavailable."""
        signer = self._ports.get(Signer)
        return signer is not None and address.lower() == (await signer.address()).lower()
