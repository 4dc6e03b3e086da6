"""Documents as both APIs show them."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from billfold.documents.types import DocumentRow


class Document(msgspec.Struct, kw_only=True):
    """A requested or uploaded document; `name` is its file's."""

    id: UUID
    type: str
    status: str
    exception_reason: str | None
    name: str | None
    object_type: Literal["Document"] = "Document"


class UploadedDocument(msgspec.Struct, kw_only=True):
    """A file was taken as a new document."""

    success: bool
    document_id: UUID


def render_document(row: DocumentRow) -> Document:
    """A document from its row."""
    return Document(
        id=row.document_id, type=row.type, status=row.status, exception_reason=row.exception_reason, name=row.name
    )
