"""Files of the rails, and the reasons to refuse or not to complete one."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

MISTAKES_MAX = 100
"""Maximum number of errors reported per file."""


class SealedContent(NamedTuple):
    """The content of a file as stored, and the keyed digest that identifies the plain content."""

    content: bytes
    digest: bytes


class RailFile(msgspec.Struct, frozen=True):
    """One file without its content, which `digest` recognizes. `report` is JSON text."""

    file_id: UUID
    rail: str
    direction: str
    name: str
    digest: bytes
    state: str
    report: str | None
    size_bytes: int
    created_at: datetime
    done_at: datetime | None


class DuplicateFile(Exception):
    """A file with the same content was received before, under any name."""

    def __init__(self, name: str, at: datetime) -> None:
        super().__init__(f"The same content arrived as {name} on {at:%Y-%m-%d}.")


class OversizedFile(Exception):
    """A file is too large to be read into memory."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The file is larger than {limit // 2**20} MiB.")


class InvalidFile(ValueError):
    """A file is refused as a whole. `mistakes` lists the first hundred errors, in the format of its rail."""

    def __init__(self, mistakes: Sequence[Any]) -> None:
        self.mistakes = tuple(mistakes[:MISTAKES_MAX])
        super().__init__("; ".join(map(str, self.mistakes[:3])))


class StuckLine(msgspec.Struct, frozen=True):
    """A line of a file that cannot be booked, with its error.

    `refused` counts refusals by a rule: a refusal is stored under its idempotency key, so a retry needs a new one.
    """

    line: int
    trace: str
    error: str
    refused: int = 0


RETRY_FIELDS = frozenset({"tries", "again_at"})
"""The fields that a report has only while its file waits."""


class RetryState(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why a file is not completed: stuck lines, or an error of the whole file."""

    tries: int
    again_at: datetime
    error: str | None = None
    stuck: list[StuckLine] = []

    def words(self) -> str:
        """Return the first error with its line, and how many more lines are stuck."""
        if not self.stuck:
            return self.error or ""
        first, more = self.stuck[0], len(self.stuck) - 1
        text = self.error or f"line {first.line}: {first.error}"
        return f"{text} (and {more} more)" if more else text


SETTLEMENT_LOOKBACK = timedelta(days=14)
"""Search window for trades that missed the close of their day."""
