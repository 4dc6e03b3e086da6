"""An unavailable, full or exhausted database is not a bug: the attempt is repeated, and then answered with 503."""

import asyncio
import errno
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg
import structlog

from billfold.platform.clock import monotonic
from billfold.platform.errors import BillfoldError, Unavailable

log = structlog.get_logger(__name__)
Result = TypeVar("Result")

PATIENCE_SECONDS = 20.0
"""Maximum time that a request waits for an unavailable database."""
RETRY_AFTER_SECONDS = 1
PAUSE_SECONDS = 0.2
"""Pause between two attempts."""
_SUMMARY_CHARS_MAX = 300

_SHORTAGES = (
    Unavailable,
    # SQLSTATE classes 08, 53 and 57P: not reachable, no disk space or connection left, shut down.
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.AdminShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.CrashShutdownError,
    asyncpg.DatabaseDroppedError,
    asyncpg.PostgresIOError,
    # 25006 and 57014: a standby that is not the primary yet, a statement longer than the server allows.
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.QueryCanceledError,
    # 40P01: a batch and the end of a move of shards waited for each other.
    asyncpg.DeadlockDetectedError,
    # The driver's messages for a connection that ended, also if the server's last message came between two statements.
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
    TimeoutError,
)
_NODE_LOST = re.compile(
    "failure on connection marked as essential|(server closed the|terminating) connection|connection not open|"
    "could not (receive|send) data (from|to) server|no connection to the server|postmaster was shut down"
)
"""The beginnings of what a coordinator of a cluster says, as an internal error, of a node that it has lost."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Patience:
    """Waits out a shortage for all callers together: later callers do not start over."""

    def __init__(self) -> None:
        self._since: float | None = None

    async def wait(self, error: Exception) -> None:
        """Wait before the next attempt. Raises Unavailable after too many, and any error that is not a shortage."""
        if isinstance(error, Unavailable) or not is_shortage(error):
            try:
                raise error
            finally:
                del error  # its traceback has this frame: a cycle, which only the garbage collector would free
        if self._since is None:
            self._since = monotonic()
            log.warning("database_unavailable", error=error_summary(error))
        if monotonic() - self._since > PATIENCE_SECONDS:
            raise database_unavailable() from error
        await asyncio.sleep(PAUSE_SECONDS)

    def begin(self, since: float) -> None:
        """Record that the database has not answered since then."""
        self._since = min(since, self._since or since)

    def end(self) -> None:
        """Record that the database works."""
        self._since = None


async def patiently(work: Callable[[], Awaitable[Result]]) -> Result:
    """Run an idempotent action, repeating it while the database has a shortage."""
    patience = Patience()
    while True:
        try:
            return await work()
        except Exception as error:  # noqa: BLE001 - raised again unless it is a shortage
            await patience.wait(error)


def error_summary(error: BaseException) -> str:
    """Return an error in one line. Later lines of a database error may contain row data."""
    text = error.detail if isinstance(error, BillfoldError) else repr(error)
    return (text.splitlines() or [type(error).__name__])[0][:_SUMMARY_CHARS_MAX]


_NAMED = re.compile(r"(line \d+: )?(?:\w+\.)*(gaierror|[A-Z]\w*(?:Error|Timeout|Exception))[(:]")
_PLAIN = {
    "TimeoutError": "it did not answer in time",
    "ConnectionRefusedError": "the connection was refused",
    "ConnectionResetError": "the connection was lost",
    "gaierror": "the name of its host is unknown",
    "SSLCertVerificationError": "its certificate is not trusted",
    "SSLError": "no encrypted connection was made",
    "PermissionError": "a file may not be opened",
    "FileNotFoundError": "a file is missing",
    "ConnectError": "no connection was made",
    "ReadTimeout": "it did not answer in time",
    "ConnectTimeout": "it did not answer in time",
}


def plain_error(summary: str) -> str:
    """Return what an `error_summary` says to people who do not read code; a text of the bank's own is left as it is."""
    named = _NAMED.match(summary)
    if named is None:
        return summary
    return (named[1] or "") + _PLAIN.get(named[2], "an unexpected error stopped it")


def database_unavailable() -> Unavailable:
    """Return the error for an action that is impossible at the moment."""
    return Unavailable("The database is unavailable, or its disk is full.", retry_after_seconds=RETRY_AFTER_SECONDS)


def is_shortage(error: BaseException) -> bool:
    """Tell whether a retry may succeed: the database or the disk is unavailable, full or exhausted."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_shortage, error.exceptions))
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return True
    if isinstance(error, asyncpg.InternalServerError) and _NODE_LOST.match(str(error)):
        return True
    # The driver's errors that are also ValueErrors concern its arguments.
    return isinstance(error, _SHORTAGES) and not isinstance(error, ValueError)
