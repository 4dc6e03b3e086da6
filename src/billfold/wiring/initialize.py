"""Initializes a bank: its seed, market and clock in the database, and the bank's own customer.

Every step may be repeated: ids are derived from the seed, so steps completed before a crash are
found and only the rest is done.
"""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import billfold
from billfold.accounts.customers.partner_customers import enrol
from billfold.bills.imports import load_bundled_market
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank, bank_customer_id
from billfold.ledger.types import Origin
from billfold.onboarding.agreements.publishing import Publisher, publish_first
from billfold.platform.clock import ClockState
from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.business_clock import read_clock, write_clock
from billfold.platform.database.connection import Connection
from billfold.platform.settings.settings import Settings
from billfold.screening.store import read_list, replace_current
from billfold.treasury.market_log import begin_market_log

_INSERT_BANK = """
INSERT INTO bank (seed, bank_customer_id, initialized_at, environment, key_check, domain)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
"""
_BANK = "SELECT seed, environment, key_check, domain FROM bank"
_SET_CHECKS = "UPDATE bank SET key_check = $1, domain = $2"
_SEALED_EARLIER = "SELECT sealed FROM partner_secret ORDER BY created_at DESC LIMIT 1"
_KEY_CHECK = associated_data("bank", "key_check", "bank", "bank")
_SANDBOX_LIST = Path(billfold.__file__).parent / "sandbox" / "scenarios" / "sanctions.xml"
_START_OVER = "or start over with `billfold sandbox --fresh`."


class BankConfigMismatch(CliError):
    """The settings are not those of the bank in the database."""


class BankIdentity(NamedTuple):
    """The bank's own row; `key_check` and `domain` are None until `billfold migrate up`."""

    seed: bytes
    environment: str
    key_check: bytes | None = None
    domain: str | None = None


async def find_bank_identity(conn: Connection) -> BankIdentity | None:
    """Return the parameters the bank was created with, or None before that."""
    row = await conn.fetchrow(_BANK)
    return None if row is None else BankIdentity(*row)


async def initialize_bank(
    conn: Connection, settings: Settings, *, seed: bytes, vault: Vault, wall: datetime, new_domain: bool = False
) -> None:
    """Write the bank's row, its market, and in a sandbox its clock. Raises BankConfigMismatch.

    `new_domain`: the bank moves to the domain of the settings.
    """
    now = wall if settings.is_production else settings.clock_start
    key_check = vault.seal(b"", _KEY_CHECK)
    async with conn.transaction():
        row = (seed, bank_customer_id(seed), now, settings.environment, key_check, settings.domain)
        await conn.execute(_INSERT_BANK, *row)
        stored = await find_bank_identity(conn)
        assert stored is not None
        if stored.key_check is None:  # created by an earlier release
            stored = stored._replace(key_check=await conn.fetchval(_SEALED_EARLIER) or key_check)
        domain = settings.domain if new_domain else stored.domain
        check_identity(stored._replace(domain=domain), replace(settings, seed=seed), vault)
        await conn.execute(_SET_CHECKS, key_check, domain or settings.domain)
        if not settings.is_production and await read_clock(conn) is None:
            await write_clock(conn, ClockState(settings.clock_start, wall, frozen=True))
            await replace_current(conn, read_list(_SANDBOX_LIST), now=wall)
        await load_bundled_market(conn)
        await begin_market_log(conn, vault)
        publisher = Publisher(bank_customer_id(stored.seed), settings.bank_name, vault, Origin.system())
        await publish_first(conn, publisher, now=wall)


def check_identity(stored: BankIdentity, settings: Settings, vault: Vault) -> None:
    """Compare the settings with the bank in the database. Raises BankConfigMismatch."""
    if stored.environment != settings.environment:
        raise BankConfigMismatch(
            f"The database holds a bank of environment {stored.environment}, not {settings.environment}.",
            "Set BILLFOLD_ENVIRONMENT, or use another database.",
        )
    if settings.seed not in {None, stored.seed}:
        raise BankConfigMismatch(
            "The database holds a bank with another seed.", f"Set BILLFOLD_SEED to its seed, {_START_OVER}"
        )
    if stored.key_check is not None and not vault.has_key_of(stored.key_check):
        raise BankConfigMismatch(
            "The encryption key is not the key of the bank in the database.",
            "Set BILLFOLD_ENCRYPTION_KEY (a sandbox: its file encryption.key) to the bank's key, or name its earlier"
            " key in BILLFOLD_RETIRED_ENCRYPTION_KEYS.",
        )
    if settings.is_production and stored.domain not in {None, settings.domain}:
        raise BankConfigMismatch(
            f"The bank's domain is {stored.domain}, not {settings.domain}: its links and passkeys name it.",
            "Set BILLFOLD_DOMAIN, or move the bank with `billfold migrate up --new-domain`.",
        )


async def reseal_key_check(conn: Connection, stored: BankIdentity, vault: Vault) -> None:
    """Record a change of the key: from now on the former key alone cannot open the bank."""
    if stored.key_check is not None and not vault.is_current(stored.key_check):
        await conn.execute(_SET_CHECKS, vault.seal(b"", _KEY_CHECK), stored.domain)


async def create_bank_customer(bank: Bank) -> None:
    """Create the customer that is the bank itself; its business days start now."""
    customer_id, name = bank.own_id, bank.settings.bank_name
    await enrol(bank, customer_id, "house", partner_id=None, name=name, key="house")
