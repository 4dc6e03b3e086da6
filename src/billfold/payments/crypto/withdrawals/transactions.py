"""Transactions of the wallet: their content and fees, and the nodes' reports. Fees are in wei per unit of gas.

A single node is never trusted about what is final.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.payments.crypto.withdrawals.signing import UnsignedTransaction


class TransactionState(StrEnum):
    """The state of the transaction that pays a withdrawal.

    REFUSED: there will be none. RESERVED: it has its nonce. SIGNED: it is stored. SUBMITTED: a node has it. MINED: it
    is in a block that may still be replaced. The others are final. CONFIRMED: it paid. REVERTED: the token refused it.
    CANCELED: one of ours that pays nothing replaced it. DISPLACED: one that the bank did not sign replaced it.
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
    """The purpose of a signed transaction: to pay, or to replace one that pays."""

    PAY = "PAY"
    CANCEL = "CANCEL"


class OperatorRequest(StrEnum):
    """A request of an operator, carried out in the next round."""

    REPLACE = "REPLACE"
    CANCEL = "CANCEL"


class WalletProblem(StrEnum):
    """A problem that keeps the wallet of a chain from paying. The wallet continues once it is over."""

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
    """The wallet from which the bank pays on a chain, its next free nonce, and what prevents it from paying."""

    chain: str
    address: str
    first_nonce: int
    next_nonce: int
    problem: WalletProblem | None = None
    problem_detail: str | None = None
    problem_since: datetime | None = None


class Reservation(NamedTuple):
    """A nonce of a wallet, the contract of the token to pay, and the maximum gas."""

    wallet: str
    nonce: int
    token: str
    gas_limit: int


class ChainTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """The transaction of a withdrawal on its chain.

    Hash and block are those of the mined transaction, `fee_wei` is its network fee. A REFUSED one
    has a reason and no nonce.
    """

    customer_id: UUID
    withdrawal_id: UUID
    chain: str
    state: TransactionState
    wallet: str | None
    nonce: int | None
    token: str | None
    gas_limit: int | None
    requested: OperatorRequest | None
    reason: str | None
    transaction_hash: str | None
    block_number: int | None
    block_hash: str | None
    fee_wei: Decimal | None


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """A signed transaction of a withdrawal, the `attempt`-th. `raw` is sealed: 0x and the bytes to send.

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
    """A transaction that is not final yet, with its payment and all of its signatures, in order.

    `is_stopped`: its customer was frozen, or its counterparty stopped by screening. `address` is sealed.
    """

    transaction: ChainTransaction
    reservation: Reservation
    address: str
    cents: int
    is_stopped: bool
    signatures: tuple[Signature, ...]

    @property
    def is_mined(self) -> bool:
        """True if it is in a block, which may still be replaced."""
        return self.transaction.state == TransactionState.MINED

    @property
    def latest(self) -> Signature | None:
        """The last signature."""
        return self.signatures[-1] if self.signatures else None


TRANSFER = "0xa9059cbb"
"""transfer(address,uint256) of ERC-20."""
CANCEL_GAS = 21_000
"""Gas of a transaction that calls no contract."""
_GAS_MARGIN_PERCENT = 130
_BUMP_NUMERATOR, _BUMP_DENOMINATOR = 9, 8
"""Nodes accept a replacement from 10 % more on; some require 12.5 %."""
_WORD_DIGITS = 64


class Fees(NamedTuple):
    """The maximum fee per unit of gas, and the part of it for the block's proposer."""

    max_fee: int
    priority_fee: int


def transfer_data(recipient: str, units: int) -> str:
    """Return the call that transfers units of a token."""
    return f"{TRANSFER}{recipient[2:].lower():0>{_WORD_DIGITS}}{units:0{_WORD_DIGITS}x}"


def payment(
    chain_id: int, nonce: int, *, token: str, recipient: str, units: int, gas_limit: int, fees: Fees
) -> UnsignedTransaction:
    """Return the transaction that pays units of a token."""
    data = transfer_data(recipient, units)
    fields: dict[str, Any] = {"nonce": nonce, "to": token, "value": 0, "data": data, "gas_limit": gas_limit}
    return UnsignedTransaction(chain_id=chain_id, **fields, **fees._asdict())


def cancellation(chain_id: int, nonce: int, *, wallet: str, fees: Fees) -> UnsignedTransaction:
    """Return a transaction that pays nothing, to replace one that would pay."""
    fields: dict[str, Any] = {"nonce": nonce, "to": wallet, "value": 0, "data": "0x", "gas_limit": CANCEL_GAS}
    return UnsignedTransaction(chain_id=chain_id, **fields, **fees._asdict())


def gas_limit_of(estimate: int) -> int:
    """Return the gas limit for a node's estimate; unused gas is not spent."""
    return estimate * _GAS_MARGIN_PERCENT // 100


def current_fees(base_fee: int, priority_fee: int) -> Fees:
    """Return fees that suffice unless the base fee more than doubles."""
    return Fees(2 * base_fee + priority_fee, priority_fee)


def fees_for_next(attempt: Signature | None, current: Fees, *, cap: int) -> Fees | None:
    """Return the fees of the next attempt for a nonce: a replacement pays an eighth more. None: above the cap."""
    if attempt is None:
        return Fees(min(current.max_fee, cap), min(current.priority_fee, cap))
    least = Fees(*(-(-fee * _BUMP_NUMERATOR // _BUMP_DENOMINATOR) for fee in (attempt.max_fee, attempt.priority_fee)))
    raised = Fees(*map(max, least, current))
    if raised.max_fee > cap and least.max_fee <= cap:
        raised = Fees(cap, min(raised.priority_fee, cap))
    return None if raised.max_fee > cap else raised


def intent_of_next(attempt: Signature | None, *, is_stopped: bool) -> Intent:
    """Return the purpose of the next attempt: once canceled, it never pays later."""
    is_canceled = attempt is not None and attempt.intent == Intent.CANCEL
    return Intent.CANCEL if is_canceled or is_stopped else Intent.PAY


class Sighting(NamedTuple):
    """One node's view of a nonce: empty while it is pending, else the transaction in a block. The fee is in wei.

    `outcome` is the state of a final one. None: it succeeded, but its logs do not show a payment; that money is
    not returned before someone has checked.
    """

    transaction_hash: str | None = None
    block_number: int | None = None
    block_hash: str | None = None
    fee: int | None = None
    outcome: TransactionState | None = None
    is_final: bool = False


PENDING = Sighting()


class Disagreement(Exception):
    """Nodes report different outcomes for one nonce."""


def agreed_sighting(sightings: Sequence[Sighting], *, nodes: int) -> Sighting:
    """Return the agreed view: final only if every node of the chain reports the same final transaction.

    Raises Disagreement if two nodes report different final transactions.
    """
    final = [each for each in sightings if each.is_final]
    if len({(each.transaction_hash, each.outcome, each.block_hash) for each in final}) > 1:
        raise Disagreement
    if len(final) == len(sightings) == nodes:
        return final[0]
    mined = final or [each for each in sightings if each != PENDING]
    return mined[0]._replace(is_final=False) if mined else PENDING


def state_of(sighting: Sighting) -> TransactionState | None:
    """Return the state for a sighting; None if someone must check first."""
    if sighting == PENDING:
        return TransactionState.SUBMITTED
    return sighting.outcome if sighting.is_final else TransactionState.MINED


def outcome_of(intent: Intent, *, is_success: bool, is_paid: bool) -> TransactionState | None:
    """Return the outcome of our transaction from its receipt; None if it succeeded but did not pay."""
    if intent == Intent.CANCEL:
        return TransactionState.CANCELED
    if not is_success:
        return TransactionState.REVERTED
    return TransactionState.CONFIRMED if is_paid else None
