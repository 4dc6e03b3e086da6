"""The commands that one operator proposes and another confirms."""

from billfold.dual_control.decisions import Movements
from billfold.dual_control.store import FreezeProposal
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command, Outcome
from billfold.payments.ach.commands import ReturnAchEntry, ReverseAch
from billfold.payments.adjustments.rules import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.cards.authorizations.commands import CardRecord, ChargeBack, ClearCard, RefundCard, Represent
from billfold.payments.cards.authorizations.disputes.commands import DecideDispute
from billfold.payments.cards.commands import FreezeCard
from billfold.payments.cards.settlement.inbound import carry_out_assignment
from billfold.payments.crypto.deposits.rules import CreditDeposit
from billfold.payments.custody.rules import DeliverBills, ReceiveBills
from billfold.payments.files.rules import CloseRailFile
from billfold.payments.suspense.rules import (
    AssignFromSuspense,
    HoldInSuspense,
    ReturnFromSuspense,
    WriteOffFromSuspense,
)
from billfold.payments.wires.cases import carry_out_return
from billfold.payments.wires.commands import ReleaseWire, ReturnWire
from billfold.reconciliation.commands import CloseBreak
from billfold.reconciliation.decisions import carry_out_hold
from billfold.trading.commands import AmendExecution, RecordExecutions
from billfold.trading.settlement.commands import DecideDifference


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
                ReleaseWire,
                ReturnWire,
                CreditDeposit,
                ReceiveBills,
                DeliverBills,
                ClearCard,
                RefundCard,
                ChargeBack,
                Represent,
                DecideDispute,
                ReturnFromSuspense,
                AssignFromSuspense,
                WriteOffFromSuspense,
                CloseRailFile,
                HoldInSuspense,
                CloseBreak,
                RecordExecutions,
                AmendExecution,
                DecideDifference,
            }
        ),
        carriers={ReturnWire: _return_wire, CardRecord: _assign_card_record, HoldInSuspense: carry_out_hold},
        freeze_card=FreezeCard,
    )


async def _return_wire(bank: Bank, _: FreezeProposal, command: Command) -> Outcome:
    assert isinstance(command, ReturnWire)
    return await carry_out_return(bank, command)


async def _assign_card_record(bank: Bank, row: FreezeProposal, command: Command) -> Outcome:
    assert isinstance(command, CardRecord)
    return await carry_out_assignment(bank, command, item_id=row.subject_id)
