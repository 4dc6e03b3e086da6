"""Commands on withdrawals. `references` names the withdrawal, or the counterparty of a new one."""

from uuid import UUID

import msgspec

from billfold.ledger.commands import Command, Reference


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
