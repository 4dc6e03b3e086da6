"""Messages of FIX 4.4 as bytes: framing, checksum, fields. Pure, except that a frame is read from a stream."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

BEGIN: Final = b"8=FIX.4.4\x01"
SOH: Final = b"\x01"
LENGTH_MAX: Final = 64 * 1024
_HEAD = re.compile(rb"8=FIX\.4\.4\x019=(\d{1,6})\x01", re.ASCII)
_FIELD = re.compile(r"([1-9]\d{0,4})=([^\x01]+)", re.ASCII)
_TRAILER_BYTES = len(b"10=000\x01")
_DIGITS_MAX = 15
_TIME = "%Y%m%d-%H:%M:%S.%f"
_READ_TIMES = ("%Y%m%d-%H:%M:%S.%f", "%Y%m%d-%H:%M:%S")

Fields = Iterable[tuple[int, object]]


class NotFix(Exception):
    """The bytes are no FIX 4.4: the connection cannot be read any further."""


class Garbled(Exception):
    """A frame whose length or checksum is wrong: it is ignored, and the sequence shows the gap."""


class Message(NamedTuple):
    """A message: its fields by tag, the first of each, and its text.

    `fault` names what is no field; its number counts all the same.
    """

    fields: Mapping[int, str]
    text: str
    fault: str = ""

    @property
    def type(self) -> str:
        """The type, tag 35."""
        return self.fields.get(35, "")

    @property
    def seq(self) -> int:
        """The sequence number, tag 34; 0 if there is none."""
        return self.number(34)

    def number(self, tag: int) -> int:
        """Return a whole number that fits into a bigint; 0 if there is none."""
        raw = self.fields.get(tag, "")
        return int(raw) if raw.isascii() and raw.isdigit() and len(raw) <= _DIGITS_MAX else 0

    @property
    def is_possible_duplicate(self) -> bool:
        """Tell whether it may have been received before, tag 43."""
        return self.fields.get(43) == "Y"


def encode(kind: str, header: Fields, body: Fields) -> bytes:
    """Return a message with its length and checksum."""
    pairs = [(35, kind), *header, *body]
    content = b"".join(f"{tag}={value}\x01".encode() for tag, value in pairs if value is not None)
    head = BEGIN + f"9={len(content)}\x01".encode() + content
    return head + f"10={sum(head) % 256:03}\x01".encode()


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Return the bytes of the next message. Raises NotFix, Garbled after a frame that has no trailer, EOFError."""
    try:
        start = await reader.readuntil(SOH)
        head = _HEAD.fullmatch(start + await reader.readuntil(SOH))
    except asyncio.LimitOverrunError as error:
        raise NotFix(str(error)) from None
    if head is None or int(head[1]) > LENGTH_MAX:
        raise NotFix(start[:40].decode(errors="replace"))
    return head[0] + await reader.readexactly(int(head[1]) + _TRAILER_BYTES)


def decode(frame: bytes) -> Message:
    """Return the message of a frame; what is no text in it, or could not be stored, is replaced. Raises Garbled."""
    body, trailer = frame[:-_TRAILER_BYTES], frame[-_TRAILER_BYTES:]
    if trailer != f"10={sum(body) % 256:03}\x01".encode():
        raise Garbled("its checksum or length is wrong")
    return read_fields(frame.decode(errors="replace").replace("\0", "\ufffd").removesuffix("\x01"))


def read_fields(text: str) -> Message:
    """Return the message of a text."""
    fields: dict[int, str] = {}
    fault = ""
    for each in text.split("\x01"):
        found = _FIELD.fullmatch(each)
        if found is None:
            fault = fault or f"{each[:40]!r} is no field"
        else:
            fields.setdefault(int(found[1]), found[2])
    return Message(fields, text, fault)


def format_time(at: datetime) -> str:
    """Return an instant as UTCTimestamp, with milliseconds."""
    return at.astimezone(UTC).strftime(_TIME)[:-3]


def read_time(text: str) -> datetime:
    """Return the instant of a UTCTimestamp. Raises ValueError."""
    for each in _READ_TIMES:
        try:
            return datetime.strptime(text[:24], each).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(text)
