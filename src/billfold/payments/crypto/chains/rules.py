"""Addresses and amounts of EVM chains."""

import re
from typing import NamedTuple

from eth_hash.auto import keccak

from billfold.payments.crypto.chains.types import CENTS_DECIMALS

_EVM_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_LOWER_CASE_MAX = 7


def read_address(text: str) -> str | None:
    """Return an EVM address in the form of EIP-55, or None.

    An address of mixed case whose case does not fit is none: one character of it is wrong. One of a single case has
    no checksum and is taken.
    """
    if _EVM_ADDRESS.fullmatch(text) is None:
        return None
    has_checksum = text[2:] not in {text[2:].lower(), text[2:].upper()}
    address = checksum_address(bytes.fromhex(text[2:]))
    return address if not has_checksum or address == text else None


def checksum_address(address: bytes) -> str:
    """Return 20 bytes in the form of EIP-55: the case of each letter is a bit of the hash of all of them."""
    digits = address.hex()
    return "0x" + "".join(
        digit.upper() if int(bit, 16) > _LOWER_CASE_MAX else digit
        for digit, bit in zip(digits, keccak(digits.encode()).hex(), strict=False)
    )


class Cents(NamedTuple):
    """Whole cents, and the units that are less than a cent."""

    cents: int
    remainder: int


def cents_of(units: int, decimals: int) -> Cents:
    """Return what units of a dollar token are worth, rounded down to the cent."""
    return Cents(*divmod(units, _units_per_cent(decimals)))


def units_of(cents: int, decimals: int) -> int:
    """Return the units of a dollar token that are worth these cents."""
    return cents * _units_per_cent(decimals)


def _units_per_cent(decimals: int) -> int:
    return int(10 ** (decimals - CENTS_DECIMALS))
