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
PAGES_MAX = 300
PIXELS_MAX = 50_000_000
_MEMORY_BYTES = 768 * 1024 * 1024
_CPU_SECONDS = 8
_ACTIVE_CONTENT = {
    "/JavaScript": "JavaScript",
    "/JS": "JavaScript",
    "/Launch": "an action that starts a program",
    "/EmbeddedFile": "a file inside the file",
    "/EmbeddedFiles": "a file inside the file",
    "/RichMedia": "media that play",
    "/XFA": "a form that runs programs",
}
_STREAM_FILTERS = {"/FlateDecode", "/LZWDecode", "/ASCIIHexDecode", "/ASCII85Decode", "/RunLengthDecode"}
_TYPE_KEYS = {"/S", "/Type", "/Subtype"}
_END = b"%%EOF"
_AFTER_END_MAX = 64


class UnsafeContent(Exception):
    """The file is not to be taken; the sentence says why."""


def inspect_pdf(content: bytes) -> None:
    """Raise Bad for a PDF that is broken, locked, too long, or holds something that acts."""
    import pikepdf  # noqa: PLC0415 - only in the child, and only for a PDF

    end = content.rfind(_END)
    if end < 0 or len(content.rstrip()) - end > _AFTER_END_MAX:
        raise UnsafeContent("The PDF has no end, or something stands after it.")
    try:
        with pikepdf.open(io.BytesIO(content)) as pdf:
            if pdf.is_encrypted:
                raise UnsafeContent("The PDF is protected. Save it without a password.")
            if not 1 <= len(pdf.pages) <= PAGES_MAX:
                raise UnsafeContent(f"The PDF has {len(pdf.pages)} pages. It may have 1 to {PAGES_MAX}.")
            for each in pdf.objects:
                _check_object(each)
                if isinstance(each, pikepdf.Stream):
                    _decode_stream(each)
    except pikepdf.PasswordError:
        raise UnsafeContent("The PDF is protected. Save it without a password.") from None
    except pikepdf.PdfError:
        raise UnsafeContent("The PDF is damaged and cannot be read.") from None


def _check_object(root: object) -> None:
    """Raise Bad when an object or anything directly in it acts by itself."""
    import pikepdf  # noqa: PLC0415 - as above

    pending: list[object] = [root]
    while pending:
        each = pending.pop()
        if isinstance(each, pikepdf.Dictionary | pikepdf.Stream):
            for key, value in each.items():
                name = str(value) if isinstance(value, pikepdf.Name) else ""
                active = _ACTIVE_CONTENT.get(str(key)) or (_ACTIVE_CONTENT.get(name) if key in _TYPE_KEYS else None)
                if active:
                    raise UnsafeContent(f"The PDF holds {active}. Print it to a new PDF and send that.")
                pending.append(value)
        elif isinstance(each, pikepdf.Array):
            pending += list(each)
        pending = [item for item in pending if not getattr(item, "is_indirect", False)]


def _decode_stream(stream: object) -> None:
    """Unpack a stream once, so that one that explodes does it here. Pictures keep their form."""
    import pikepdf  # noqa: PLC0415 - as above

    assert isinstance(stream, pikepdf.Stream)
    filter_entry: object = stream.get("/Filter", [])
    filters = list(filter_entry) if isinstance(filter_entry, pikepdf.Array) else [filter_entry] if filter_entry else []
    if {str(each) for each in filters} <= _STREAM_FILTERS:
        stream.read_bytes()


def inspect_image(content: bytes, image_format: str) -> None:
    """Raise Bad for a picture that is another form's, damaged, or of too many pixels."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - only in the child

    Image.MAX_IMAGE_PIXELS = None  # counted here, before anything is unpacked
    try:
        with Image.open(io.BytesIO(content), formats=(image_format,)) as image:
            width, height = image.size
            if width * height > PIXELS_MAX:
                raise UnsafeContent(f"The picture has {width} x {height} pixels, which is too many.")
            image.load()
    except UnidentifiedImageError:
        raise UnsafeContent(f"The file is no {image_format}.") from None
    except (OSError, SyntaxError, ValueError):
        raise UnsafeContent("The picture is damaged and cannot be read.") from None


INSPECTORS: dict[str, Callable[[bytes], None]] = {
    "PDF": inspect_pdf,
    "PNG": lambda content: inspect_image(content, "PNG"),
    "JPEG": lambda content: inspect_image(content, "JPEG"),
}


def main() -> int:
    """Take away what the process does not need, and look."""
    for limit, maximum in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (maximum, maximum))
    try:
        INSPECTORS[sys.argv[1]](sys.stdin.buffer.read())
    except UnsafeContent as error:
        sys.stdout.write(str(error))
        sys.stdout.flush()
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
