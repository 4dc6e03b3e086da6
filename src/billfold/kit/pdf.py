"""A text as a PDF (ISO 32000-1): letter paper, Helvetica, nothing else. The same text is the same
file, byte for byte.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

_WIDTH, _HEIGHT, _MARGIN = 612, 792, 72
_SIZE, _LEADING, _TITLE_SIZE = 11, 16, 18
_CHARS_A_LINE = 84
_LINES_A_PAGE = (_HEIGHT - 2 * _MARGIN) // _LEADING - 3


def text_pdf(title: str, paragraphs: Sequence[str]) -> bytes:
    """Return the file. What Windows-1252 has no sign for becomes a question mark."""
    pages = list(_pages(paragraphs))
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for n, lines in enumerate(pages):
        drawn = _drawn(title if n == 0 else None, lines)
        objects += [
            _page(5 + 2 * n),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        ]
    return _file(objects)


def _pages(paragraphs: Sequence[str]) -> Iterator[list[str]]:
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [*textwrap.wrap(paragraph, _CHARS_A_LINE), ""]
    for start in range(0, max(len(lines), 1), _LINES_A_PAGE):
        yield lines[start : start + _LINES_A_PAGE]


def _page(content: int) -> bytes:
    return (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_WIDTH} {_HEIGHT}] "
        f"/Resources << /Font << /F1 3 0 R >> >> /Contents {content} 0 R >>"
    ).encode()


def _drawn(title: str | None, lines: Sequence[str]) -> bytes:
    parts = [b"BT", f"{_LEADING} TL {_MARGIN} {_HEIGHT - _MARGIN} Td".encode()]
    if title is not None:
        parts += [f"/F1 {_TITLE_SIZE} Tf".encode(), _shown(title), b"T* T*"]
    parts.append(f"/F1 {_SIZE} Tf".encode())
    for line in lines:
        parts += [_shown(line), b"T*"]
    return b"\n".join([*parts, b"ET"])


def _shown(text: str) -> bytes:
    raw = text.encode("cp1252", "replace")
    for sign in (b"\\", b"(", b")"):
        raw = raw.replace(sign, b"\\" + sign)
    return b"(" + raw + b") Tj"


def _file(objects: Sequence[bytes]) -> bytes:
    """Put objects one behind the other and say where each begins."""
    out, places = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    for number, each in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        table,
    )
    return bytes(out)
