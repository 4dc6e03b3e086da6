"""Commands about deposits of tokens."""

from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.payments.crypto.deposits.types import ChainDeposit, HoldReason


class CreditDeposit(Command, frozen=True, kw_only=True):
    """Credit a final deposit, or carry it below the minimum. References the portal and the deposit.

    `is_released` is set when an operator releases a QUESTIONED one.
    """

    reference_kinds = (Reference.CRYPTO_DEPOSIT,)
    audit = AuditedAction("crypto_deposit", "released", fields=("deposit_id",))

    deposit_id: UUID
    portal_id: UUID
    pocket_id: UUID
    deposit: ChainDeposit
    is_released: bool = False


class RecordUnbooked(Command, frozen=True, kw_only=True):
    """Record a deposit that is not credited: in suspense with `amount` cents, or QUESTIONED with none."""

    reference_kinds = (Reference.CRYPTO_DEPOSIT,)

    deposit_id: UUID
    portal_id: UUID
    pocket_id: UUID
    deposit: ChainDeposit
    amount: int
    reason: HoldReason


class WriteOffDeposit(Command, frozen=True, kw_only=True):
    """A deposit's block is not of the chain any more: the bank bears what was credited. `customers` are owner and bank.

    `is_released` tells that the deposit was held, and released by an operator.
    """

    reference_kinds = (Reference.CRYPTO_DEPOSIT,)

    deposit_id: UUID
    is_released: bool = False


class RestoreDeposit(Command, frozen=True, kw_only=True):
    """A deposit that was written off is on the chain again, in this block. `customers` are owner and bank."""

    reference_kinds = (Reference.CRYPTO_DEPOSIT,)

    deposit_id: UUID
    block_number: int
    block_hash: str
    log_index: int
