"""Deposits as they are stored, and what the watcher knows of a chain."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.payments.crypto.chains.rules import units_of
from billfold.platform.database.rows import Row
from billfold.platform.ids import command_id


class DepositStatus(StrEnum):
    """CARRIED: booked with a later deposit. HELD: in suspense.

    QUESTIONED: nothing is booked until an operator releases it. REORGED: `reason` is the status before.
    """

    CREDITED = "CREDITED"
    CARRIED = "CARRIED"
    HELD = "HELD"
    QUESTIONED = "QUESTIONED"
    REORGED = "REORGED"


class TransferStatus(StrEnum):
    """Of a transfer on a chain: PENDING until its block is final, REORGED while its block is not of the chain."""

    PENDING = "PENDING"
    FINAL = "FINAL"
    REORGED = "REORGED"
    WRONG_TOKEN = "WRONG_TOKEN"  # noqa: S105 - a status


class HoldReason(StrEnum):
    """Why a deposit is not credited by itself."""

    PORTAL_CLOSED = "PORTAL_CLOSED"
    OTHER_CHAIN = "OTHER_CHAIN"
    SENDER_LISTED = "SENDER_LISTED"
    BALANCE_DIFFERS = "BALANCE_DIFFERS"
    BALANCE_UNKNOWN = "BALANCE_UNKNOWN"
    AMOUNT_TOO_LARGE = "AMOUNT_TOO_LARGE"
    OWN_ADDRESS = "OWN_ADDRESS"
    REORGED = "REORGED"


class ChainDeposit(msgspec.Struct, frozen=True, kw_only=True):
    """A final transfer to a portal as the chain has it. `minimum_cents` is what is credited at least."""

    chain: str
    tx_hash: str
    log_index: int
    block_number: int
    block_hash: str
    token: str
    asset: str
    decimals: int
    minimum_cents: int
    sender: str
    recipient: str
    units: str


class CryptoDepositRow(Row, frozen=True, kw_only=True):
    """A deposit: `amount` cents of it, and of what was carried before it, are booked."""

    table = "crypto_deposit"
    key_column = "deposit_id"
    fingerprinted = True
    changing = frozenset({"created_at", "updated_at"})

    customer_id: UUID
    deposit_id: UUID
    portal_id: UUID
    pocket_id: UUID
    chain: str
    tx_hash: str
    log_index: int
    block_number: int
    block_hash: str
    token: str
    asset: str
    decimals: int
    sender: str
    recipient: str
    units: str
    amount: int
    status: DepositStatus
    reason: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def carried(self) -> int:
        """Units that it brought and that are not booked; below 0 where it booked what others brought.

        What it booked of others stays booked when its block is replaced.
        """
        unbooked = int(self.units) - units_of(self.amount, self.decimals)
        if self.status == DepositStatus.QUESTIONED:
            return 0
        return min(unbooked, 0) if self.status == DepositStatus.REORGED else unbooked

    @property
    def item_id(self) -> UUID:
        """The item of suspense that holds it: another one when it was written off and is back."""
        if self.reason != HoldReason.REORGED:
            return self.deposit_id
        return command_id(f"crypto-held:{self.block_hash}", self.deposit_id)


class CarriedUnits(NamedTuple):
    """Units per token of one portal that arrived and are not booked."""

    by_token: dict[str, int]


class Cursor(NamedTuple):
    """How far a chain is read: by one node, and by all that must agree. `problems` by node."""

    chain: str
    seen_number: int
    final_number: int
    final_hash: str
    agreed_at: datetime
    problems: dict[str, str]


class Recipient(NamedTuple):
    """Whose an address is."""

    customer_id: UUID
    portal_id: UUID
    pocket_id: UUID
    chain: str
    is_open: bool
