"""Actions of operators on settlement: authority is checked here, for the console and the command line alike."""

from datetime import date
from typing import NamedTuple
from uuid import UUID

from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.store import FreezeProposal
from billfold.identity.operators import Operator, Power
from billfold.ledger.bank import Bank
from billfold.platform import ids
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput
from billfold.platform.money import format_usd
from billfold.trading.settlement import store
from billfold.trading.settlement.commands import DecideDifference, ReportInstruction
from billfold.trading.settlement.types import InstructionStatus, SettlementDifference, SettlementInstruction

_REASON_CHARS_MAX = 200
_BPS_YEAR = 10_000 * 360
_CLOSED_SHOWN = 30


class DueInstruction(NamedTuple):
    """An instruction with the calendar days since it was due, and the cents that financing its money cost since."""

    row: SettlementInstruction
    age: int
    cost: int

    @property
    def is_fail(self) -> bool:
        """Tell whether it was due on an earlier day."""
        return self.age > 0


class SettlementOverview(NamedTuple):
    """Open instructions, the fails first, differences, and the instructions that were settled or cancelled last."""

    today: date
    open: list[DueInstruction]
    held: list[tuple[SettlementDifference, SettlementInstruction]]
    closed: list[SettlementInstruction]

    @property
    def fails(self) -> list[DueInstruction]:
        """Those that were due on an earlier day."""
        return [each for each in self.open if each.is_fail]

    @property
    def due(self) -> list[DueInstruction]:
        """Those that are due today."""
        return [each for each in self.open if each.row.settles_on == self.today]

    @property
    def coming(self) -> list[DueInstruction]:
        """Those that are due on a later day."""
        return [each for each in self.open if each.row.settles_on > self.today]


async def read_settlement(bank: Bank) -> SettlementOverview:
    """Return the settlement now, in one snapshot."""
    bank_id, bps = bank.own_id, bank.settings.settlement_fail_bps
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        today = et_date(await bank.now(conn))
        rows = await store.list_open(conn, bank_id)
        held = await store.list_held(conn, bank_id)
        differences = [(each, await store.get_instruction(conn, bank_id, each.instruction_id)) for each in held]
        closed = await store.list_closed(conn, bank_id, _CLOSED_SHOWN)
    ages = [max((today - each.settles_on).days, 0) for each in rows]
    found = [
        DueInstruction(row, age, abs(row.open_money) * bps * age // _BPS_YEAR)
        for row, age in zip(rows, ages, strict=True)
        if row.open_units or not row.is_redemption
    ]
    return SettlementOverview(today, found, differences, closed)


async def send_again(bank: Bank, instruction_id: UUID, *, reason: str, by: Operator) -> None:
    """Send a rejected instruction again. Raises InvalidInput, NotFound, Refused `settlement-state`."""
    by.require(Power.TRADE)
    if not (1 <= len(reason.strip()) <= _REASON_CHARS_MAX and reason.isprintable()):
        raise InvalidInput.at("reason", msg=f"must be 1 to {_REASON_CHARS_MAX} printable characters")
    row = await store.get_instruction(bank.pool, bank.own_id, instruction_id)
    await bank.engine.submit(
        ReportInstruction(
            caller="operator",
            key=ids.new(),
            customers=(row.customer_id,),
            origin=by.origin,
            references=(instruction_id,),
            instruction_id=instruction_id,
            attempt=row.attempt,
            status=InstructionStatus.NEW,
            reason=reason.strip(),
        )
    )


async def propose_difference(
    bank: Bank, difference_id: UUID, *, accept: bool, reason: str, by: Operator
) -> FreezeProposal:
    """Propose to book a confirmation that was held, or to dismiss it.

    Raises NotFound, InvalidInput, Refused `settlement-state`, `proposal-open`.
    """
    by.require(Power.MOVE_MONEY)
    bank_id = bank.own_id
    held = await store.get_difference(bank.pool, bank_id, difference_id)
    row = await store.get_instruction(bank.pool, bank_id, held.instruction_id)
    command = DecideDifference(
        caller="operator",
        key=ids.new(),
        customers=(bank_id,),
        origin=by.origin,
        references=(row.instruction_id, difference_id),
        difference_id=difference_id,
        accept=accept,
    )
    what = f"{held.units:,} units of {row.cusip} for {format_usd(held.money)} with {row.dealer}"
    words = f"{'Book' if accept else 'Dismiss'} the custodian's confirmation of {what}. {held.reason}"
    return await propose_movement(bank, command, about=difference_id, words=words, reason=reason, by=by)
