"""The accounts of the local chain. Their keys are public: nothing here is worth anything.

Deposit addresses come from the well-known mnemonic "test test ... junk", account 0.
"""

from __future__ import annotations

from coincurve import PrivateKey
from eth_hash.auto import keccak

CHAIN_ID = 31337
CHAIN_NAME = "ETHEREUM"
DEPOSIT_XPUB = (
    "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP"
)
TEST_DOLLAR = "0xa4A2243Cb7033B0234e8644CE20D130DB2515e36"
"""The contract that the faucet's first transaction makes: the test token."""
FAUCET_KEY = keccak(b"the faucet of a billfold sandbox")


def faucet_address() -> bytes:
    """Return the address that has all ether at first, and mints the test token."""
    return keccak(PrivateKey(FAUCET_KEY).public_key.format(compressed=False)[1:])[-20:]
