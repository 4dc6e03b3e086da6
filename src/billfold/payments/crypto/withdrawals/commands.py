"""Withdrawals and the commands on them. `references` names the withdrawal, or the counterparty of a new one."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from billfold.ledger.commands import Command, Reference
from billfold.platform.database.rows import Row


class WithdrawalStatus(StrEnum):
    """PENDING until a transaction that pays it was sent, PROCESSING until one is final."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"


UNDER_WAY = frozenset({WithdrawalStatus.PENDING, WithdrawalStatus.PROCESSING})


class WithdrawalRow(Row, frozen=True, kw_only=True):
    """A withdrawal as stored. Its id is that of its transfer request; `wallet_address` is sealed, `amount` cents.

    `transaction_hash` is that of the transaction that was final: what paid it, or what took its place. `entry_no` is
    the journal entry that booked it, `return_entry_no` the one by which the money came back.
    """

    table = "crypto_withdrawal"
    key_column = "withdrawal_id"
    noun = "withdrawal"
    fingerprinted = True
    changing = frozenset({"status", "reason", "transaction_hash", "return_entry_no", "settled_at", "updated_at"})

    customer_id: UUID
    withdrawal_id: UUID
    partner_id: UUID
    pocket_id: UUID
    counterparty_id: UUID
    counterparty_name: str
    chain: str
    asset: str
    wallet_address: str
    amount: int
    status: WithdrawalStatus
    reason: str | None = None
    transaction_hash: str | None = None
    transaction_id: UUID
    entry_no: int
    return_entry_no: int | None = None
    created_at: datetime
    settled_at: datetime | None = None
    updated_at: datetime

    @property
    def is_open(self) -> bool:
        """Whether it is still to be paid, or rejected."""
        return self.status in UNDER_WAY


class Objection(msgspec.Struct, frozen=True):
    """Why the address of a counterparty is not paid: the code of a problem, and a sentence.

    Who opens the sealed address finds it (`destination`); the rule applies it.
    """

    code: str
    detail: str


class SendUsdc(Command, frozen=True, kw_only=True):
    """Pay `amount` cents to the wallet of a counterparty, one unit of the token per dollar.

    If it was `approved` before, a refusal raises the event of a rejected withdrawal and becomes the outcome.
    """

    reference_kinds = (Reference.COUNTERPARTY,)
    needs_identifiers = False

    withdrawal_id: UUID
    pocket_id: UUID
    amount: int
    counterparty_id: UUID
    objection: Objection | None = None
    approved: bool = False


class WithdrawalCommand(Command, frozen=True, kw_only=True):
    """A command on a recorded withdrawal."""

    reference_kinds = (Reference.CRYPTO_WITHDRAWAL,)
    needs_identifiers = False

    withdrawal_id: UUID


class SubmitWithdrawal(WithdrawalCommand, frozen=True, kw_only=True):
    """Record that a node has a transaction that pays it."""


class CompleteWithdrawal(WithdrawalCommand, frozen=True, kw_only=True):
    """Record that the transaction that pays it is final."""

    transaction_hash: str


class RejectWithdrawal(WithdrawalCommand, frozen=True, kw_only=True):
    """Record that no transaction pays it any more, and why (`TransferStateReason`).

    `transaction_hash` is the final transaction by which that is so; None where none was ever signed.
    """

    reason: str
    transaction_hash: str | None = None
