"""The command that raises the event of a change which was not a command: a request, a member, a statement."""

from billfold.ledger.commands import Command


class ReportChange(Command, frozen=True, kw_only=True):
    """Raise an event of a kind, by its name, with its payload as JSON."""

    event_kind: str
    payload: str
