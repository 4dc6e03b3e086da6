"""A bank begins: its seed and its market in the database, the house and its partners enrolled.

Every step may be repeated: ids are derived from the seed, so what was done before a crash is
found and only the rest is done.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from billfold.accounts.commands import EnrolCustomer, OpenPocket
from billfold.bills.imports import write_packaged_market
from billfold.ledger.jobs.due_work import house_id
from billfold.platform.clock import ClockState, read_clock, write_clock
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

CALLER = "founding"
FACILITATION_WEEKS = 4
"""The strategy of the Pocket through which a partner funds its customers."""
DUMMY_NAME = "Dummy Customer Inc."
_DUMMY_PROFILE: dict[str, Any] = {
    "email": "treasury@dummy-customer.example",
    "phone_number": "+12125550100",
    "address": {
        "street_address": "1 Main Street",
        "city": "New York",
        "state": "NY",
        "postal_code": "10001",
        "country": "US",
    },
    "identification_number": {
        "identification_number": "00-0000000",
        "issuing_country": "US",
        "type": "EIN",
    },
}

_KEEP = """
INSERT INTO bank (seed, house_customer_id, founded_at, environment) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
"""


class AnotherBank(BillfoldError):
    """The database belongs to a bank with another seed, or of another environment."""

    def __init__(self, detail: str) -> None:
        super().__init__("unavailable", detail)


class Foundation(NamedTuple):
    """What the bank's own row says."""

    seed: bytes
    environment: str


class PartnerPlaces(NamedTuple):
    """The ids a partner has from its first moment: itself, customer, Pocket, user."""

    partner_id: UUID
    own_customer_id: UUID
    facilitation_pocket_id: UUID
    dummy_customer_id: UUID
    user_id: UUID


async def find_foundation(conn: Connection) -> Foundation | None:
    """Return what the bank was founded on, or None before that."""
    row = await conn.fetchrow("SELECT seed, environment FROM bank")
    return None if row is None else Foundation(*row)


async def lay_foundation(
    conn: Connection, *, seed: bytes, environment: str, clock_start: datetime, wall: datetime
) -> None:
    """Write the bank's row, its market, and in a sandbox its clock. Raises AnotherBank."""
    now = wall if environment == "production" else clock_start
    async with conn.transaction():
        await conn.execute(_KEEP, seed, house_id(seed), now, environment)
        found = await find_foundation(conn)
        assert found is not None
        _must_be(found, Foundation(seed, environment))
        if environment != "production" and await read_clock(conn) is None:
            await write_clock(conn, ClockState(clock_start, wall, frozen=True))
        await write_packaged_market(conn)


async def enrol_house(bank: Bank) -> None:
    """Make the customer that is the bank itself; its days are counted from here on."""
    await bank.engine.submit(
        EnrolCustomer(
            caller=CALLER,
            key=command_id(CALLER, "house"),
            customers=(house_id(bank.seed),),
            partner_id=None,
            role="house",
            type="BUSINESS",
            name=bank.settings.bank_name,
            profile={},
        )
    )


async def enrol_partner(bank: Bank, slug: str, name: str) -> PartnerPlaces:
    """Make a partner's own customer with its facilitation Pocket; in a sandbox a customer to try.

    The partner's row, users and keys are written by `domain.identity`, before or after.
    """
    places = partner_places(bank.seed, slug)
    await _enrol(bank, places.partner_id, places.own_customer_id, "partner", name, {})
    await bank.engine.submit(
        OpenPocket(
            caller=CALLER,
            key=command_id(CALLER, f"pocket:{slug}"),
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
        await _enrol(
            bank,
            places.partner_id,
            places.dummy_customer_id,
            "customer",
            DUMMY_NAME,
            _DUMMY_PROFILE,
        )
    return places


def partner_places(seed: bytes, slug: str) -> PartnerPlaces:
    """Return the ids of a partner, fixed by the bank's seed and the partner's slug."""
    command = command_id(CALLER, f"partner:{slug}")
    return PartnerPlaces(*(derive(seed, command, ordinal) for ordinal in range(5)))


async def _enrol(
    bank: Bank, partner_id: UUID, customer_id: UUID, role: str, name: str, profile: dict[str, Any]
) -> None:
    await bank.engine.submit(
        EnrolCustomer(
            caller=CALLER,
            key=command_id(CALLER, f"customer:{customer_id}"),
            customers=(customer_id,),
            partner_id=partner_id,
            role=role,
            type="BUSINESS",
            name=name,
            profile=profile,
        )
    )


def _must_be(found: Foundation, wanted: Foundation) -> None:
    if found.environment != wanted.environment:
        raise AnotherBank(
            f"The database holds a bank of environment {found.environment}, not"
            f" {wanted.environment}. Use another database."
        )
    if found.seed != wanted.seed:
        raise AnotherBank(
            "The database holds a bank with another seed. Give it its seed back, or start over"
            " with `billfold sandbox --fresh`."
        )
