"""What runs in the process that opens a file: `python -I child.py PDF`, the file on stdin.

Ends with 0 when the file may be taken, with 3 and a sentence when it may not; whatever else it ends
with, it met a limit.
"""

from __future__ import annotations

import io
import resource
import sys
from collections.abc import Callable

REFUSED = 3
PAGES_MOST = 300
PIXELS_MOST = 50_000_000
_MEMORY_BYTES = 768 * 1024 * 1024
_CPU_SECONDS = 8
_ACTS = {
    "/JavaScript": "JavaScript",
    "/JS": "JavaScript",
    "/Launch": "an action that starts a program",
    "/EmbeddedFile": "a file inside the file",
    "/EmbeddedFiles": "a file inside the file",
    "/RichMedia": "media that play",
    "/XFA": "a form that runs programs",
}
_PACKINGS = {
    "/FlateDecode", "/LZWDecode", "/ASCIIHexDecode", "/ASCII85Decode", "/RunLengthDecode",
}  # fmt: skip
_KINDS = {"/S", "/Type", "/Subtype"}
_END = b"%%EOF"
_AFTER_END_MOST = 64


class Bad(Exception):
    """The file is not to be taken; the sentence says why."""


def look_into_pdf(content: bytes) -> None:
    """Raise Bad for a PDF that is broken, locked, too long, or holds something that acts."""
    import pikepdf  # noqa: PLC0415 - only in the child, and only for a PDF

    end = content.rfind(_END)
    if end < 0 or len(content.rstrip()) - end > _AFTER_END_MOST:
        raise Bad("The PDF has no end, or something stands after it.")
    try:
        with pikepdf.open(io.BytesIO(content)) as pdf:
            if pdf.is_encrypted:
                raise Bad("The PDF is protected. Save it without a password.")
            if not 1 <= len(pdf.pages) <= PAGES_MOST:
                raise Bad(f"The PDF has {len(pdf.pages)} pages. It may have 1 to {PAGES_MOST}.")
            for each in pdf.objects:
                _look_at(each)
                if isinstance(each, pikepdf.Stream):
                    _unpack(each)
    except pikepdf.PasswordError:
        raise Bad("The PDF is protected. Save it without a password.") from None
    except pikepdf.PdfError:
        raise Bad("The PDF is damaged and cannot be read.") from None


def _look_at(thing: object) -> None:
    """Raise Bad when an object or anything directly in it acts by itself."""
    import pikepdf  # noqa: PLC0415 - as above

    waiting: list[object] = [thing]
    while waiting:
        each = waiting.pop()
        if isinstance(each, pikepdf.Dictionary | pikepdf.Stream):
            for key, value in each.items():
                said = str(value) if isinstance(value, pikepdf.Name) else ""
                found = _ACTS.get(str(key)) or (_ACTS.get(said) if key in _KINDS else None)
                if found:
                    raise Bad(f"The PDF holds {found}. Print it to a new PDF and send that.")
                waiting.append(value)
        elif isinstance(each, pikepdf.Array):
            waiting += list(each)
        waiting = [item for item in waiting if not getattr(item, "is_indirect", False)]


def _unpack(stream: object) -> None:
    """Unpack a stream once, so that one that explodes does it here. Pictures keep their form."""
    import pikepdf  # noqa: PLC0415 - as above

    assert isinstance(stream, pikepdf.Stream)
    named: object = stream.get("/Filter", [])
    filters = list(named) if isinstance(named, pikepdf.Array) else [named] if named else []
    if {str(each) for each in filters} <= _PACKINGS:
        stream.read_bytes()


def look_into_picture(content: bytes, form: str) -> None:
    """Raise Bad for a picture that is another form's, damaged, or of too many pixels."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - only in the child

    Image.MAX_IMAGE_PIXELS = None  # counted here, before anything is unpacked
    try:
        with Image.open(io.BytesIO(content), formats=(form,)) as picture:
            width, height = picture.size
            if width * height > PIXELS_MOST:
                raise Bad(f"The picture has {width} x {height} pixels, which is too many.")
            picture.load()
    except UnidentifiedImageError:
        raise Bad(f"The file is no {form}.") from None
    except (OSError, SyntaxError, ValueError):
        raise Bad("The picture is damaged and cannot be read.") from None


LOOKS: dict[str, Callable[[bytes], None]] = {
    "PDF": look_into_pdf,
    "PNG": lambda content: look_into_picture(content, "PNG"),
    "JPEG": lambda content: look_into_picture(content, "JPEG"),
}


def main() -> int:
    """Take away what the process does not need, and look."""
    for what, most in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))
    try:
        LOOKS[sys.argv[1]](sys.stdin.buffer.read())
    except Bad as bad:
        sys.stdout.write(str(bad))
        sys.stdout.flush()
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
