"""The command that books what is the bank's own of a settlement file. `customers[0]` is the bank."""

from datetime import date
from uuid import UUID

from billfold.ledger.commands import Command


class BookCardSettlement(Command, frozen=True, kw_only=True):
    """Book interchange, negative if more was given back than received, and fees of a file, in cents."""

    needs_identifiers = False

    file_id: UUID
    settles_on: date
    interchange: int
    fees: int
