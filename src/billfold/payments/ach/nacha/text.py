"""The lines of NACHA files, in printable ASCII whatever else they contain."""

import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO

from billfold.payments.ach.nacha import layout
from billfold.payments.ach.nacha.types import AchFileMistake
from billfold.payments.files.types import InvalidFile

_MARK = b"\xef\xbb\xbf"
"""What some systems put before a text."""
_END = b"\r\n\x1a\x00"
"""What some systems put after one."""


def normalize(raw: bytes) -> bytes:
    """Return the file with LF line ends."""
    raw = raw.removeprefix(_MARK)
    content = raw.rstrip(_END)
    if content and raw[len(content) :] == b"\n" and b"\r" not in raw:
        return raw
    if b"\n" not in content and b"\r" not in content and len(content) % layout.WIDTH == 0:
        starts = range(0, len(content), layout.WIDTH)
        return b"".join(content[at : at + layout.WIDTH] + b"\n" for at in starts)
    return content.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + b"\n" if content else content


def lines_of(raw: bytes) -> Iterator[str]:
    """Yield the lines one by one: a large file is not split at once. Raises InvalidFile if there are none."""
    content = normalize(raw)
    if not content.strip():
        raise InvalidFile([AchFileMistake(0, None, "is empty")])
    for line in BytesIO(content):
        yield _text_of(line.removesuffix(b"\n"))


def _text_of(line: bytes) -> str:
    """Return a line in printable ASCII, one character for each column.

    A letter that is not ASCII is one byte, or several of UTF-8: whichever fills the columns.
    """
    text = line.decode("latin-1")
    if text.isascii() and text.isprintable():
        return text
    if len(text) != layout.WIDTH:
        with suppress(UnicodeDecodeError):
            text = line.decode()
    return "".join(map(_to_ascii, text))


def _to_ascii(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    base = unicodedata.normalize("NFKD", character)[0]
    return base if base.isascii() and base.isprintable() else "?"
