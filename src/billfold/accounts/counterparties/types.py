"""A counterparty as payments see it, and as it is stored."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from asyncpg import Record
from typing_extensions import override

from billfold.platform.crypto import fingerprint
from billfold.platform.database.rows import Row

_decode = msgspec.json.Decoder().decode


class CounterpartyStatus(StrEnum):
    """Only a LINKED or VERIFIED one may be paid."""

    PENDING = "PENDING"
    LINKED = "LINKED"
    VERIFIED = "VERIFIED"
    UNLINKED = "UNLINKED"


class SanctionsStatus(StrEnum):
    """The screening result of a counterparty's names. Only a CLEAR one may be paid; CONFIRMED is final.

    PENDING until they are compared with the list in force; OPEN while a hit is not decided.
    """

    PENDING = "PENDING"
    CLEAR = "CLEAR"
    OPEN = "OPEN"
    CONFIRMED = "CONFIRMED"


class Payee(msgspec.Struct, frozen=True, kw_only=True):
    """A counterparty as flows see it: its type, its status, and its details.

    `details` are the normalized fields of its variant: `routing_number`, `account_number` and
    `account_type` for `ach`; `routing_number` (a BIC if international),
    `identifier`, `identifier_type` (ACCOUNT_NUMBER or IBAN), `address`, `wire_instructions` for
    wires; `chain`, `wallet_address`, `asset` for a wallet; `institution_name` for all but wallets.
    `verification` is made by `rules.new_verification`, plus the `sanctions` status.
    """

    counterparty_id: UUID
    type: str
    status: CounterpartyStatus
    counterparty_name: dict[str, Any]
    verification: dict[str, Any]
    details: dict[str, Any]
    target_customer_id: UUID | None = None
    target_pocket_id: UUID | None = None

    @property
    def name(self) -> str:
        """The name in one line."""
        return format_name(self.counterparty_name)

    @property
    def sanctions(self) -> SanctionsStatus:
        """The screening result. Earlier releases did not screen counterparties, and stored nothing."""
        return SanctionsStatus(self.verification.get("sanctions", SanctionsStatus.CLEAR))

    @property
    def proof(self) -> str:
        """The fingerprint of everything that determines whether and where it may be paid."""
        return fingerprint(msgspec.structs.astuple(self))


class CounterpartyRow(Row, frozen=True):
    """A counterparty as stored; name, verification and details are JSON text."""

    table = "counterparty"
    key_column = "counterparty_id"
    fingerprinted = True
    keeps_former = True

    customer_id: UUID
    counterparty_id: UUID
    type: str
    status: CounterpartyStatus
    counterparty_name: str
    display_name: str | None
    account_number: str | None
    target_customer_id: UUID | None
    target_pocket_id: UUID | None
    verification: str
    details: str
    created_at: datetime
    updated_at: datetime

    @property
    @override
    def proof(self) -> str:
        return payee_from_row(self).proof


def payee_from_row(row: Record | CounterpartyRow) -> Payee:
    """Return a counterparty as flows see it, from a row of its table."""
    fields: Any = msgspec.structs.asdict(row) if isinstance(row, CounterpartyRow) else row
    return Payee(
        counterparty_id=fields["counterparty_id"],
        type=fields["type"],
        status=fields["status"],
        counterparty_name=_decode(fields["counterparty_name"]),
        verification=_decode(fields["verification"]),
        details=_decode(fields["details"]),
        target_customer_id=fields["target_customer_id"],
        target_pocket_id=fields["target_pocket_id"],
    )


def format_name(name: Mapping[str, str]) -> str:
    """Return a counterparty's name as one text."""
    full_name = name.get("business_name")
    return full_name or f"{name.get('first_name', '')} {name.get('last_name', '')}".strip()
