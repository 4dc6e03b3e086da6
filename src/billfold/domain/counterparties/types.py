"""What a counterparty is to whoever decides about money."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec


class Payee(msgspec.Struct, frozen=True, kw_only=True):
    """A counterparty as flows see it. `details` are the fields of its variant, normalised."""

    counterparty_id: UUID
    type: str
    status: str
    counterparty_name: dict[str, Any]
    verification: dict[str, Any]
    details: dict[str, Any]
    target_customer_id: UUID | None = None
    target_pocket_id: UUID | None = None

    @property
    def name(self) -> str:
        """The name in one line."""
        name = self.counterparty_name
        if name.get("type") == "business":
            return str(name["business_name"])
        return f"{name['first_name']} {name['last_name']}"
