"""The customers that a partner has from its first moment, with ids fixed by the bank's seed and its slug.

Every step may be repeated: what was done before a crash is found and only the rest is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from billfold.accounts.agreements.types import AcceptedBy, Consent
from billfold.accounts.pockets.commands import (OpenPocket)
from billfold.accounts.customers.commands import (EnrolCustomer)
from billfold.accounts.profiles import seal_profile
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

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
    """The ids a partner has from its first moment: itself, customer, Pocket, user."""

    partner_id: UUID
    own_customer_id: UUID
    facilitation_pocket_id: UUID
    sandbox_customer_id: UUID
    user_id: UUID


def partner_ids(seed: bytes, slug: str) -> PartnerIds:
    """Return the ids of a partner, fixed by the bank's seed and the partner's slug."""
    command = command_id(INITIALIZATION_CALLER, f"partner:{slug}")
    return PartnerIds(*(derive(seed, command, ordinal) for ordinal in range(5)))


async def create_partner_customers(bank: Bank, slug: str, name: str) -> PartnerIds:
    """Create a partner's own customer with its facilitation Pocket, and in a sandbox a customer to try.

    The partner's row, users and keys are written before or after.
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
    """Return that an operator accepts the agreements in force for a customer to try."""
    now = await bank.now()
    version = bank.terms.agreements.in_force(et_date(now))
    return None if version is None else Consent(version=version, accepted_at=now, accepted_by=AcceptedBy.OPERATOR)
