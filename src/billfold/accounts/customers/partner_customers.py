"""The initial customers of a partner, with ids derived from the bank's seed and its slug.

Every step may be repeated: steps completed before a crash are found, and only the rest is done.
"""

import secrets
from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from billfold.accounts.agreements.rules import AcceptedBy, Consent
from billfold.accounts.customers.commands import EnrolCustomer
from billfold.accounts.pockets.commands import OpenPocket
from billfold.accounts.profiles import seal_profile
from billfold.identity.partners import credentials, rules, store
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id, derive

PASSWORD_BYTES = 24
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


class PartnerIds(NamedTuple):
    """The ids of a new partner: itself, its customer, Pocket and user."""

    partner_id: UUID
    own_customer_id: UUID
    facilitation_pocket_id: UUID
    sandbox_customer_id: UUID
    user_id: UUID


def partner_ids(seed: bytes, slug: str) -> PartnerIds:
    """Return the ids of a partner, derived from the bank's seed and the partner's slug."""
    command = command_id(INITIALIZATION_CALLER, f"partner:{slug}")
    return PartnerIds(*(derive(seed, command, ordinal) for ordinal in range(5)))


async def create_partner_customers(bank: Bank, slug: str, name: str) -> PartnerIds:
    """Create a partner's own customer with its facilitation Pocket, and in a sandbox a test customer.

    The caller writes the partner's row, users and keys before or after.
    """
    places = partner_ids(bank.seed, slug)
    await enrol(bank, places.own_customer_id, "partner", partner_id=places.partner_id, name=name)
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
        await enrol(
            bank,
            places.sandbox_customer_id,
            "customer",
            partner_id=places.partner_id,
            name=SANDBOX_CUSTOMER_NAME,
            profile=_SANDBOX_CUSTOMER_PROFILE,
        )
    return places


async def enrol(
    bank: Bank,
    customer_id: UUID,
    role: str,
    *,
    partner_id: UUID | None,
    name: str,
    profile: dict[str, Any] | None = None,
    key: str | None = None,
) -> None:
    """Enrol a business during initialization, once per `key` (its own by default)."""
    await bank.engine.submit(
        EnrolCustomer(
            caller=INITIALIZATION_CALLER,
            key=command_id(INITIALIZATION_CALLER, key or f"customer:{customer_id}"),
            customers=(customer_id,),
            partner_id=partner_id,
            role=role,
            type="BUSINESS",
            name=name,
            profile=await seal_profile(bank, customer_id, profile or {}),
            consent=await _consent(bank) if role == "customer" else None,
        )
    )


async def _consent(bank: Bank) -> Consent | None:
    """Return the acceptance of the agreements in force, by an operator for the test customer."""
    now = await bank.now()
    version = bank.terms.agreements.in_force(et_date(now))
    return None if version is None else Consent(version=version, accepted_at=now, accepted_by=AcceptedBy.OPERATOR)


class NewCredentials(NamedTuple):
    """The credentials of a new partner, shown once, and the ids of its rows."""

    username: str
    password: str
    shared_secret: str
    places: PartnerIds


async def make_partner(bank: Bank, slug: str, name: str, username: str, features: Iterable[str] = ()) -> NewCredentials:
    """Create a partner with one user. Raises InvalidInput, Refused `duplicate-id`."""
    rules.check_slug(slug)
    rules.check_name(name)
    places = partner_ids(bank.seed, slug)
    password = new_password()
    # Enrolled first: after a crash the customer is found again, and nobody can call yet.
    async with bank.pool.acquire() as conn:
        if await store.find_partner(conn, slug) is None:
            await create_partner_customers(bank, slug, name)
        async with conn.transaction():
            created = await credentials.create_partner(
                conn,
                bank.vault,
                slug=slug,
                name=name,
                partner_id=places.partner_id,
                own_customer_id=places.own_customer_id,
                rate_per_minute=bank.settings.rate_limit_per_minute,
                money_per_minute=bank.settings.money_rate_limit_per_minute,
                now=wall_now(),
                features=features,
            )
            await credentials.create_partner_user(
                conn, created.partner_id, username=username, password=password, now=wall_now(), user_id=places.user_id
            )
    return NewCredentials(username, password, created.shared_secret, places=places)


def new_password() -> str:
    """Return a random password."""
    return secrets.token_urlsafe(PASSWORD_BYTES)
