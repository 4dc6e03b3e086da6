"""What became of transactions is booked: by commands, each of them once whatever crashes."""

from typing import Any, Final

from billfold.payments.crypto.withdrawals.commands import (
    CompleteWithdrawal,
    RejectWithdrawal,
    SubmitWithdrawal,
    WithdrawalCommand,
)
from billfold.payments.crypto.withdrawals.outbound.round import Round
from billfold.payments.crypto.withdrawals.store import transactions as store
from billfold.payments.crypto.withdrawals.types import ChainTransaction, TransactionState
from billfold.platform.errors import BillfoldError

_BATCH_SIZE: Final = 100
_SENT = frozenset({TransactionState.SUBMITTED, TransactionState.MINED})


async def report_transactions(this: Round) -> int:
    """Complete, reject or submit the withdrawals that do not say yet what became of them; return how many."""
    found = await store.list_unreported(this.bank.pool, this.chain.name, _BATCH_SIZE)
    answers = await this.bank.engine.submit_all([_command(each) for each in found])
    failed = [
        this.blocked_by(answer, each.withdrawal_id)
        for each, answer in zip(found, answers, strict=True)
        if isinstance(answer, BillfoldError)
    ]
    this.problems.extend(failed)
    return len(found) - len(failed)


def _command(transaction: ChainTransaction) -> WithdrawalCommand:
    named: dict[str, Any] = {
        "key": transaction.withdrawal_id,
        "customers": (transaction.customer_id,),
        "references": (transaction.withdrawal_id,),
        "withdrawal_id": transaction.withdrawal_id,
    }
    if transaction.state in _SENT:
        return SubmitWithdrawal(caller="crypto:sent", **named)
    if transaction.state == TransactionState.CONFIRMED:
        return CompleteWithdrawal(caller="crypto:final", transaction_hash=str(transaction.transaction_hash), **named)
    return RejectWithdrawal(
        caller="crypto:final", reason=str(transaction.reason), transaction_hash=transaction.transaction_hash, **named
    )
