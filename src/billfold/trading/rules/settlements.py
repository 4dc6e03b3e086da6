"""Settlement: executions are instructed, and posted once the custodian has confirmed them. No date settles anything."""

from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.recording import post_signed
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind
from billfold.platform.dates import et_date, format_day
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id
from billfold.platform.money import PRICE_PAR_MICROS, cents_for, format_usd
from billfold.trading.settlement.commands import ConfirmSettlement, DecideDifference, ReportInstruction
from billfold.trading.settlement.types import (
    AT_CUSTODIAN,
    CLOSED,
    DIFFERENCE_EVENT,
    INSTRUCTION_EVENTS,
    REDEMPTIONS,
    DifferenceStatus,
    InstructionPayload,
    InstructionStatus,
    SettlementDifference,
    SettlementInstruction,
    instruction_id_of,
    redemption_id_of,
)
from billfold.trading.types import DealerSettlement, Execution, sign_of

SEND_JOB: Final = "settlement-send"
CANCEL_JOB: Final = "settlement-cancel"
"""The kinds of jobs that send an instruction to the custodian, and its cancellation."""
_S = InstructionStatus


def instruct(book: Book, ctx: Context, row: Execution) -> None:
    """Instruct the custodian to settle an execution."""
    sign = sign_of(row.side)
    _open(
        book,
        ctx,
        instruction_id=instruction_id_of(row.execution_id),
        execution_id=row.execution_id,
        counterparty=AccountKind.of_dealer(row.dealer),
        cusip=row.cusip,
        units=sign * row.units,
        money=sign * row.money,
        settles_on=row.settles_on,
    )


def withdraw(book: Book, ctx: Context, execution_id: UUID) -> None:
    """Take back the instruction of an execution that was corrected or busted; what of it has settled is sent back."""
    row = find_instruction(book, instruction_id_of(execution_id))
    if row.settled_units or row.settled_money:
        _send_back(book, ctx, row, (row.settled_units, row.settled_money), command_id("back", row.instruction_id))
    status = row.status
    if status in AT_CUSTODIAN:
        status = _S.CANCELLING
        book.schedule(CANCEL_JOB, row.instruction_id, ctx.now)
    elif status not in CLOSED:
        status = _S.CANCELLED  # the custodian does not have it
    _change(book, ctx, row, withdrawn=True, status=status, status_reason="its execution was taken back")


def _send_back(book: Book, ctx: Context, row: SettlementInstruction, moved: tuple[int, int], new_id: UUID) -> None:
    units, money = moved
    what: dict[str, Any] = {"counterparty": row.counterparty, "cusip": row.cusip, "units": -units, "money": -money}
    settles_on = ctx.calendars.next_settlement_day(book.business_date)
    _open(book, ctx, instruction_id=new_id, settles_on=settles_on, **what)


def expect_redemption(book: Book, ctx: Context, cusip: str, units: int) -> None:
    """Expect the custodian to redeem so many units more at par. It may have done so already."""
    row = _find_redemption(book, ctx, cusip)
    left = row.units - units, row.money - cents_for(units, PRICE_PAR_MICROS)
    _settled(book, ctx, msgspec.structs.replace(row, units=left[0], money=left[1]))


def find_instruction(book: Book, instruction_id: UUID) -> SettlementInstruction:
    """Return an instruction that the command references. Raises NotFound."""
    found = book.referenced.get(instruction_id)
    if not isinstance(found, SettlementInstruction):
        raise NotFound(f"There is no instruction {instruction_id}.")
    return found


def _find_redemption(book: Book, ctx: Context, cusip: str) -> SettlementInstruction:
    """Return the redemption of a bill, expected from now on if it was not."""
    instruction_id = redemption_id_of(cusip)
    if not isinstance(book.referenced.get(instruction_id), SettlementInstruction):
        what: dict[str, Any] = {"counterparty": REDEMPTIONS, "cusip": cusip, "units": 0, "money": 0}
        due = ctx.calendars.settlement_on_or_after(ctx.bill(cusip).maturity)
        _open(book, ctx, instruction_id=instruction_id, settles_on=due, status=_S.PENDING, **what)
    return find_instruction(book, instruction_id)


@decides(ReportInstruction)
def report_instruction(books: Books, cmd: ReportInstruction, ctx: Context) -> Outcome:
    """Change the state of an instruction. Refuses: settlement-state if it has ended, or of another attempt."""
    book = book_of(books, cmd.customers[0])
    row = find_instruction(book, cmd.instruction_id)
    if row.status in CLOSED or row.is_redemption:
        raise Refused("settlement-state", f"The instruction is {row.status}.")
    if cmd.attempt != row.attempt:
        raise Refused("settlement-state", f"That was attempt {cmd.attempt}; it was sent again since.")
    status, attempt = _next_status(row, cmd.status), row.attempt
    if status == _S.NEW:
        attempt += 1
        book.schedule(SEND_JOB, row.instruction_id, ctx.now)
    _change(book, ctx, row, status=status, status_reason=cmd.reason, attempt=attempt)
    return {"instruction_id": str(row.instruction_id), "status": status}


def _next_status(row: SettlementInstruction, said: InstructionStatus) -> InstructionStatus:
    """Return the state after what was said. Refuses: settlement-state."""
    may_resend = row.status == _S.REJECTED and not row.withdrawn
    if not (may_resend if said == _S.NEW else (said == _S.SENT) == (row.status == _S.NEW)):
        raise Refused("settlement-state", f"The instruction is {row.status}; it cannot become {said}.")
    if said == _S.CANCELLED and not row.withdrawn:
        return _S.REJECTED  # the trade stands: it is still to be settled
    if said == _S.REJECTED and row.withdrawn:
        return _S.CANCELLED  # nothing of it can settle any more
    return row.status if row.status == _S.CANCELLING and said in {_S.MATCHED, _S.FAILING} else said


@decides(ConfirmSettlement)
def confirm_settlement(books: Books, cmd: ConfirmSettlement, ctx: Context) -> Outcome:
    """Post what the custodian confirmed, or hold it with the reason."""
    book = book_of(books, cmd.customers[0])
    if cmd.instruction_id == redemption_id_of(cmd.cusip):
        row = _find_redemption(book, ctx, cmd.cusip)
    else:
        row = find_instruction(book, cmd.instruction_id)
    reason = _difference(row, cmd, ctx)
    if reason is None:
        _settle(book, ctx, row, cmd, difference=0)
        return {"instruction_id": str(row.instruction_id), "held": None, "message_no": cmd.message_no}
    held = SettlementDifference(
        customer_id=book.customer_id,
        difference_id=ctx.ids.next(),
        instruction_id=row.instruction_id,
        cusip=cmd.cusip,
        units=cmd.units,
        money=cmd.money,
        settled_on=cmd.settled_on,
        reason=reason,
        held_at=ctx.now,
    )
    book.draft.add(held)
    book.keep_fingerprint(held)
    book.put(book.referenced, held.difference_id, held)
    recording.event(book, ctx, DIFFERENCE_EVENT, payload=_shown(row, reason))
    told = {"difference_id": str(held.difference_id), "held": reason, "message_no": cmd.message_no}
    return {"instruction_id": str(row.instruction_id), **told}


@decides(DecideDifference)
def decide_difference(books: Books, cmd: DecideDifference, ctx: Context) -> Outcome:
    """Post a held confirmation, or dismiss it. Refuses: settlement-state if it was decided, or what is not open."""
    book = book_of(books, cmd.customers[0])
    held = book.referenced.get(cmd.difference_id)
    if not isinstance(held, SettlementDifference):
        raise NotFound(f"There is no difference {cmd.difference_id}.")
    if held.status != DifferenceStatus.HELD:
        raise Refused("settlement-state", f"It is {held.status} already.")
    row = find_instruction(book, held.instruction_id)
    if cmd.accept:
        # One that was cancelled may settle all the same: it is booked, and sent back.
        if held.cusip != row.cusip or not _is_within(held.units, row.open_units):
            left = f"{row.open_units} units of {row.cusip} are open"
            raise Refused("settlement-state", f"The instruction is {row.status}; {left}. Dismiss the confirmation.")
        _settle(book, ctx, row, held, difference=held.money - expected_money(row, held.units))
    status = DifferenceStatus.ACCEPTED if cmd.accept else DifferenceStatus.DISMISSED
    book.change(SettlementDifference, held.difference_id, status=status, decided_at=ctx.now)
    held = msgspec.structs.replace(held, status=status, decided_at=ctx.now)
    book.keep_fingerprint(held)
    book.put(book.referenced, held.difference_id, held)
    return {"difference_id": str(held.difference_id), "status": status}


def expected_money(row: SettlementInstruction, units: int) -> int:
    """Return the cents for so many units of an instruction: its share rounded half up, and the rest with the last."""
    if row.is_redemption:
        return -cents_for(-units, PRICE_PAR_MICROS)
    if units == row.open_units:
        return row.open_money
    share = (2 * abs(row.money) * abs(units) + abs(row.units)) // (2 * abs(row.units))
    return share if units > 0 else -share


def _is_within(units: int, open_units: int) -> bool:
    return 0 < units <= open_units or open_units <= units < 0


def _difference(row: SettlementInstruction, cmd: ConfirmSettlement, ctx: Context) -> str | None:
    """Return why a confirmation is not booked as it is; None if it is what was instructed, or a part of it."""
    # A redemption may come before the close of the maturity date, which says how much is expected.
    open_units = -cmd.custody_units if row.is_redemption else row.open_units
    is_within = _is_within(cmd.units, open_units)
    today, right = et_date(ctx.now), expected_money(row, cmd.units) if is_within else cmd.money
    settled, due = format_day(cmd.settled_on), format_day(row.settles_on)
    wrong = {
        f"The instruction is {row.status} already.": row.status in CLOSED and not row.is_redemption,
        f"It is of attempt {cmd.attempt}; attempt {row.attempt} is {row.status}.": (
            cmd.attempt != row.attempt or row.status == _S.NEW
        ),
        f"It settles {cmd.cusip}, the instruction is of {row.cusip}.": cmd.cusip != row.cusip,
        f"It settled on {settled}; it is due on {due}, and today is {format_day(today)}.": not (
            row.settles_on <= cmd.settled_on <= today
        ),
        f"It settles {cmd.units} units; {open_units} are open.": not is_within,
        f"Its money is {format_usd(cmd.money)}; {cmd.units} of the units are {format_usd(right)}.": cmd.money != right,
    }
    return next((reason for reason, is_wrong in wrong.items() if is_wrong), None)


def _settle(
    book: Book,
    ctx: Context,
    row: SettlementInstruction,
    said: ConfirmSettlement | SettlementDifference,
    difference: int,
) -> None:
    """Post confirmed money and units; what was paid beyond the instruction is the bank's loss."""
    kind, money = AccountKind(row.counterparty), said.money - difference
    journal = JournalKind.REDEMPTION if row.is_redemption else JournalKind.DEALER_SETTLEMENT
    entry_no = book.begin(journal, ctx, settles_on=row.settles_on, business_date=book.business_date)
    reserve = book.internal_account(AccountKind.RESERVE)
    post_signed(book, book.internal_account(kind), reserve, amount=money)
    if difference:
        post_signed(book, book.internal_account(AccountKind.TRADING_GAINS), reserve, amount=difference)
    bills = book.internal_account(AccountKind.CUSTODIAN, row.cusip), book.internal_account(kind, row.cusip)
    post_signed(book, *bills, amount=said.units)
    book.close()
    if not row.is_redemption:
        settlement = DealerSettlement(
            customer_id=book.customer_id,
            entry_no=entry_no,
            dealer=row.dealer,
            cusip=row.cusip,
            settles_on=row.settles_on,
            closed_on=book.business_date,
            units=said.units,
            money=money,
            instruction_id=row.instruction_id,
            difference=difference,
        )
        book.draft.add(settlement)
    if row.withdrawn:
        _send_back(book, ctx, row, (said.units, money), ctx.ids.next())
    settled = {"settled_units": row.settled_units + said.units, "settled_money": row.settled_money + money}
    _settled(book, ctx, msgspec.structs.replace(row, **settled))


def _settled(book: Book, ctx: Context, row: SettlementInstruction) -> None:
    """Record units and money of an instruction that changed; with nothing open it is SETTLED."""
    changed = {name: getattr(row, name) for name in ("units", "money", "settled_units", "settled_money")}
    is_over = not row.open_units and bool(row.units)
    status = _S.SETTLED if is_over else _S.PENDING if row.status == _S.SETTLED else row.status
    _change(book, ctx, row, status=status, status_reason=None, **changed)


def _open(book: Book, ctx: Context, **what: Any) -> None:
    row = SettlementInstruction(customer_id=book.customer_id, created_at=ctx.now, updated_at=ctx.now, **what)
    book.draft.add(row)
    if row.status == _S.NEW:
        book.schedule(SEND_JOB, row.instruction_id, ctx.now)
    _announce(book, ctx, row)


def _change(book: Book, ctx: Context, row: SettlementInstruction, **columns: Any) -> None:
    columns["updated_at"] = ctx.now
    book.change(SettlementInstruction, row.instruction_id, **columns)
    _announce(book, ctx, msgspec.structs.replace(row, **columns))


def _announce(book: Book, ctx: Context, row: SettlementInstruction) -> None:
    book.keep_fingerprint(row)
    book.put(book.referenced, row.instruction_id, row)
    recording.event(book, ctx, INSTRUCTION_EVENTS[row.status], payload=_shown(row, row.status_reason))


def _shown(row: SettlementInstruction, reason: str | None) -> InstructionPayload:
    names = ("instruction_id", "counterparty", "cusip", "units", "money", "settled_units")
    return InstructionPayload(**{name: getattr(row, name) for name in names}, reason=reason)
