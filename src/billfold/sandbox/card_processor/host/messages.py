"""The data elements of ISO 8583:1987 and ISO 8583:1993, each as text and as binary, and the messages made of them.

Text: digits and letters in ASCII, bitmaps and binary elements in hexadecimal digits. Binary: digits packed two to a
byte, bitmaps as bytes. The first byte of a message tells one from the other, its version digit the year.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

import iso8583
from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

# Formats as the standards write them: n digits, b bytes, z a magnetic track, dots a variable length with its maximum.
_COMMON: Final = """
2 n..19 3 n6 4 n12 5 n12 6 n12 7 n10 8 n8 9 n8 10 n8 11 n6 14 n4 16 n4 17 n4 18 n4 19 n3 20 n3 21 n3 23 n3 24 n3 27 n1
32 n..11 33 n..11 34 ans..28 35 z..37 36 ans...104 37 an12 38 an6 41 ans8 42 ans15 45 ans..76 47 ans...999 48 ans...999
49 an3 50 an3 51 an3 52 b8 54 ans...120 60 ans...999 61 ans...999 62 ans...999 63 ans...999 64 b8 67 n2 68 n3 69 n3
70 n3 73 n6 74 n10 75 n10 76 n10 77 n10 78 n10 79 n10 80 n10 81 n10 86 n16 87 n16 88 n16 89 n16 97 an17 98 ans25
99 n..11 100 n..11 101 ans..17 102 ans..28 103 ans..28 104 ans...100 111 ans...999 112 ans...999 113 ans...999
114 ans...999 115 ans...999 116 ans...999 117 ans...999 118 ans...999 119 ans...999 120 ans...999 121 ans...999
122 ans...999 123 ans...999 124 ans...999 125 ans...999 126 ans...999 127 ans...999 128 b8
"""
_ONLY_1987: Final = """
12 n6 13 n4 15 n4 22 n3 25 n2 26 n2 28 an9 29 an9 30 an9 31 an9 39 an2 40 an3 43 ans40 44 ans..25 46 ans...999 53 n16
55 ans...999 56 ans...999 57 ans...999 58 ans...999 59 ans...999 66 n1 71 n4 72 n4 82 n12 83 n12 84 n12 85 n12 90 n42
91 an1 92 an2 93 an6 94 an7 95 an42 96 b8 105 ans...999 106 ans...999 107 ans...999 108 ans...999 109 ans...999
110 ans...999
"""
_ONLY_1993: Final = """
12 n12 13 n4 15 n6 22 an12 25 n4 26 n4 28 n6 29 n3 30 n24 31 ans..99 39 n3 40 n3 43 ans..99 44 ans..99 46 ans...204
53 b..48 55 b...255 56 n..35 57 n3 58 n..11 59 ans...999 66 ans...204 71 n8 72 ans...999 82 n10 83 n10 84 n10 85 n10
90 n10 91 n3 92 n3 93 n..11 94 n..11 95 ans..99 96 b...499 105 n16 106 n16 107 n10 108 n10 109 ans..84 110 ans..84
"""
_FORMAT: Final = re.compile(r"(n|an|ans|b|z)(\.*)(\d+)")
_MTI: Final = re.compile(r"[01]\d{3}")
MAC_BYTES: Final = 8
_PRIMARY_MAC, _SECONDARY_MAC = "64", "128"
_PRIMARY_LAST: Final = 64
_1987: Final = 1987


LENGTH_MAX: Final = 4096
"""Bytes of a message; all elements of an authorisation together have less."""


class FormatError(Exception):
    """A message that does not follow its layout. Its text names the data element, never its content."""

    def __init__(self, field: str, message: Message | None) -> None:
        super().__init__(f"data element {field}")
        self.message = message
        """The part that could be read, if it is enough to reply to."""


class Layout(NamedTuple):
    """The layout of the messages of a version."""

    year: int
    is_binary: bool
    spec: Mapping[str, Mapping[str, Any]]
    numbers: frozenset[str]
    """The data elements that hold only digits."""


class Message(NamedTuple):
    """A message: its type, four digits whose first is the version, and its data elements by number."""

    layout: Layout
    mti: str
    fields: dict[str, str]

    @property
    def is_1993(self) -> bool:
        """Return whether it follows the later standard."""
        return self.mti[0] == "1"

    def response_type(self) -> str:
        """Return the type of the response, which is never a repeat: 0421 is answered by 0430, 1804 by 1814."""
        return f"{self.mti[:2]}{int(self.mti[2]) + 1}{int(self.mti[3]) & ~1}"


def decode(raw: bytes) -> Message:
    """Read a message. Raises FormatError."""
    layout = _LAYOUTS.get(_kind_of(raw))
    if layout is None:
        raise FormatError("0", None)
    try:
        fields, _ = iso8583.decode(raw, layout.spec)
    except iso8583.DecodeError as error:
        raise FormatError(error.field, _readable(layout, error.doc_dec, error.field)) from None
    except KeyError:  # the third bitmap that element 65 announces
        raise FormatError("65", None) from None
    mti = fields.pop("t")
    del fields["p"]
    fields.pop("1", None)
    if not _MTI.fullmatch(mti):
        raise FormatError("0", None)
    message = Message(layout, mti, fields)
    for field in layout.numbers & fields.keys():
        if not (fields[field].isascii() and fields[field].isdecimal()):
            raise FormatError(field, _readable(layout, {"t": mti, **fields}, field))
    return message


def encode(message: Message) -> bytes:
    """Write a message."""
    raw, _ = iso8583.encode({"t": message.mti, **message.fields}, message.layout.spec)
    return bytes(raw)


def mac_field(fields: Mapping[str, str]) -> str:
    """Return the number of the element that holds the MAC: the last of the last bitmap."""
    return _SECONDARY_MAC if any(int(field) > _PRIMARY_LAST for field in fields) else _PRIMARY_MAC


def mac_length(layout: Layout) -> int:
    """Return the bytes that a MAC takes at the end of a message."""
    return MAC_BYTES if layout.is_binary else 2 * MAC_BYTES


def _kind_of(raw: bytes) -> tuple[int, bool]:
    """Return the version digit, and whether the message is binary."""
    first = raw[0] if raw else 0xFF
    return (first - 0x30, False) if first in b"01" else (first >> 4, True)


def _readable(layout: Layout, read: Mapping[str, str], failed: str) -> Message | None:
    """Return the elements that were read before the one that failed."""
    mti = read.get("t", "")
    if failed in {"t", "p", "1"} or not _MTI.fullmatch(mti):
        return None
    unread = {"1", failed}
    return Message(layout, mti, {nth: value for nth, value in read.items() if nth.isdecimal() and nth not in unread})


def _layout(year: int, formats: str, *, is_binary: bool) -> Layout:
    words = formats.split()
    by_field = dict(zip(words[::2], words[1::2], strict=True))
    bitmap = {"data_enc": "b" if is_binary else "ascii", "len_enc": "ascii", "len_type": 0, "max_len": 16, "desc": ""}
    spec: dict[str, Mapping[str, Any]] = {"h": {**bitmap, "max_len": 0}, "t": {**bitmap, "max_len": 4}}
    spec |= {"p": bitmap, "1": bitmap}
    # An element without a format cannot be sent: it has length zero, and is refused like a number without a digit.
    spec |= {str(nth): _element("n0", year, is_binary=is_binary) for nth in range(2, 129)}
    spec |= {field: _element(each, year, is_binary=is_binary) for field, each in by_field.items()}
    numbers = frozenset(str(nth) for nth in range(2, 129) if by_field.get(str(nth), "n0")[0] == "n")
    return Layout(year, is_binary, spec, numbers)


def _element(written: str, year: int, *, is_binary: bool) -> Mapping[str, Any]:
    """Return a format in the library's notation."""
    match = _FORMAT.fullmatch(written)
    assert match is not None
    kind, dots, length = match[1], len(match[2]), int(match[3])
    if not is_binary:
        return {
            "data_enc": "iso-8859-1",
            "len_enc": "ascii",
            "len_type": dots,
            "max_len": 2 * length if kind == "b" else length,
            "desc": "",
        }
    packed = kind in "nbz"
    return {
        "data_enc": "b" if packed else "iso-8859-1",
        "len_enc": "bcd",
        "len_type": dots and dots - 1,
        "len_count": "bytes" if kind == "b" else "nibbles" if packed else "bytes",
        "max_len": length,
        # An odd number of digits is padded with a zero, as in jPOS: before them only if of fixed length in 1987.
        "left_pad" if year == _1987 and not dots else "right_pad": "0",
        "desc": "",
    }


_LAYOUTS: Final = {
    (nth, is_binary): _layout(year, _COMMON + formats, is_binary=is_binary)
    for nth, (year, formats) in enumerate(((_1987, _ONLY_1987), (1993, _ONLY_1993)))
    for is_binary in (False, True)
}


_BLOCK = 8
_DES_KEYS = 16


class MacAlgorithm(StrEnum):
    """HMAC-SHA256 or AES-CMAC, cut to 8 bytes, or the retail MAC: ISO/IEC 9797-1 algorithm 3, padding method 1."""

    HMAC = "hmac-sha256"
    CMAC = "aes-cmac"
    RETAIL = "iso9797-1-alg3"

    def code(self, key: bytes, raw: bytes) -> bytes:
        """Return the 8 bytes that authenticate a text. The retail MAC uses the first 16 bytes of the key."""
        if self is MacAlgorithm.HMAC:
            return hmac.digest(key, raw, "sha256")[:MAC_BYTES]
        if self is MacAlgorithm.CMAC:
            cipher = CMAC(AES(key))
            cipher.update(raw)
            return cipher.finalize()[:MAC_BYTES]
        return _retail(key[:_DES_KEYS], raw)


def _retail(key: bytes, raw: bytes) -> bytes:
    first, second = TripleDES(key[:_BLOCK] * 3), TripleDES(key[_BLOCK:] * 3)
    chain = Cipher(first, modes.CBC(bytes(_BLOCK))).encryptor().update(raw + bytes(-len(raw) % _BLOCK))
    last = Cipher(second, modes.ECB()).decryptor().update(chain[-_BLOCK:])  # noqa: S305 - of a single block
    return Cipher(first, modes.ECB()).encryptor().update(last)  # noqa: S305


class MacKey:
    """The key that the processor shares with a network."""

    def __init__(self, algorithm: MacAlgorithm, key: bytes) -> None:
        self._algorithm, self._key = algorithm, key

    def is_right(self, message: Message, raw: bytes) -> bool:
        """Tell whether the MAC of a message matches its bytes. The message must have one."""
        field = mac_field(message.fields)
        if field not in message.fields:  # in element 64 of a message that continues
            return False
        code = self._algorithm.code(self._key, raw[: -mac_length(message.layout)])
        return hmac.compare_digest(code.hex().upper(), message.fields[field].upper())

    def sealed(self, message: Message) -> bytes:
        """Return an encoded message with its MAC."""
        field = mac_field(message.fields)
        raw = encode(message._replace(fields={**message.fields, field: "0" * 2 * MAC_BYTES}))
        body = raw[: -mac_length(message.layout)]
        code = self._algorithm.code(self._key, body)
        return body + (code if message.layout.is_binary else code.hex().upper().encode())


class LengthPrefix(StrEnum):
    """The encoding of the length: in two or four bytes, the most significant first, or in four digits."""

    TWO_BYTES = "2-bytes"
    FOUR_BYTES = "4-bytes"
    FOUR_DIGITS = "4-digits"

    def write(self, raw: bytes) -> bytes:
        """Return a message with its length."""
        if self is LengthPrefix.FOUR_DIGITS:
            return b"%04d" % len(raw) + raw
        return len(raw).to_bytes(self._size) + raw

    @property
    def _size(self) -> int:
        return 2 if self is LengthPrefix.TWO_BYTES else 4

    async def read(self, stream: asyncio.StreamReader, *, idle_seconds: float, message_seconds: float) -> bytes:
        """Return the next message; one of length zero keeps a connection alive.

        Raises LengthError, TimeoutError if nothing arrives or a message does not end, EOFError at the end.
        """
        async with asyncio.timeout(idle_seconds):
            first = await stream.readexactly(1)
        async with asyncio.timeout(message_seconds):
            prefix = first + await stream.readexactly(self._size - 1)
            length = self._length(prefix)
            if not 0 <= length <= LENGTH_MAX:
                raise LengthError
            return await stream.readexactly(length)

    def _length(self, prefix: bytes) -> int:
        if self is LengthPrefix.FOUR_DIGITS:
            return int(prefix) if prefix.isdigit() else -1
        return int.from_bytes(prefix)


class LengthError(Exception):
    """An impossible length: the start of the next message is no longer known."""
