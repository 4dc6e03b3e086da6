"""Ports for uploaded files: the store and the inspection, and helpers that all stores share.

A file is bytes and nothing more. Its name, owner and purpose are in
the tables; the store knows it by a random name.
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
    """A stored file: its name in the store, and its size and hash."""

    key: str
    size_bytes: int
    sha256: str  # 64 hexadecimal digits


class StoredFileMissing(Exception):
    """The store does not have this file, or not as it was stored."""


class FileStoreUnusable(Exception):
    """The store does not exist, or refuses access. The text gives the reason; `setting` is the field to check."""

    def __init__(self, reason: str, setting: str) -> None:
        self.setting = setting
        super().__init__(reason)


class FileStore(Protocol):
    """Keeps files under random names. Raises Unavailable if it does not answer."""

    async def check(self) -> str:
        """Return where the files are kept. Changes nothing. Raises FileStoreUnusable if it cannot be used."""

    async def keep(self, content: bytes) -> StoredFile:
        """Store a file durably; when this returns it survives a crash."""

    async def fetch(self, file: StoredFile) -> bytes:
        """Return the file as stored. Raises StoredFileMissing."""

    async def list_stored(self, before: datetime) -> list[str]:
        """Return the names of files last written before this instant, including unfinished ones."""

    async def discard(self, key: str) -> None:
        """Delete a file. A file that no longer exists is not an error."""


class UploadRejected(Exception):
    """The file is refused; the text gives the reason."""


class FileInspector(Protocol):
    """Inspects a file before it is stored."""

    async def inspect(self, content: bytes, kind: FileKind) -> None:
        """Return if the file is of the declared kind and has no active content. Raises UploadRejected."""


_KEY_BYTES = 20
_KEY = frozenset("0123456789abcdef")


def new_file(content: bytes) -> StoredFile:
    """Return the metadata of a file to be stored, with a new random name."""
    return StoredFile(
        key=secrets.token_hex(_KEY_BYTES), size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest()
    )


def is_key(text: str) -> bool:
    """Return whether a text is a valid file name of a store."""
    return len(text) == 2 * _KEY_BYTES and _KEY.issuperset(text)


def check_key(key: str) -> None:
    """Raise StoredFileMissing for an invalid file name."""
    if not is_key(key):
        raise StoredFileMissing("not the name of a file")


def check_unaltered(file: StoredFile, content: bytes) -> None:
    """Raise StoredFileMissing if the bytes differ from those that were stored."""
    if len(content) != file.size_bytes or hashlib.sha256(content).hexdigest() != file.sha256:
        raise file_altered(file)


def file_missing(file: StoredFile) -> StoredFileMissing:
    """Return the error for a file that the store does not have."""
    return StoredFileMissing(f"no file {file.key}")


def file_altered(file: StoredFile) -> StoredFileMissing:
    """Return the error for a file that differs from the one stored."""
    return StoredFileMissing(f"file {file.key} is not what was kept")


APPLICATION_DOCUMENT_JOB: Final = "application.document"
"""Checks whether an application now has all of its documents; its object is the document."""


class DocumentRow(Row, frozen=True):
    """A document and its status; the columns of its file are None until there is one.

    A document of an application names it, and the related party it concerns. `name` is the file name given by its
    sender; size and hash are those of the sealed file. `created_at` and `uploaded_at` are business time.
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
        """The owner of the data key that seals its file: its owner, or the applicant."""
        return self.subject_id or self.customer_id

    @property
    def file(self) -> StoredFile | None:
        """The stored file, None until there is one."""
        if self.file_key is None or self.size_bytes is None or self.sha256 is None:
            return None
        return StoredFile(key=self.file_key, size_bytes=self.size_bytes, sha256=self.sha256)
