"""Commands on files of the rails. `customers[0]` is the bank itself."""

from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command
from billfold.ledger.types import Rail


class CloseRailFile(Command, frozen=True, kw_only=True):
    """Complete an inbound file of which something cannot be booked; `reason` says what was done about that."""

    audit = AuditedAction("files", "closed", fields=("file_id", "reason"))
    needs_identifiers = False

    file_id: UUID
    rail: Rail
    reason: str
