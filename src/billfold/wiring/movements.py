"""The commands of payments that two operators decide."""

from billfold.dual_control.decisions import Movements
from billfold.dual_control.store import FreezeProposal
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command, Outcome
from billfold.payments.ach.commands import ReturnAchEntry, ReverseAch
from billfold.payments.adjustments.rules import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.cards.authorizations.commands import CardRecord, ChargeBack, ClearCard, RefundCard, Represent
from billfold.payments.cards.commands import FreezeCard
from billfold.payments.cards.settlement.inbound import carry_out_assignment
from billfold.payments.crypto.deposits.rules import CreditDeposit
from billfold.payments.custody.rules import DeliverBills, ReceiveBills
from billfold.payments.files.rules import CloseRailFile
from billfold.payments.suspense.rules import AssignFromSuspense, ReturnFromSuspense, WriteOffFromSuspense
from billfold.payments.wires.cases import carry_out_return
from billfold.payments.wires.commands import ReturnWire


def movements() -> Movements:
    """Return every command that operators may propose."""
    return Movements(
        kinds=frozenset(
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
        ),
        carriers={ReturnWire: _return_wire, CardRecord: _assign_card_record},
        freeze_card=FreezeCard,
    )


async def _return_wire(bank: Bank, _: FreezeProposal, command: Command) -> Outcome:
    assert isinstance(command, ReturnWire)
    return await carry_out_return(bank, command)


async def _assign_card_record(bank: Bank, row: FreezeProposal, command: Command) -> Outcome:
    assert isinstance(command, CardRecord)
    return await carry_out_assignment(bank, command, item_id=row.subject_id)
