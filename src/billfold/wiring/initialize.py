"""Initializes a bank: its seed and market in the database, the bank's own customer and its partners.

Every step may be repeated: ids are derived from the seed, so what was done before a crash is
found and only the rest is done.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from billfold.accounts.commands import EnrolCustomer, OpenPocket
from billfold.bills.imports import load_bundled_market
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.platform.clock import ClockState, read_clock, write_clock
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

INITIALIZATION_CALLER = "founding"
FACILITATION_WEEKS = 4
"""The strategy of the Pocket through which a partner funds its customers."""
SANDBOX_CUSTOMER_NAME = "Dummy Customer Inc."
_SANDBOX_CUSTOMER_PROFILE: dict[str, Any] = {
    "email": "treasury@dummy-customer.example",
    "phone_number": "+12125550100",
    "address": {
        "street_address": "1 Main Street",
        "city": "New York",
        "state": "NY",
        "postal_code": "10001",
        "country": "US",
    },
    "identification_number": {"identification_number": "00-0000000", "issuing_country": "US", "type": "EIN"},
}

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


class PartnerIds(NamedTuple):
    """The ids a partner has from its first moment: itself, customer, Pocket, user."""

    partner_id: UUID
    own_customer_id: UUID
    facilitation_pocket_id: UUID
    sandbox_customer_id: UUID
    user_id: UUID


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
    """Make the customer that is the bank itself; its days are counted from here on."""
    await bank.engine.submit(
        EnrolCustomer(
            caller=INITIALIZATION_CALLER,
            key=command_id(INITIALIZATION_CALLER, "house"),
            customers=(bank_customer_id(bank.seed),),
            partner_id=None,
            role="house",
            type="BUSINESS",
            name=bank.settings.bank_name,
            profile={},
        )
    )


async def create_partner_customers(bank: Bank, slug: str, name: str) -> PartnerIds:
    """Make a partner's own customer with its facilitation Pocket; in a sandbox a customer to try.

    The partner's row, users and keys are written by `domain.identity`, before or after.
    """
    places = partner_ids(bank.seed, slug)
    await _create_customer(bank, places.partner_id, places.own_customer_id, role="partner", name=name, profile={})
    await bank.engine.submit(
        OpenPocket(
            caller=INITIALIZATION_CALLER,
            key=command_id(INITIALIZATION_CALLER, f"pocket:{slug}"),
            customers=(places.own_customer_id,),
            partner_id=places.partner_id,
            name="Facilitation",
            deposit_weeks=FACILITATION_WEEKS,
            reinvestment_weeks=FACILITATION_WEEKS,
            type="FACILITATION",
            pocket_id=places.facilitation_pocket_id,
        )
    )
    if not bank.settings.is_production:
        await _create_customer(
            bank,
            places.partner_id,
            places.sandbox_customer_id,
            role="customer",
            name=SANDBOX_CUSTOMER_NAME,
            profile=_SANDBOX_CUSTOMER_PROFILE,
        )
    return places


def partner_ids(seed: bytes, slug: str) -> PartnerIds:
    """Return the ids of a partner, fixed by the bank's seed and the partner's slug."""
    command = command_id(INITIALIZATION_CALLER, f"partner:{slug}")
    return PartnerIds(*(derive(seed, command, ordinal) for ordinal in range(5)))


async def _create_customer(
    bank: Bank, partner_id: UUID, customer_id: UUID, role: str, name: str, profile: dict[str, Any]
) -> None:
    await bank.engine.submit(
        EnrolCustomer(
            caller=INITIALIZATION_CALLER,
            key=command_id(INITIALIZATION_CALLER, f"customer:{customer_id}"),
            customers=(customer_id,),
            partner_id=partner_id,
            role=role,
            type="BUSINESS",
            name=name,
            profile=profile,
        )
    )


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
