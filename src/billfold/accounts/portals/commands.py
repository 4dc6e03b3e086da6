"""Commands about a portal."""

from uuid import UUID

from billfold.accounts.portals.types import Wallet
from billfold.ledger.commands import AuditedAction, Command


class OpenPortal(Command, frozen=True, kw_only=True):
    """Open one more portal: with `wallet` a crypto portal; else `payment_rails` None means all of the bank's."""

    audit = AuditedAction("portal", "created", fields=("pocket_id", "name", "payment_rails"))

    pocket_id: UUID
    name: str
    payment_rails: tuple[str, ...] | None = None
    wallet: Wallet | None = None


class UpdatePortal(Command, frozen=True, kw_only=True):
    """Rename a portal, or close it permanently."""

    audit = AuditedAction("portal", lambda c: "closed" if c.close else "updated", fields=("pocket_id", "name"))

    portal_id: UUID
    pocket_id: UUID | None = None
    name: str | None = None
    close: bool = False
