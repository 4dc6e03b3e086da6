"""Proposals of movements of money by commands of the command line, and what these say."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from billfold.cli.command import OPERATOR
from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.types import FreezeProposal
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.types import Origin
from billfold.platform import ids


async def propose_as_operator(
    bank: Bank,
    command: Callable[..., Command],
    *customers: UUID,
    words: str,
    why: str,
    about: UUID | None = None,
    key: UUID | None = None,
    **fields: Any,
) -> str:
    """Propose a command that moves money; return what is said of it.

    It is about its own key where it is about nothing else, and a new key is drawn without one.
    """
    key = key or ids.new()
    made = command(caller=OPERATOR, key=key, customers=customers, origin=Origin.operator(), **fields)
    by = Operator.of_command_line(bank.settings.operator)
    return said_of(await propose_movement(bank, made, about=about or key, words=words, reason=why, by=by))


def said_of(proposal: FreezeProposal) -> str:
    """Return what a command says that has made a proposal."""
    return (
        f"Proposed: {proposal.words}. Another operator confirms it: billfold proposals confirm {proposal.proposal_id}"
    )
