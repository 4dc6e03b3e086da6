"""Rows of published agreements."""

from datetime import date, datetime
from uuid import UUID

import msgspec


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A version. `customer_id` is the bank itself, whose audit log proves the row; `published_at` wall time."""

    customer_id: UUID
    version: str
    release_date: date
    required_by: date | None
    published_at: datetime


class DocumentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of its texts: `content` is JSON, `pdf` its file, both as they were published."""

    customer_id: UUID
    version: str
    type: str
    document_no: int
    title: str
    category: str
    content: str
    pdf: bytes
