"""The port to whoever signs: it holds the private key of the bank's wallet, which the bank never has."""

from typing import Protocol, runtime_checkable

import msgspec


class UnsignedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction of EIP-1559. Fees are wei per unit of gas, `value` is wei, `data` 0x and hexadecimal digits."""

    chain_id: int
    nonce: int
    to: str
    value: int
    data: str
    gas_limit: int
    max_fee: int
    priority_fee: int


class SignerRefused(Exception):
    """The signer's own policy forbids the transaction; the text is its reason."""


@runtime_checkable
class Signer(Protocol):
    """Signs for one wallet. Calls may be repeated. Raises `platform.errors.Unavailable` when it does not answer."""

    async def address(self) -> str:
        """Return the address of the wallet, in the form of EIP-55."""

    async def sign(self, transaction: UnsignedTransaction) -> str:
        """Return the signed transaction as it is sent: 0x and hexadecimal digits. Raises SignerRefused."""

    async def close(self) -> None:
        """End what it keeps open; the bank closes."""
