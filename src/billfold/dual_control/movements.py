"""The commands that move money by decision of operators: as proposals keep them, and how they are carried out."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from billfold.payments.ach.commands import ReturnAchEntry, ReverseAch
from billfold.payments.adjustments.commands import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.cards.authorizations.commands import CardRecord, ChargeBack, ClearCard, RefundCard, Represent
from billfold.payments.cards.settlement.booking import carry_out_assignment
from billfold.payments.crypto.deposits.commands import CreditDeposit
from billfold.payments.custody.commands import DeliverBills, ReceiveBills
from billfold.payments.files.commands import CloseRailFile
from billfold.payments.suspense.commands import AssignFromSuspense, ReturnFromSuspense, WriteOffFromSuspense
from billfold.payments.wires.cases import carry_out_return
from billfold.payments.wires.commands import ReturnWire

if TYPE_CHECKING:
    from billfold.dual_control.types import FreezeProposal
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command, Outcome

MOVEMENTS: frozenset[type[Command]] = frozenset(
    {
        PostGoodwillCredit,
        AdjustPocket,
        ReverseTransaction,
        ReverseAch,
        ReturnAchEntry,
        ReturnWire,
        CreditDeposit,
        ReceiveBills,
        DeliverBills,
        ClearCard,
        RefundCard,
        ChargeBack,
        Represent,
        ReturnFromSuspense,
        AssignFromSuspense,
        WriteOffFromSuspense,
        CloseRailFile,
    }
)
_BY_NAME = MappingProxyType({name: kind for kind in MOVEMENTS for name in kind.names()})


def read_command(row: FreezeProposal) -> Command:
    """Return the command of a proposal that moves money, exactly as it was proposed."""
    movement = row.read_movement()
    return msgspec.json.decode(movement.command, type=_BY_NAME[movement.kind])


async def carry_out(bank: Bank, row: FreezeProposal, command: Command) -> Outcome:
    """Submit the command of a proposal, and do what goes with it; return its outcome. It may be repeated.

    Raises NotFound and Refused, as the rule does.
    """
    if isinstance(command, ReturnWire):
        return await carry_out_return(bank, command)
    if isinstance(command, CardRecord):
        return await carry_out_assignment(bank, command, item_id=row.subject_id)
    return (await bank.engine.submit(command)).outcome
