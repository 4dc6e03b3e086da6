"""Commands about counterparties and their verification."""

from typing import Any
from uuid import UUID

from billfold.accounts.counterparties.names import NameMatch, match_payee
from billfold.accounts.counterparties.types import SanctionsStatus
from billfold.ledger.commands import AuditedAction, Command, Reference


class AddCounterparty(Command, frozen=True, kw_only=True):
    """Link an account as payee; `details` are the fields of its variant, validated before.

    `verification` is the requested proof that the account is theirs, if any. `holder` and `holder_address`
    are the registered name and address of its owner, if the account is at this bank; `linked` is the linking
    provider's data: `id`, `mask`, `status` and the sealed `access`. `is_screened`: its names have already been
    compared with sanctions lists.
    """

    needs_identifiers = True
    former_names = ("AddOnUsCounterparty",)
    notes_on = ("counterparty", "counterparty_id")
    audit = AuditedAction(
        "counterparty", "created", fields=("type", "display_name", "verification", "target_pocket_id")
    )

    type: str
    counterparty_name: dict[str, Any]
    display_name: str | None = None
    details: dict[str, Any]
    verification: str | None = None
    document_ids: tuple[UUID, ...] = ()
    holder: str | None = None
    holder_address: str | None = None
    linked: dict[str, str] | None = None
    target_customer_id: UUID | None = None
    target_pocket_id: UUID | None = None
    is_screened: bool = False

    @property
    def name_match(self) -> NameMatch | None:
        """The match of the name with that of the account's owner, if the account is at this bank."""
        return None if self.holder is None else match_payee(self.counterparty_name, self.holder)


class UpdateCounterparty(Command, frozen=True, kw_only=True):
    """Change the display name, or unlink permanently."""

    needs_identifiers = True
    notes_on = ("counterparty", "counterparty_id")
    audit = AuditedAction("counterparty", lambda c: "unlinked" if c.unlink else "updated", fields=("display_name",))

    counterparty_id: UUID
    display_name: str | None = None
    rename: bool = False
    unlink: bool = False


class ConfirmDeposits(Command, frozen=True, kw_only=True):
    """Name the two amounts in cents that arrived at the account, in any order.

    `are_sent`: both deposits have left the bank. Until then no amounts are right or wrong.
    """

    needs_identifiers = True
    audit = AuditedAction("counterparty", "deposits_named")

    counterparty_id: UUID
    amounts: tuple[int, int]
    are_sent: bool = False


class DecideVerification(Command, frozen=True, kw_only=True):
    """Approve or reject a pending verification, including its documents."""

    needs_identifiers = True
    reference_kinds = (Reference.DOCUMENT,)
    audit = AuditedAction("counterparty", "reviewed", fields=("approved", "reason"))

    counterparty_id: UUID
    approved: bool
    reason: str | None = None


class FailVerification(Command, frozen=True, kw_only=True):
    """Fail a verification because its micro-deposits came back: the account does not exist or cannot be reached."""

    needs_identifiers = True

    counterparty_id: UUID
    reason: str


class ExpireVerification(Command, frozen=True, kw_only=True):
    """Expire a verification because the expected wire has not arrived in time."""

    needs_identifiers = True

    counterparty_id: UUID


class SettleLink(Command, frozen=True, kw_only=True):
    """Update a link by the provider's current status; `numbers` are the account's details, once they are known."""

    needs_identifiers = True

    counterparty_id: UUID
    link_status: str
    numbers: dict[str, str] | None = None


class SettleScreening(Command, frozen=True, kw_only=True):
    """Store the screening result of the names: CLEAR, OPEN or CONFIRMED."""

    needs_identifiers = True

    counterparty_id: UUID
    sanctions: SanctionsStatus


class CorrectAccount(Command, frozen=True, kw_only=True):
    """Use the corrected details that the account's bank gave in a notification of change from now on."""

    needs_identifiers = True

    counterparty_id: UUID
    details: dict[str, str]
