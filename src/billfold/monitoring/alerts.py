"""Owners of alerts: an operator takes a check that fails, and puts it down again."""

from datetime import datetime
from typing import NamedTuple

from billfold.identity.operators import Operator, recorded_action
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection

_OWNERS = "SELECT name, owner, taken_at FROM alert"
_TAKE = """
INSERT INTO alert (name, owner, taken_at) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, taken_at = excluded.taken_at
"""
_PUT_DOWN = "DELETE FROM alert WHERE name = $1"


class AlertOwner(NamedTuple):
    """The operator who looks after an alert, and since when."""

    name: str
    owner: str
    taken_at: datetime


async def list_owners(conn: Connection) -> dict[str, AlertOwner]:
    """Return the owners of alerts by the names of their checks."""
    return {row["name"]: AlertOwner(*row) for row in await conn.fetch(_OWNERS)}


async def take_alert(bank: Bank, name: str, *, by: Operator) -> None:
    """Make an operator the owner of an alert, in place of any other."""
    async with recorded_action(bank, by, "alert.take", ("alert", name)):
        await bank.pool.execute(_TAKE, name, by.name, wall_now())


async def put_down_alert(bank: Bank, name: str, *, by: Operator) -> None:
    """Leave an alert without an owner."""
    async with recorded_action(bank, by, "alert.put_down", ("alert", name)):
        await bank.pool.execute(_PUT_DOWN, name)
