"""What goes wrong with a file of theirs holds up no other: it waits, longer each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import msgspec
import structlog

from billfold.payments.files import exceptions
from billfold.payments.files.exceptions import Trouble
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError, Unavailable

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.files.store import RailFile

log = structlog.get_logger(__name__)

AWAY = (
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
_WORDS = 300


def said(error: Exception) -> str:
    """Return an error in one line. What follows in a database's own words may hold a row."""
    whole = error.detail if isinstance(error, BillfoldError) else repr(error)
    return (whole.splitlines() or [type(error).__name__])[0][:_WORDS]


async def let_wait(
    bank: Bank, file: RailFile, *, error: str | None = None, **told: object
) -> bytes:
    """Let a file be tried again later; return its report, to which this adds what is `told`."""
    report = await exceptions.note_trouble(bank.pool, file, wall=wall_now(), error=error, **told)
    waits = msgspec.json.decode(report, type=Trouble)
    log.error("rail_file_waits", name=file.name, tries=waits.tries, error=waits.words())
    return report
