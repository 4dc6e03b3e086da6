"""Ports of uploaded files: the store and the inspection; and what every store has in common.

A file is bytes and nothing more. What it is called, whose it is and what it proves is written in
the tables; the store knows it by a name that says nothing.
"""

import hashlib
import secrets
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

import msgspec

from billfold.platform.database.rows import Row
from billfold.platform.file_kinds import FileKind


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is kept: its name in the store, and what proves it unchanged."""

    key: str
    size_bytes: int
    sha256: str  # 64 hexadecimal digits


class StoredFileMissing(Exception):
    """The store has no such file, or not as it was put there."""


class FileStoreUnusable(Exception):
    """The store is not there, or refuses the bank. The text says how; `setting` is the field to look at."""

    def __init__(self, reason: str, setting: str) -> None:
        self.setting = setting
        super().__init__(reason)


class FileStore(Protocol):
    """Keeps files under random names. Raises Unavailable while it does not answer."""

    async def check(self) -> str:
        """Return where the files are kept. Changes nothing. Raises FileStoreUnusable when it cannot be used."""

    async def keep(self, content: bytes) -> StoredFile:
        """Keep a file for good; when this returns it survives a crash."""

    async def fetch(self, file: StoredFile) -> bytes:
        """Return the file as it was kept. Raises StoredFileMissing."""

    async def list_stored(self, before: datetime) -> list[str]:
        """Return the names of what was last written before this instant, unfinished or not."""

    async def discard(self, key: str) -> None:
        """Keep it no longer. A file that is gone already is no error."""


class UploadRejected(Exception):
    """The file is refused; the text says why."""


class FileInspector(Protocol):
    """Inspects a file before it is stored."""

    async def inspect(self, content: bytes, kind: FileKind) -> None:
        """Return when the file is what it says and holds nothing that acts. Raises UploadRejected."""


_KEY_BYTES = 20
_KEY = frozenset("0123456789abcdef")


def new_file(content: bytes) -> StoredFile:
    """Return what is known of a file that is going to be kept, under a new random name."""
    return StoredFile(
        key=secrets.token_hex(_KEY_BYTES), size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest()
    )


def is_key(text: str) -> bool:
    """Tell whether a text is the name of a file in a store."""
    return len(text) == 2 * _KEY_BYTES and _KEY.issuperset(text)


def check_key(key: str) -> None:
    """Raise StoredFileMissing for what is no name of a file."""
    if not is_key(key):
        raise StoredFileMissing("not the name of a file")


def check_unaltered(file: StoredFile, content: bytes) -> None:
    """Raise StoredFileMissing for other bytes than those that were kept."""
    if len(content) != file.size_bytes or hashlib.sha256(content).hexdigest() != file.sha256:
        raise altered(file)


def missing(file: StoredFile) -> StoredFileMissing:
    """Return the refusal of a file that the store does not have."""
    return StoredFileMissing(f"no file {file.key}")


def altered(file: StoredFile) -> StoredFileMissing:
    """Return the refusal of a file that is another than was kept."""
    return StoredFileMissing(f"file {file.key} is not what was kept")


APPLICATION_DOCUMENT_JOB: Final = "application.document"
"""Looks whether an application has all of its documents now; its object is the document."""


class DocumentRow(Row, frozen=True):
    """A document and where it stands; what concerns its file is None until there is one.

    One of an application names it, and the related party whom it is about. `name` is the file's as its sender calls
    it; size and hash are those of the file as it is kept. `created_at` and `uploaded_at` are business time.
    """

    table = "document"
    key_column = "document_id"

    customer_id: UUID
    document_id: UUID
    type: str
    status: str  # PENDING_UPLOAD, PENDING_REVIEW, APPROVED or INVALID
    exception_reason: str | None
    name: str | None
    media_type: str | None
    file_key: str | None
    size_bytes: int | None
    sha256: str | None
    created_at: datetime
    uploaded_at: datetime | None
    file_sealed: bool  # False: an earlier release kept it in plain text
    application_id: UUID | None = None
    related_party_id: UUID | None = None
    subject_id: UUID | None = None

    @property
    def subject(self) -> UUID:
        """Whose data key its file is sealed with: its owner's, or that of who applies."""
        return self.subject_id or self.customer_id

    @property
    def file(self) -> StoredFile | None:
        """Where the file is kept."""
        if self.file_key is None or self.size_bytes is None or self.sha256 is None:
            return None
        return StoredFile(key=self.file_key, size_bytes=self.size_bytes, sha256=self.sha256)
