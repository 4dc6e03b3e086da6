"""Commands of a batch: its rows as one, and the report of its end."""

from typing_extensions import override

from billfold.ledger.commands import Command, Outcome, Reference


class CommandList(Command, frozen=True, kw_only=True):
    """Carry out commands in their order, all or none.

    Its customers and references include those of the parts. The parts need no identifiers.
    """

    parts: tuple[Command, ...]

    @property
    @override
    def reads(self) -> tuple[Reference, ...]:
        """The kinds of the references of all parts."""
        return tuple(dict.fromkeys(kind for part in self.parts for kind in part.reads))

    @property
    @override
    def noting(self) -> tuple[Command, ...]:
        """The parts that attach a note."""
        return tuple(part for part in self.parts if part.attached is not None)


class CounterpartyList(CommandList, frozen=True, kw_only=True):
    """Add counterparties, all or none. Those of the outcome are in the order of the parts."""

    needs_identifiers = True

    @override
    def decided(self, outcome: Outcome) -> list[tuple[Command, Outcome]]:
        """Return the counterparties with their outcomes; none if the list was refused."""
        return list(zip(self.parts, outcome.get("counterparties", ()), strict=False))


class PocketList(CommandList, frozen=True, kw_only=True):
    """Open Pockets, all or none. Those of the outcome are in the order of the parts."""

    needs_identifiers = True

    @override
    def decided(self, outcome: Outcome) -> list[tuple[Command, Outcome]]:
        """Return the openings with their outcomes; none if the list was refused."""
        return list(zip(self.parts, outcome.get("pockets", ()), strict=False))


class ReportBatch(Command, frozen=True, kw_only=True):
    """Report the end of a batch, which is the key, with the numbers of its rows; `refused` if it was refused as one."""

    completed: int
    failed: int
    refused: bool
