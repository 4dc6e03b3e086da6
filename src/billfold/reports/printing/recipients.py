"""To whom a document is addressed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.accounts.profiles import open_profile
from billfold.accounts.addresses import (address_of)
from billfold.ledger.directory.store import find_customer
from billfold.platform.errors import NotFound
from billfold.reports.printing.printing import printed

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank


async def recipient_of(bank: Bank, customer_id: UUID) -> list[str]:
    """Return the name of a customer and the lines of its address, as far as it is known."""
    row = await find_customer(bank.pool, customer_id)
    if row is None:
        raise NotFound("There is no such customer.")
    address = address_of(await open_profile(bank, row))
    if address is None:
        return [printed(row.name)]
    region = " ".join(part for part in (address.state, address.postal_code) if part)
    country = "" if address.country == "US" else address.country
    lines = (row.name, address.street_address, address.street_address2, f"{address.city}, {region}", country)
    return [printed(line) for line in lines if line]
