"""Checks of bank and account numbers: each returns the error in words, or None. Pure.

The check digits of routing numbers, IBANs and BICs are verified by python-stdnum, those of wallets here.
"""

import re
from collections.abc import Iterator
from typing import Final

from stdnum import iban, numdb
from stdnum.exceptions import InvalidChecksum, ValidationError
from stdnum.us import rtn

from billfold.accounts.addresses import COUNTRIES

_LANE = 2**64 - 1
_RATE_BYTES = 136
_SIDE = 5


def _round_constants() -> Iterator[int]:
    """Yield the constant of each of the 24 rounds: bits of a shift register (algorithm 5 of FIPS 202)."""
    register = 1
    for _ in range(24):
        constant = 0
        for place in range(7):
            constant |= (register & 1) << (2**place - 1)
            register = register << 1 ^ (0x171 if register & 0x80 else 0)
        yield constant


_ROUNDS = tuple(_round_constants())


def keccak_256(message: bytes) -> bytes:
    """Return the 32 bytes of the hash."""
    padded = bytearray(message) + b"\x01"
    padded += bytes(-len(padded) % _RATE_BYTES)
    padded[-1] |= 0x80
    lanes = [[0] * _SIDE for _ in range(_SIDE)]
    for start in range(0, len(padded), _RATE_BYTES):
        for n in range(_RATE_BYTES // 8):
            at = start + 8 * n
            lanes[n % _SIDE][n // _SIDE] ^= int.from_bytes(padded[at : at + 8], "little")
        _permute(lanes)
    return b"".join(lanes[n][0].to_bytes(8, "little") for n in range(4))


def _permute(a: list[list[int]]) -> None:
    for constant in _ROUNDS:
        c = [a[x][0] ^ a[x][1] ^ a[x][2] ^ a[x][3] ^ a[x][4] for x in range(_SIDE)]
        for x in range(_SIDE):
            mixed = c[x - 1] ^ _rotate_left(c[(x + 1) % _SIDE], 1)
            for y in range(_SIDE):
                a[x][y] ^= mixed
        x, y, lane = 1, 0, a[1][0]
        for n in range(24):
            x, y = y, (2 * x + 3 * y) % _SIDE
            lane, a[x][y] = a[x][y], _rotate_left(lane, (n + 1) * (n + 2) // 2 % 64)
        for y in range(_SIDE):
            row = [a[x][y] for x in range(_SIDE)]
            for x in range(_SIDE):
                a[x][y] = row[x] ^ (~row[(x + 1) % _SIDE] & row[(x + 2) % _SIDE] & _LANE)
        a[0][0] ^= constant


def _rotate_left(lane: int, by: int) -> int:
    return (lane << by | lane >> (64 - by)) & _LANE


_NINE_DIGITS = re.compile(r"[0-9]{9}")
_PREFIXES = frozenset({*range(13), *range(21, 33), *range(61, 73), 80})
"""First two digits of routing numbers: Federal Reserve districts, thrifts, electronic, and traveler's checks."""
_BIC = re.compile(r"[A-Z0-9]{4}([A-Z]{2})[A-Z0-9]{2}([A-Z0-9]{3})?")
_BIC_COUNTRIES = COUNTRIES | {"XK"}
_IBAN_LIKE = re.compile(r"([A-Z]{2})[0-9]{2}[A-Z0-9]{11,30}")
_ACCOUNT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 /.-]{0,32}[A-Za-z0-9])?")
_US_ACCOUNT = re.compile(r"[0-9]{4,17}")
_EVM = re.compile(r"0x[0-9a-fA-F]{40}")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_SOLANA = re.compile(f"[{_BASE58}]{{32,44}}")
_SOLANA_BYTES = 32
EVM_CHAINS: Final = frozenset({"ETHEREUM", "POLYGON", "BASE"})


def routing_number_error(text: str) -> str | None:
    """Check an ABA routing number: nine digits, a known prefix, the check digit."""
    if not _NINE_DIGITS.fullmatch(text):
        return "must be an ABA routing number of 9 digits"
    if int(text[:2]) not in _PREFIXES or int(text) == 0:
        return "does not begin like an ABA routing number"
    if not rtn.is_valid(text):
        return "is not an ABA routing number: its check digit is wrong"
    return None


def bic_error(text: str) -> str | None:
    """Check a BIC of ISO 9362: 8 or 11 characters, a country code in the fifth and sixth."""
    match = _BIC.fullmatch(text)
    if match is None:
        return "must be a BIC of 8 or 11 capital letters and digits, like COBADEFFXXX"
    if match[1] not in _BIC_COUNTRIES:
        return f"is not a BIC: {match[1]} is not a country"
    return None


def compact(text: str) -> str:
    """Return a number in normal form: capitals, without spaces."""
    return text.replace(" ", "").upper()


def has_iban_form(text: str) -> bool:
    """Return whether a number has the form of an IBAN of a country that uses them."""
    match = _IBAN_LIKE.fullmatch(compact(text))
    return match is not None and match[1] in _IBAN_COUNTRIES


def iban_error(text: str) -> str | None:
    """Check an IBAN of ISO 13616: country, length and format of its account, the check digits."""
    number = compact(text)
    if not _IBAN_LIKE.fullmatch(number):
        return "must be an IBAN, like DE89370400440532013000"
    country, error = number[:2], None
    if country not in _IBAN_COUNTRIES:
        return f"is not an IBAN: {country} has none"
    try:
        iban.validate(number)
    except InvalidChecksum:
        error = "is not an IBAN: its check digits are wrong"
    except ValidationError:
        error = f"is not an IBAN: one of {country} has another length or form"
    return error


def account_number_error(text: str) -> str | None:
    """Check an account number of any bank, which may have letters."""
    if not _ACCOUNT.fullmatch(text):
        return "must be an account number of 1 to 34 letters and digits"
    return None


def identifier_error(text: str) -> str | None:
    """Check a number that may be an IBAN: one in that form must be valid."""
    return iban_error(text) if has_iban_form(text) else account_number_error(text)


def us_account_number_error(text: str) -> str | None:
    """Check an account number in the format of ACH entries."""
    if not _US_ACCOUNT.fullmatch(text):
        return "must be an account number of 4 to 17 digits"
    return None


def wallet_error(chain: str, address: str) -> str | None:
    """Check a wallet's address by the rules of its chain."""
    return _evm_error(address) if chain in EVM_CHAINS else _solana_error(address)


def _evm_error(address: str) -> str | None:
    """Check an address of an Ethereum-like chain; its capitalization is a checksum (EIP-55)."""
    if not _EVM.fullmatch(address):
        return "must be 0x and 40 hexadecimal digits"
    if int(address, 16) == 0:
        return "has no owner: funds sent there are lost"
    digits = address[2:]
    mixed = digits not in {digits.lower(), digits.upper()}
    if mixed and address != to_checksum_address(address):
        return "has a typing mistake: its capitalization does not match its digits (EIP-55)"
    return None


def to_checksum_address(address: str) -> str:
    """Return an address of an Ethereum-like chain with its EIP-55 capitalization."""
    digits = address[2:].lower()
    mixed = keccak_256(digits.encode()).hex()
    capital = "89abcdef"
    return "0x" + "".join(each.upper() if by in capital else each for each, by in zip(digits, mixed, strict=False))


def _solana_error(address: str) -> str | None:
    if not _SOLANA.fullmatch(address):
        return "must be a Solana address of 32 to 44 characters of base58"
    number = 0
    for each in address:
        number = number * len(_BASE58) + _BASE58.index(each)
    zeros = len(address) - len(address.lstrip(_BASE58[0]))
    if zeros + (number.bit_length() + 7) // 8 != _SOLANA_BYTES:
        return "is not a Solana address: it does not stand for 32 bytes"
    return None


_REGISTRY = numdb.get("iban")
_IBAN_COUNTRIES = frozenset(each for each in _BIC_COUNTRIES if _REGISTRY.info(f"{each}00")[0][1])
