"""Initializes a bank: its seed, market and clock in the database, and the bank's own customer.

Every step may be repeated: ids are derived from the seed, so what was done before a crash is
found and only the rest is done.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from billfold.access.partners.customers import enrol
from billfold.bills.imports import load_bundled_market
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.platform.clock import ClockState, read_clock, write_clock
from billfold.platform.errors import BillfoldError

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

_INSERT_BANK = """
INSERT INTO bank (seed, bank_customer_id, initialized_at, environment) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
"""


class BankConfigMismatch(BillfoldError):
    """The database belongs to a bank with another seed, or of another environment."""

    def __init__(self, detail: str) -> None:
        super().__init__("unavailable", detail)


class BankIdentity(NamedTuple):
    """What the bank's own row says."""

    seed: bytes
    environment: str


async def find_bank_identity(conn: Connection) -> BankIdentity | None:
    """Return what the bank was founded on, or None before that."""
    row = await conn.fetchrow("SELECT seed, environment FROM bank")
    return None if row is None else BankIdentity(*row)


async def initialize_bank(
    conn: Connection, *, seed: bytes, environment: str, clock_start: datetime, wall: datetime
) -> None:
    """Write the bank's row, its market, and in a sandbox its clock. Raises BankConfigMismatch."""
    now = wall if environment == "production" else clock_start
    async with conn.transaction():
        await conn.execute(_INSERT_BANK, seed, bank_customer_id(seed), now, environment)
        stored = await find_bank_identity(conn)
        assert stored is not None
        _check_identity(stored, BankIdentity(seed, environment))
        if environment != "production" and await read_clock(conn) is None:
            await write_clock(conn, ClockState(clock_start, wall, frozen=True))
        await load_bundled_market(conn)


async def create_bank_customer(bank: Bank) -> None:
    """Create the customer that is the bank itself; its days are counted from here on."""
    customer_id, name = bank_customer_id(bank.seed), bank.settings.bank_name
    await enrol(bank, customer_id, "house", partner_id=None, name=name, key="house")


def _check_identity(stored: BankIdentity, expected: BankIdentity) -> None:
    if stored.environment != expected.environment:
        raise BankConfigMismatch(
            f"The database holds a bank of environment {stored.environment}, not"
            f" {expected.environment}. Use another database."
        )
    if stored.seed != expected.seed:
        raise BankConfigMismatch(
            "The database holds a bank with another seed. Give it its seed back, or start over"
            " with `billfold sandbox --fresh`."
        )
