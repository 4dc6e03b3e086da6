"""The accounts of the local chain. Their keys are public: nothing here is worth anything.

Deposit addresses come from the well-known mnemonic "test test ... junk", account 0.
"""

from coincurve import PrivateKey
from eth_hash.auto import keccak

from billfold.payments.crypto.chains import checksum_address

CHAIN_ID = 31337
CHAIN_NAME = "ETHEREUM"
DEPOSIT_XPUB = (
    "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP"
)
TEST_DOLLAR = "0xa4A2243Cb7033B0234e8644CE20D130DB2515e36"
"""The contract that the faucet's first transaction makes: the test token."""
FAUCET_KEY = keccak(b"the faucet of a billfold sandbox")


OTHER_KEY = keccak(b"who makes another token in a billfold sandbox")
"""Of the account whose first transaction makes a token that the bank does not take."""


def address_of(key: bytes) -> str:
    """Return the address of a private key."""
    return checksum_address(keccak(PrivateKey(key).public_key.format(compressed=False)[1:])[-20:])


def first_contract_of(address: str) -> str:
    """Return the address of the contract that the first transaction of an account makes (RLP of address and zero)."""
    return checksum_address(keccak(b"\xd6\x94" + bytes.fromhex(address[2:]) + b"\x80")[-20:])


def faucet_address() -> bytes:
    """Return the address that has all ether at first, and mints the test tokens."""
    return bytes.fromhex(address_of(FAUCET_KEY)[2:])
