"""What the transactions of the wallet say, and what they cost. Fees are in wei per unit of gas."""

from typing import NamedTuple

from billfold.payments.crypto.withdrawals.ports import UnsignedTransaction
from billfold.payments.crypto.withdrawals.types import Intent, Signature

TRANSFER = "0xa9059cbb"
"""transfer(address,uint256) of ERC-20."""
CANCEL_GAS = 21_000
"""What a transaction takes that calls nothing."""
_GAS_MARGIN_PERCENT = 130
_BUMP_NUMERATOR, _BUMP_DENOMINATOR = 9, 8
"""Nodes take a replacement from 10 % more on; some want 12.5 %."""
_WORD_DIGITS = 64


class Fees(NamedTuple):
    """The most that is paid per unit of gas, and what of it the block's proposer gets."""

    max_fee: int
    priority_fee: int


def transfer_data(recipient: str, units: int) -> str:
    """Return the call that transfers units of a token."""
    return f"{TRANSFER}{recipient[2:].lower():0>{_WORD_DIGITS}}{units:0{_WORD_DIGITS}x}"


def payment(
    chain_id: int, nonce: int, *, token: str, recipient: str, units: int, gas_limit: int, fees: Fees
) -> UnsignedTransaction:
    """Return the transaction that pays units of a token."""
    return UnsignedTransaction(
        chain_id=chain_id,
        nonce=nonce,
        to=token,
        value=0,
        data=transfer_data(recipient, units),
        gas_limit=gas_limit,
        max_fee=fees.max_fee,
        priority_fee=fees.priority_fee,
    )


def cancellation(chain_id: int, nonce: int, *, wallet: str, fees: Fees) -> UnsignedTransaction:
    """Return the transaction that pays nothing, and so takes the place of one that would pay."""
    return UnsignedTransaction(
        chain_id=chain_id,
        nonce=nonce,
        to=wallet,
        value=0,
        data="0x",
        gas_limit=CANCEL_GAS,
        max_fee=fees.max_fee,
        priority_fee=fees.priority_fee,
    )


def gas_limit_of(estimate: int) -> int:
    """Return the limit for an estimate of a node: what it leaves is not spent."""
    return estimate * _GAS_MARGIN_PERCENT // 100


def current_fees(base_fee: int, priority_fee: int) -> Fees:
    """Return fees that are enough while the base fee does not double."""
    return Fees(2 * base_fee + priority_fee, priority_fee)


def fees_for_next(attempt: Signature | None, current: Fees, *, cap: int) -> Fees | None:
    """Return the fees of the next attempt for a nonce: a replacement pays an eighth more. None: more than the cap."""
    if attempt is None:
        return Fees(min(current.max_fee, cap), min(current.priority_fee, cap))
    raised = Fees(
        max(_raise(attempt.max_fee), current.max_fee), max(_raise(attempt.priority_fee), current.priority_fee)
    )
    if raised.max_fee > cap and _raise(attempt.max_fee) <= cap:
        raised = Fees(cap, min(raised.priority_fee, cap))
    return None if raised.max_fee > cap else raised


def intent_of_next(attempt: Signature | None, *, is_stopped: bool) -> Intent:
    """Return what the next attempt does: what was cancelled once is never paid later."""
    is_canceled = attempt is not None and attempt.intent == Intent.CANCEL
    return Intent.CANCEL if is_canceled or is_stopped else Intent.PAY


def _raise(fee: int) -> int:
    return -(-fee * _BUMP_NUMERATOR // _BUMP_DENOMINATOR)
