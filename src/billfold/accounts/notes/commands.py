"""The command about the note of an object that exists."""

from typing_extensions import override

from billfold.ledger.commands import AuditedAction, Books, Command, Outcome
from billfold.ledger.context import Context


class Annotate(Command, frozen=True, kw_only=True):
    """Change the note of the object `noted` of a kind. Its caller has found the object among the customer's."""

    audit = AuditedAction("note", "updated", fields=("kind",))

    kind: str

    @override
    def decide(self, books: Books, ctx: Context) -> Outcome:
        """Apply the rule, which attaches the note."""
        return type(self).rule(books, self, ctx)
