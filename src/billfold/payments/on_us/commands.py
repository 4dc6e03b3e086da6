"""The command of a transfer between two pockets of the bank."""

from uuid import UUID

from billfold.ledger.commands import Command, Reference
from billfold.payments.on_us.types import TransferOrder


class TransferOnUs(Command, frozen=True, kw_only=True):
    """Move `amount` cents (None: the whole balance, net of fees) between two pockets of the bank, `at_most` so many.

    `customers` is (payer,) or (payer, payee). With `later` the transfer is only recorded, and a
    second command with `accepted` executes it. `addresses` are the network addresses of the two
    pockets; a counterparty whose own takes no payments any more has none, and is not paid. If the
    transfer was `approved` before, it is executed at once, and a refusal makes it REJECTED.
    """

    reference_kinds = (Reference.COUNTERPARTY,)
    needs_identifiers = False

    transfer_id: UUID | None
    type: str
    from_pocket_id: UUID
    to_pocket_id: UUID | None
    amount: int | None
    at_most: int | None = None
    partner_id: UUID
    order: TransferOrder = TransferOrder()
    addresses: tuple[str | None, str | None] = (None, None)
    later: bool = False
    approved: bool = False
    accepted: bool = False
