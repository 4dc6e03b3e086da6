"""The kinds of files that uploads may have: their first bytes, and their maximum size."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

IDENTITY_DOCUMENTS: Final = ("ID_FRONT", "ID_BACK", "SELFIE", "PASSPORT")
_MEGABYTE: Final = 1024 * 1024
_PDF_BYTES_MAX: Final = 52_428_799
_PERSON_BYTES_MAX: Final = 5 * _MEGABYTE
_PICTURE_BYTES_MAX: Final = 10 * _MEGABYTE


class FileKind(StrEnum):
    """The accepted kinds of files, by their media types."""

    PDF = "application/pdf"
    PNG = "image/png"
    JPEG = "image/jpeg"


SIGNATURES: Final[Mapping[FileKind, bytes]] = {
    FileKind.PDF: b"%PDF-",
    FileKind.PNG: b"\x89PNG\r\n\x1a\n",
    FileKind.JPEG: b"\xff\xd8\xff",
}


def max_file_bytes(kind: FileKind, type_: str | None = None) -> int:
    """Return how many bytes a file of this kind may have, as a document of this type."""
    if kind == FileKind.PDF and type_ not in IDENTITY_DOCUMENTS:
        return _PDF_BYTES_MAX
    return _PERSON_BYTES_MAX if type_ in IDENTITY_DOCUMENTS else _PICTURE_BYTES_MAX


def kind_of(content: bytes) -> FileKind | None:
    """Return the accepted kind that matches the first bytes of a file, if any."""
    return next((kind for kind, begins in SIGNATURES.items() if content.startswith(begins)), None)
