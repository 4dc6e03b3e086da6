"""A file as it is kept, and the URL by which it is downloaded."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

import msgspec

from billfold.documents.ports import StoredFile

URL_LIFETIME: Final = timedelta(minutes=10)
"""How long a temporary URL is valid, in wall time."""
PART_BYTES: Final = 4 * 1024 * 1024
"""How much of a file is in memory at once: each part is sealed and stored by itself."""


class ReportFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a customer: what it is called, and what proves its content unchanged. `created_at` is business time.

    The name is ASCII: letters, digits, dots, underscores and hyphens.
    """

    customer_id: UUID
    file_id: UUID
    name: str
    media_type: str
    size_bytes: int
    sha256: str
    created_at: datetime
    proof: str | None = None
    """What lies beside a file that has no place for the bank's signature."""


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file whose parts are in the store, before its row is written."""

    file: ReportFile
    parts: Sequence[StoredFile]


class Downloadable(Protocol):
    """What a temporary URL is of: a file of a customer."""

    @property
    def customer_id(self) -> UUID:
        """Whose it is."""

    @property
    def file_id(self) -> UUID:
        """Which file."""


class TemporaryUrl(msgspec.Struct, frozen=True, kw_only=True):
    """Where a file can be downloaded without a token, and until when, in wall time."""

    url: str
    expires_at: datetime
