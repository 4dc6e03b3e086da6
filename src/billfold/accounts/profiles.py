"""The profile of a customer, sealed on the way in and decrypted on the way out."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from billfold.data_keys.keys import CUSTOMER_PROFILE, DataKeys, open_column
from billfold.ledger.bank import Bank
from billfold.ledger.customers import CustomerRow


async def seal_profile(bank: Bank, customer_id: UUID, profile: Mapping[str, Any]) -> str | None:
    """Return a profile as commands carry it: sealed, None if it is empty."""
    if not profile:
        return None
    data_key = await bank.ports[DataKeys].of(bank.pool, customer_id)
    return CUSTOMER_PROFILE.seal(data_key, customer_id, msgspec.json.encode(profile).decode())


async def open_profiles(bank: Bank, rows: Sequence[CustomerRow]) -> list[CustomerRow]:
    """Return customers with their profiles in plain text; empty if it was destroyed with its key."""
    values = [(row.customer_id, row.customer_id, row.profile) for row in rows]
    opened = await open_column(bank.ports[DataKeys], bank.pool, CUSTOMER_PROFILE, values)
    return [msgspec.structs.replace(row, profile=profile or "{}") for row, profile in zip(rows, opened, strict=True)]


async def open_profile(bank: Bank, row: CustomerRow) -> CustomerRow:
    """Return a customer with its profile in plain text."""
    return (await open_profiles(bank, (row,)))[0]
