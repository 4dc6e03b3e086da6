"""One round of work on one chain, and what keeps it from going on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.payments.crypto.chains.json_rpc import NodeUnavailable
from billfold.payments.crypto.chains.types import Chain
from billfold.payments.crypto.withdrawals.ports import Signer, SignerRefused, UnsignedTransaction
from billfold.payments.crypto.withdrawals.signing import Signed, sign_checked
from billfold.payments.crypto.withdrawals.types import Wallet, WalletProblem
from billfold.payments.crypto.withdrawals.wallet_node import WalletNode
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.errors import Unavailable

Answer = TypeVar("Answer")


class Blocked(Exception):
    """A step cannot go on now; it is tried again in the next round."""

    def __init__(self, problem: WalletProblem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round: the chain, its nodes, its wallet. `now` is the bank's time, `wall` wall time.

    `problems` are what it met; the first of them is shown to operators.
    """

    bank: Bank
    chain: Chain
    nodes: Sequence[WalletNode]
    signer: Signer
    wallet: Wallet
    now: datetime
    wall: datetime
    problems: list[Blocked] = field(default_factory=list)

    async def ask_all(self, question: Callable[[WalletNode], Awaitable[Answer]]) -> list[Answer]:
        """Return the answers of all nodes. Raises Blocked when one gives none."""
        return await ask_all(self.nodes, question)

    async def ask_available(self, question: Callable[[WalletNode], Awaitable[Answer]]) -> list[Answer]:
        """Return the answers of the nodes that give one, and note those that give none."""
        answers = await asyncio.gather(*map(question, self.nodes), return_exceptions=True)
        given: list[Answer] = []
        for answer in answers:
            if isinstance(answer, NodeUnavailable):
                self.problems.append(Blocked(WalletProblem.NODE_UNAVAILABLE, str(answer)))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                given.append(answer)
        return given

    def blocked_by(self, error: Exception, withdrawal_id: UUID) -> Blocked:
        """Return what nobody foresaw of one withdrawal as a problem of the wallet: the others go on.

        Raises the error again where it is of a node or of the database.
        """
        if isinstance(error, Blocked):
            return error
        if isinstance(error, NodeUnavailable) or is_shortage(error):
            raise error
        return Blocked(WalletProblem.UNEXPLAINED, self.detail_of(withdrawal_id, error_summary(error)))

    def detail_of(self, withdrawal_id: UUID, problem: str) -> str:
        """Return what is wrong with a withdrawal in a sentence for operators, who may cancel it."""
        return f"Withdrawal {withdrawal_id} on {self.chain.name}: {problem}"

    async def sign(self, transaction: UnsignedTransaction, withdrawal_id: UUID) -> Signed:
        """Return a transaction of a withdrawal signed by the wallet's key. Raises Blocked."""
        try:
            return await sign_checked(self.signer, self.wallet.address, transaction)
        except SignerRefused as refusal:
            detail = self.detail_of(withdrawal_id, str(refusal))
            raise Blocked(WalletProblem.SIGNER_REFUSES, detail) from None
        except Unavailable as error:
            raise Blocked(WalletProblem.SIGNER_UNAVAILABLE, str(error)) from None


async def ask_all(nodes: Sequence[WalletNode], question: Callable[[WalletNode], Awaitable[Answer]]) -> list[Answer]:
    """Return the answers of all nodes. Raises Blocked when one gives none."""
    try:
        return await asyncio.gather(*map(question, nodes))
    except NodeUnavailable as error:
        raise Blocked(WalletProblem.NODE_UNAVAILABLE, str(error)) from None
