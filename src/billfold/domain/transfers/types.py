"""An on-us transfer as it was ordered: what is stored with it, beside the columns of its row."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec


class TransferOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the payer ordered. Stored as JSON under these names; names of older rows are ignored.

    `content_hash` is the SHA-256 of the request that created it, in hexadecimal: the same
    transfer id with another content is refused.
    """

    counterparty_id: UUID | None = None
    transfer_type: Literal["BANK_TRANSFER", "SECURITY_TRANSFER"] | None = None
    description: str | None = None
    end_to_end_identification: str | None = None
    source: str | None = None
    target: str | None = None
    async_mode: bool = False
    content_hash: str = ""

    @property
    def referenced(self) -> tuple[UUID, ...]:
        """Return the ids of what the order names beside its Pockets."""
        return () if self.counterparty_id is None else (self.counterparty_id,)

    @property
    def in_kind(self) -> bool:
        """Tell whether the bills themselves move."""
        return self.transfer_type == "SECURITY_TRANSFER"
