"""The types of a connection, of the pool of them, and of either: what runs one statement takes `Db`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import asyncpg

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
    Db: TypeAlias = Connection | Pool
else:
    Connection, Pool = asyncpg.Connection, asyncpg.Pool  # take no parameters at run time
    Db = Connection | Pool
