"""A document as stored."""

from datetime import datetime
from typing import Final
from uuid import UUID

from billfold.documents.ports import StoredFile
from billfold.platform.database.rows import Row

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
