"""Inbound files that fail are retried later and block no other file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import msgspec
import structlog

from billfold.payments.files import exceptions
from billfold.payments.files.exceptions import RetryState
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError, Unavailable

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.files.store import RailFile

log = structlog.get_logger(__name__)

DATABASE_UNAVAILABLE = (
    Unavailable,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    ConnectionError,
    TimeoutError,
)
"""Errors of an unreachable database: they postpone no file; all files wait for the database."""
_SUMMARY_CHARS_MAX = 300


def error_summary(error: Exception) -> str:
    """Return an error in one line. Later lines of a database error may contain row data."""
    text = error.detail if isinstance(error, BillfoldError) else repr(error)
    return (text.splitlines() or [type(error).__name__])[0][:_SUMMARY_CHARS_MAX]


async def postpone_file(bank: Bank, file: RailFile, *, error: str | None = None, **fields: object) -> bytes:
    """Schedule the next retry of a file and log it; return its report, extended by `fields`."""
    report = await exceptions.schedule_retry(bank.pool, file, wall=wall_now(), error=error, **fields)
    retry = msgspec.json.decode(report, type=RetryState)
    log.error("rail_file_postponed", name=file.name, tries=retry.tries, error=retry.words())
    return report
