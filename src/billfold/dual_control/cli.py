"""`billfold freezes` and `billfold proposals`: what one operator proposes and another confirms."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row
from billfold.dual_control import decisions
from billfold.dual_control.proposing import said_of
from billfold.dual_control.store import PROPOSALS
from billfold.dual_control.types import FreezeSubject
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id

group = CommandGroup("freezes", "Propose a freeze or its end, and confirm what another has proposed.", example="list")
proposals = CommandGroup(
    "proposals",
    "Confirm or withdraw what another operator has proposed: freezes and movements of money.",
    example="list",
)
_SHOWN = 100
_BOOKED = MappingProxyType(
    {"transaction_id": "transaction", "wire_id": "wire", "ach_id": "ACH entry", "transfer_id": "transfer"}
)
"""What the outcome of a command names, and what it is called."""
_COLUMNS = ("proposal", "what", "reason", "status", "proposed by", "decided by", "since")

ProposalId = Annotated[UUID, typer.Argument(help="The proposal's id, from the list.")]


@proposals.table("list", columns=_COLUMNS)
@group.table("list", columns=_COLUMNS)
async def list_all(bank: Bank) -> Iterable[Row]:
    """List the last hundred proposals, open ones first, then newest first."""
    return [
        (each.proposal_id, each.words, each.reason, each.status, each.proposed_by, each.decided_by, each.proposed_at)
        for each in await PROPOSALS.rows(bank.pool, bank_customer_id(bank.seed), limit=_SHOWN)
    ]


@group.command(f"propose card {EXAMPLE_ID} --reason 'Suspected fraud'", f"propose customer {EXAMPLE_ID} --lift")
async def propose(
    bank: Bank,
    subject: Annotated[FreezeSubject, typer.Argument(case_sensitive=False, help="What is frozen.")],
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
    """Confirm what another operator has proposed; it is done at once."""
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
