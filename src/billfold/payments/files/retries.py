"""What goes wrong with a file of theirs holds up no other: it waits, longer each time."""

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
"""The database is away: that is no fault of any file, and all of them wait for it."""
_SUMMARY_CHARS_MAX = 300


def error_summary(error: Exception) -> str:
    """Return an error in one line. What follows in a database's own words may hold a row."""
    text = error.detail if isinstance(error, BillfoldError) else repr(error)
    return (text.splitlines() or [type(error).__name__])[0][:_SUMMARY_CHARS_MAX]


async def postpone_file(bank: Bank, file: RailFile, *, error: str | None = None, **fields: object) -> bytes:
    """Let a file be tried again later; return its report, to which this adds what is `told`."""
    report = await exceptions.schedule_retry(bank.pool, file, wall=wall_now(), error=error, **fields)
    retry = msgspec.json.decode(report, type=RetryState)
    log.error("rail_file_postponed", name=file.name, tries=retry.tries, error=retry.words())
    return report
