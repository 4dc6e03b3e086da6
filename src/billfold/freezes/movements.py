"""The commands that move money by decision of operators, or end that it is waited for, as proposals keep them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from billfold.payments.ach.commands import ReverseAch
from billfold.payments.adjustments.commands import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.crypto.deposits.commands import CreditDeposit
from billfold.payments.files.commands import CloseRailFile
from billfold.payments.suspense.commands import AssignFromSuspense, ReturnFromSuspense, WriteOffFromSuspense

if TYPE_CHECKING:
    from billfold.freezes.types import FreezeProposal
    from billfold.ledger.commands import Command

MOVEMENTS: frozenset[type[Command]] = frozenset(
    {
        PostGoodwillCredit,
        AdjustPocket,
        ReverseTransaction,
        ReverseAch,
        CreditDeposit,
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
