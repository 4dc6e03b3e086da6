"""A bank, a database or a file lent to one command and given back at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from billfold.cli.context import CannotGoOn, Ground
from billfold.platform.database.pool import create_pool
from billfold.platform.logs import configure_logs

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

Result = TypeVar("Result")


def text_of(path: Path) -> str:
    """Return the text of a file that a person named. Raises CannotGoOn."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CannotGoOn(
            f"{path} cannot be read: {error.strerror}.", "Name another file."
        ) from None
    except UnicodeDecodeError:
        raise CannotGoOn(f"{path} is not a text.", "Name another file.") from None


def with_bank(ground: Ground, work: Callable[[Bank], Awaitable[Result]]) -> Result:
    """Open the bank, do the work, close it. Starts the embedded database when nobody has."""
    settings = ground.settings()
    configure_logs("ERROR")  # a command says itself what came of it
    with ground.database(settings, _quiet) as database:

        async def run() -> Result:
            async with ground.bank(settings, database.dsn) as bank:
                return await work(bank)

        return asyncio.run(run())


def with_database(ground: Ground, work: Callable[[Connection], Awaitable[Result]]) -> Result:
    """Connect to the database, do the work, let go. The bank need not be founded."""
    settings = ground.settings()
    with ground.database(settings, _quiet) as database:

        async def run() -> Result:
            pool = await create_pool(database.dsn, max_size=2)
            async with pool, pool.acquire() as conn:
                return await work(conn)

        return asyncio.run(run())


def _quiet(_: str) -> None:
    pass
