"""`billfold freezes` and `billfold proposals`: decisions that need two operators."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, OPERATOR, CommandGroup, Row
from billfold.dual_control import decisions, store
from billfold.dual_control.decisions import propose_movement
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
    """Propose a command that moves money; return the text to print.

    The subject defaults to the command's key, and a missing key is generated.
    """
    key = key or ids.new()
    made = command(caller=OPERATOR, key=key, customers=customers, origin=Origin.operator(), **fields)
    by = Operator.of_command_line(bank.settings.operator)
    return said_of(await propose_movement(bank, made, about=about or key, words=words, reason=why, by=by))


def said_of(proposal: store.FreezeProposal) -> str:
    """Return the text that a command prints after making a proposal."""
    return (
        f"Proposed: {proposal.words}. Another operator confirms it: billfold proposals confirm {proposal.proposal_id}"
    )


group = CommandGroup("freezes", "Propose a freeze or its end, and confirm what another has proposed.", example="list")
proposals = CommandGroup(
    "proposals",
    "Confirm or withdraw what another operator has proposed: freezes and movements of money.",
    example="list",
)
_SHOWN = 100
_BOOKED = {"transaction_id": "transaction", "wire_id": "wire", "ach_id": "ACH entry", "transfer_id": "transfer"}
"""Ids in the outcome of a command, and their names in the output."""
_COLUMNS = ("proposal", "what", "reason", "status", "proposed by", "decided by", "since")

ProposalId = Annotated[UUID, typer.Argument(help="The proposal's id, from the list.")]


@proposals.table("list", columns=_COLUMNS)
@group.table("list", columns=_COLUMNS)
async def list_all(bank: Bank) -> Iterable[Row]:
    """List the last hundred proposals, open ones first, then newest first."""
    return [
        (each.proposal_id, each.words, each.reason, each.status, each.proposed_by, each.decided_by, each.proposed_at)
        for each in await store.PROPOSALS.rows(bank.pool, bank.own_id, limit=_SHOWN)
    ]


@group.command(f"propose card {EXAMPLE_ID} --reason 'Suspected fraud'", f"propose customer {EXAMPLE_ID} --lift")
async def propose(
    bank: Bank,
    subject: Annotated[store.FreezeSubject, typer.Argument(case_sensitive=False, help="What is frozen.")],
    subject_id: Annotated[UUID, typer.Argument(help="Its id.")],
    *,
    reason: Annotated[str, typer.Option(help="Why, for the audit logs.")],
    lift: Annotated[bool, typer.Option("--lift", help="End its freeze instead.")] = False,
) -> str:
    """Propose to freeze a customer, a Pocket or a card, or to end its freeze."""
    made = await decisions.propose(bank, subject, subject_id, freezes=not lift, reason=reason, by=_operator(bank))
    return said_of(made)


@proposals.command(f"confirm {EXAMPLE_ID}")
@group.command(f"confirm {EXAMPLE_ID}")
async def confirm(bank: Bank, proposal_id: ProposalId) -> str:
    """Confirm a proposal of another operator; it is carried out at once."""
    done, outcome = await decisions.confirm(bank, proposal_id, by=_operator(bank))
    booked = (f"{what} {outcome[name]}" for name, what in _BOOKED.items() if outcome.get(name))
    return f"{', '.join([f'{done.words}: {done.status}', *booked])}."


@proposals.command(f"withdraw {EXAMPLE_ID}")
@group.command(f"withdraw {EXAMPLE_ID}")
async def withdraw(bank: Bank, proposal_id: ProposalId) -> str:
    """Withdraw a proposal."""
    return f"{(await decisions.withdraw(bank, proposal_id, by=_operator(bank))).words}: withdrawn."


def _operator(bank: Bank) -> Operator:
    return Operator.of_command_line(bank.settings.operator)
