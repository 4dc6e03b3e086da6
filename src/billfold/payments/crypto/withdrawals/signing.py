"""The port of the signer, which holds the private key of the bank's wallet; the bank never does.

If a signer returns something other than it was given, or signs for another wallet, the bank must not send it.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import msgspec
from eth_hash.auto import keccak

from billfold.payments.crypto.chains import checksum_address


class UnsignedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """An EIP-1559 transaction. Fees are wei per unit of gas, `value` is wei, `data` 0x and hexadecimal digits."""

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
    """Signs for one wallet. Calls may be repeated. Raises `platform.errors.Unavailable` if it does not answer."""

    async def address(self) -> str:
        """Return the address of the wallet, in EIP-55 form."""

    async def sign(self, transaction: UnsignedTransaction) -> str:
        """Return the signed transaction ready to send: 0x and hexadecimal digits. Raises SignerRefused."""

    async def close(self) -> None:
        """Release open resources when the bank closes."""


_DYNAMIC_FEE = b"\x02"


class Signed(NamedTuple):
    """A signed transaction ready to send, and its hash."""

    raw: str
    transaction_hash: str


async def sign_checked(signer: Signer, wallet: str, transaction: UnsignedTransaction) -> Signed:
    """Return a transaction signed by the wallet's key. Raises SignerRefused, Unavailable."""
    raw = await signer.sign(transaction)
    try:
        signed, by = read_signed(raw)
    except Exception as error:  # libraries' parsers may raise anything for foreign bytes
        raise SignerRefused("The signer did not return an EIP-1559 transaction.") from error
    if signed != transaction or by != wallet:
        raise SignerRefused("The signer has signed something else, or with another key.")
    return Signed(raw, "0x" + keccak(bytes.fromhex(raw[2:])).hex())


def read_signed(raw: str) -> tuple[UnsignedTransaction, str]:
    """Return the content of a signed EIP-1559 transaction, and its signer.

    Raises ValueError, and whatever the libraries' parsers raise.
    """
    import rlp  # noqa: PLC0415 - loads for a fifth of a second, and only a bank that sends USDC needs it
    from eth_keys.datatypes import Signature  # noqa: PLC0415 - as above

    number, binary = rlp.sedes.big_endian_int, rlp.sedes.binary
    to_address, no_access = rlp.sedes.Binary.fixed_length(20), rlp.sedes.List([])
    fields = rlp.sedes.List([*[number] * 5, to_address, number, binary, no_access, *[number] * 3])
    content = bytes.fromhex(raw.removeprefix("0x"))
    if content[:1] != _DYNAMIC_FEE:
        raise ValueError("another kind of transaction")
    said = rlp.decode(content[1:])
    chain_id, nonce, priority_fee, max_fee, gas_limit, to, value, data, _, *vrs = fields.deserialize(said)
    by = Signature(vrs=vrs).recover_public_key_from_msg_hash(keccak(_DYNAMIC_FEE + rlp.encode(said[:-3])))
    transaction = UnsignedTransaction(
        chain_id=chain_id,
        nonce=nonce,
        to=checksum_address(to),
        value=value,
        data="0x" + data.hex(),
        gas_limit=gas_limit,
        max_fee=max_fee,
        priority_fee=priority_fee,
    )
    return transaction, by.to_checksum_address()
