"""Commands that move money by decision of two operators: how proposals keep them, and how they are carried out."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import msgspec

from billfold.dual_control.types import FreezeProposal
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command, Outcome

Carrier = Callable[[Bank, FreezeProposal, Command], Awaitable[Outcome]]
"""Submits the command of a proposal, and does what goes with it. It may be repeated."""


@dataclass(frozen=True)
class Movements:
    """The commands that may be proposed; `carriers` of those that need more than to be submitted, by their base."""

    kinds: frozenset[type[Command]]
    carriers: Mapping[type[Command], Carrier]
    freeze_card: Callable[..., Command]

    def read_command(self, row: FreezeProposal) -> Command:
        """Return the command of a proposal that moves money, exactly as it was proposed."""
        movement = row.read_movement()
        kind = next(each for each in self.kinds if movement.kind in each.names())
        return msgspec.json.decode(movement.command, type=kind)

    async def carry_out(self, bank: Bank, row: FreezeProposal, command: Command) -> Outcome:
        """Carry out a confirmed proposal; return its outcome. Raises NotFound and Refused, as the rule does."""
        for base, carrier in self.carriers.items():
            if isinstance(command, base):
                return await carrier(bank, row, command)
        return (await bank.engine.submit(command)).outcome
