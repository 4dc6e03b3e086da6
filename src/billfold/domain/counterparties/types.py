"""Whom a customer pays, as the flows see it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec


class Payee(msgspec.Struct, frozen=True, kw_only=True):
    """A counterparty: what it is, where it stands, and what was said of its account.

    `details` are the fields of its variant: `routing_number`, `account_number`, `account_type` of
    an `ach` one; `routing_number`, `identifier`, `identifier_type`, `address`, `wire_instructions`
    of wires, where the routing number of an international one is a BIC; `chain`,
    `wallet_address`, `asset` of a wallet. `verification` is what `rules.begun` makes.
    """

    counterparty_id: UUID
    type: str
    status: str
    name: str
    """In one line: "Ada Stone"."""
    verification: dict[str, Any]
    details: dict[str, Any]
    target_customer_id: UUID | None = None
    target_pocket_id: UUID | None = None
