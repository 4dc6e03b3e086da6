"""Withdrawals, and the transactions of the bank's wallet by which they are paid."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

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


class TransactionState(StrEnum):
    """What became of the transaction that is to pay a withdrawal.

    REFUSED: there never is one. RESERVED: it has its nonce. SIGNED: it is stored. SUBMITTED: a node has it. MINED: it
    is in a block that may still be replaced. The others are final. CONFIRMED: it paid. REVERTED: the token refused it.
    CANCELED: one of ours that pays nothing took its place. DISPLACED: one that the bank has not signed did.
    """

    REFUSED = "REFUSED"
    RESERVED = "RESERVED"
    SIGNED = "SIGNED"
    SUBMITTED = "SUBMITTED"
    MINED = "MINED"
    CONFIRMED = "CONFIRMED"
    REVERTED = "REVERTED"
    CANCELED = "CANCELED"
    DISPLACED = "DISPLACED"


class Intent(StrEnum):
    """What a signed transaction does: it pays, or it takes the place of one that pays."""

    PAY = "PAY"
    CANCEL = "CANCEL"


class OperatorRequest(StrEnum):
    """What an operator wants of a transaction at the next round."""

    REPLACE = "REPLACE"
    CANCEL = "CANCEL"


class WalletProblem(StrEnum):
    """What keeps the wallet of a chain from paying. It waits, and goes on by itself once it is over."""

    TOKENS_SHORT = "TOKENS_SHORT"
    GAS_SHORT = "GAS_SHORT"
    FEE_CAP_REACHED = "FEE_CAP_REACHED"
    NODE_UNAVAILABLE = "NODE_UNAVAILABLE"
    NODES_DISAGREE = "NODES_DISAGREE"
    NODE_REFUSES = "NODE_REFUSES"
    SIGNER_UNAVAILABLE = "SIGNER_UNAVAILABLE"
    SIGNER_REFUSES = "SIGNER_REFUSES"
    USED_ELSEWHERE = "USED_ELSEWHERE"
    UNEXPLAINED = "UNEXPLAINED"


class Wallet(msgspec.Struct, frozen=True, kw_only=True):
    """The wallet from which the bank pays on a chain, the next nonce that is free, and what keeps it from paying."""

    chain: str
    address: str
    first_nonce: int
    next_nonce: int
    problem: WalletProblem | None = None
    problem_detail: str | None = None
    problem_since: datetime | None = None


class Reservation(NamedTuple):
    """A nonce of a wallet, the contract of the token that is paid, and how much gas that takes at most."""

    wallet: str
    nonce: int
    token: str
    gas_limit: int


class ChainTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """What is done for a withdrawal on its chain.

    Hash and block are those of the transaction that was mined, `fee_wei` what the network took for it. A REFUSED one
    has a reason and no reservation.
    """

    customer_id: UUID
    withdrawal_id: UUID
    chain: str
    state: TransactionState
    reservation: Reservation | None
    requested: OperatorRequest | None
    reason: str | None
    transaction_hash: str | None
    block_number: int | None
    block_hash: str | None
    fee_wei: Decimal | None


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """A signed transaction of a withdrawal, the `attempt`-th. `raw` is sealed: 0x and the bytes as they are sent.

    Fees are in wei per unit of gas.
    """

    customer_id: UUID
    withdrawal_id: UUID
    attempt: int
    intent: Intent
    transaction_hash: str
    max_fee: int
    priority_fee: int
    raw: str
    signed_at: datetime
    sent_at: datetime | None = None


class OutgoingTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction that is not final yet, with what it is to pay and everything that was signed for it, in order.

    `is_stopped`: its customer was frozen, or its counterparty stopped by screening. `address` is sealed.
    """

    transaction: ChainTransaction
    reservation: Reservation
    address: str
    cents: int
    is_stopped: bool
    signatures: tuple[Signature, ...]

    @property
    def latest(self) -> Signature | None:
        """The last that was signed."""
        return self.signatures[-1] if self.signatures else None
