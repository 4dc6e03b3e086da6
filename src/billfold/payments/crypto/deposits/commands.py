"""Commands about deposits of tokens, and the row that they leave."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.payments.crypto.chains import units_of
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


class DepositCommand(Command, frozen=True, kw_only=True):
    """A command on a deposit. References the deposit, and the portal of a new one."""

    reference_kinds = (Reference.CRYPTO_DEPOSIT,)

    deposit_id: UUID


class ArrivedDeposit(DepositCommand, frozen=True, kw_only=True):
    """A command on a final deposit."""

    portal_id: UUID
    pocket_id: UUID
    deposit: ChainDeposit


class CreditDeposit(ArrivedDeposit, frozen=True, kw_only=True):
    """Credit a deposit, or carry it below the minimum.

    `is_released` is set when an operator releases a QUESTIONED one.
    """

    audit = AuditedAction("crypto_deposit", "released", fields=("deposit_id",))

    is_released: bool = False


class RecordUnbooked(ArrivedDeposit, frozen=True, kw_only=True):
    """Record a deposit that is not credited: in suspense with `amount` cents, or QUESTIONED with none."""

    amount: int
    reason: HoldReason


class WriteOffDeposit(DepositCommand, frozen=True, kw_only=True):
    """A deposit's block is not of the chain any more: the bank bears what was credited. `customers` are owner and bank.

    `is_released` tells that the deposit was held, and released by an operator.
    """

    is_released: bool = False


class RestoreDeposit(DepositCommand, frozen=True, kw_only=True):
    """A deposit that was written off is on the chain again, in this block. `customers` are owner and bank."""

    block_number: int
    block_hash: str
    log_index: int
