"""A bank or a database connection for the duration of one command; text files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from billfold.cli.context import CliContext, CliError
from billfold.platform.database.connect import connect
from billfold.platform.database.pool import create_pool
from billfold.platform.logs import configure_logging

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection)

Result = TypeVar("Result")


def read_text_file(path: Path) -> str:
    """Return the text of a file. Raises CliError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror}.", "Name another file.") from None
    except UnicodeDecodeError:
        raise CliError(f"{path} is not a text.", "Name another file.") from None


async def with_connection(dsn: str, work: Callable[[Connection], Awaitable[Result]]) -> Result:
    """Do the work on a connection of its own, as whom the address names."""
    conn = await connect(dsn)
    try:
        return await work(conn)
    finally:
        await conn.close()


def run_with_bank(context: CliContext, work: Callable[[Bank], Awaitable[Result]]) -> Result:
    """Open the bank, do the work, close it. Starts the embedded database if it is not running."""
    settings = context.settings()
    configure_logging("ERROR")  # a command says itself what came of it
    with context.database(settings, _ignore) as database:

        async def run() -> Result:
            async with context.bank(settings, database.dsn) as bank:
                return await work(bank)

        return asyncio.run(run())


def run_with_connection(context: CliContext, work: Callable[[Connection], Awaitable[Result]]) -> Result:
    """Connect to the database, do the work, let go. The bank need not be founded."""
    settings = context.settings()
    with context.database(settings, _ignore) as database:

        async def run() -> Result:
            pool = await create_pool(database.dsn, max_size=2)
            async with pool, pool.acquire() as conn:
                return await work(conn)

        return asyncio.run(run())


def _ignore(_: str) -> None:
    pass
