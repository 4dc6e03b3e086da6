"""The command that raises the event of a daily root."""

from datetime import date

from billfold.ledger.commands import Command


class AnnounceRoot(Command, frozen=True, kw_only=True):
    """Raise the event of a root that was published."""

    needs_identifiers = False

    day: date
    root: str
