"""The font of the pages, which is that of statements: files of Source Sans in the format WOFF, made in memory."""

import struct
import zlib
from functools import cache
from importlib.resources import files

_FILES = {"source-sans.woff": "SourceSansPro-Regular.ttf", "source-sans-semibold.woff": "SourceSansPro-Semibold.ttf"}
_HEAD = struct.Struct(">4s4sIHHIHHIIIII")
_SFNT = struct.Struct(">4sHHHH")
_SFNT_TABLE = struct.Struct(">4sIII")
_TABLE = struct.Struct(">4sIIII")
_IN_PDF_ONLY = b"DSIG"
"""The signature of the TrueType file, which is not that of this one."""


def font_source() -> bytes:
    """Return what the fonts are made of."""
    return b"".join(map(_read, _FILES))


def _read(name: str) -> bytes:
    return files("font_source_sans_pro").joinpath("files", _FILES[name]).read_bytes()


@cache
def web_font(name: str) -> bytes | None:
    """Return a font by the name of its file, or None. Its tables are compressed (WOFF 1.0, sections 3 to 5)."""
    if name not in _FILES:
        return None
    font = _read(name)
    flavor, count, *_ = _SFNT.unpack_from(font)
    found = [_SFNT_TABLE.unpack_from(font, _SFNT.size + _SFNT_TABLE.size * n) for n in range(count)]
    tables = [each for each in found if each[0] != _IN_PDF_ONLY]
    start = _HEAD.size + _TABLE.size * len(tables)
    directory, body = b"", b""
    for tag, checksum, offset, length in tables:
        table = font[offset : offset + length]
        packed = min(zlib.compress(table, 9), table, key=len)
        directory += _TABLE.pack(tag, start + len(body), len(packed), length, checksum)
        body += packed + bytes(-len(packed) % 4)
    sfnt_size = _SFNT.size + sum(_SFNT_TABLE.size + length + -length % 4 for *_, length in tables)
    size = start + len(body)
    return _HEAD.pack(b"wOFF", flavor, size, len(tables), 0, sfnt_size, 2, 20, 0, 0, 0, 0, 0) + directory + body
