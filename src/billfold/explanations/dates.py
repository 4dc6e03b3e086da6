"""Explains a date by the days from an instant to it: closed days, cut-offs, and the days that a rule demands."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NamedTuple

from billfold.accounts.explain.schemas import Explanation, Formula, Unit, explain, given
from billfold.accounts.trades.schemas import settles_on as trade_settles_on
from billfold.accounts.trades.store import TradeRow
from billfold.accounts.transactions.settlement import TransactionRow, settles_at
from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction, TransactionType
from billfold.payments.ach.commands import AchEntry
from billfold.payments.ach.rules import windows
from billfold.payments.wires.rules.cut_offs import send_time
from billfold.platform.calendars import Calendars
from billfold.platform.dates import ET, et_date

_ONE_DAY = timedelta(days=1)


class Stage(NamedTuple):
    """A date on the way, and why an open day before it does not count. `is_open` tells the open days."""

    label: str
    on: date
    why: str
    is_open: Callable[[date], bool]


def explain_date(
    label: str, words: str, begin: date, *stages: Stage, calendars: Calendars, agreed: date
) -> Explanation:
    """Return the explanation of the date that was agreed: each day from `begin` on, and why the next one follows.

    `agreed` differs from the last stage if days were declared closed, or open again, since.
    """
    if stages[-1].on != agreed:
        since = "the calendar has changed since it was agreed, or its window was missed"
        stages = (*stages, Stage(label, agreed, since, stages[-1].is_open))
    inputs, steps, before, symbol = [given("d", "Day, New York time", begin, Unit.DATE)], [], begin, "d"
    for n, stage in enumerate(stages):
        way = 1 if stage.on >= before else -1
        for k in range(abs((stage.on - before).days)):
            day = before + k * way * _ONE_DAY
            reason = stage.why if stage.is_open(day) else calendars.closed_for(day) or stage.why
            inputs.append(given(f"n{n}", f"{day:%A}, {day:%B} {day.day}: {reason}", way, Unit.DAYS))
        steps.append(Formula(f"D{n}", f"{symbol} + sum(n{n})", Unit.DATE, stage.label))
        before, symbol = stage.on, f"D{n}"
    return explain(label, words, *steps, comes_to=agreed, inputs=inputs)


def _from(at: datetime) -> str:
    return f"{at.astimezone(ET):%H:%M} New York time"


def explain_trade_date(row: TradeRow, bank: Bank) -> Explanation:
    """Explain the settlement date of a trade."""
    calendars, is_open = bank.calendars, bank.calendars.is_settlement_day
    business_date = calendars.business_date(row.traded_at)
    stages = [Stage("Business date", business_date, f"at {_from(row.traded_at)} it was over", is_open)]
    if row.settles_on > row.book_date:
        next_day = bank.market.settles_on(row.traded_at)
        stages.append(Stage("Settlement date", next_day, "a trade settles one business day later", is_open))
    return explain_date(
        "Settlement date",
        "A trade belongs to a business date, which ends with the market. It settles on the next day on which the"
        " Federal Reserve and the bond market are both open; a sale for a payment settles on its own business date.",
        et_date(row.traded_at),
        *stages,
        calendars=calendars,
        agreed=trade_settles_on(row, calendars),
    )


def explain_transaction_date(row: TransactionRow, bank: Bank) -> Explanation:
    """Explain the day on which a transaction settles."""
    calendars, agreed = bank.calendars, et_date(settles_at(row, bank.calendars))
    is_open = calendars.is_settlement_day if row.type == TransactionType.ON_US else calendars.is_fed_day
    why = f"booked at {_from(row.booked_at)}, its money moves later"
    return explain_date(
        "Settlement date",
        "The day on which the money of this transaction moves for good. Payments move on days on which the Federal"
        " Reserve is open.",
        et_date(row.booked_at),
        Stage("Settlement date", agreed, why, is_open),
        calendars=calendars,
        agreed=agreed,
    )


def explain_wire_date(created_at: datetime, send_at: datetime, bank: Bank) -> Explanation:
    """Explain the day on which a wire is sent, and settles."""
    calendars, hours = bank.calendars, bank.terms.wire_hours
    times = [send_time(created_at, calendars, hours, international=each) for each in (False, True)]
    cutoff = hours.international_cutoff if send_at != times[0] and send_at == times[1] else hours.domestic_cutoff
    sent = times[1] if cutoff == hours.international_cutoff else times[0]
    return explain_date(
        "Settlement date",
        f"A wire accepted before {cutoff:%H:%M} New York time on a day on which Fedwire is open is sent at once, others"
        " when it opens next. It settles when it is sent.",
        et_date(created_at),
        Stage(
            "Sent, and settled",
            et_date(sent),
            f"accepted at {_from(created_at)}, after the cut-off",
            calendars.is_fed_day,
        ),
        calendars=calendars,
        agreed=et_date(calendars.settles_at(send_at)),
    )


def explain_ach_dates(entry: AchEntry, approved_at: datetime, bank: Bank) -> list[Explanation]:
    """Explain the effective date of an ACH entry, and the end of the hold on what a debit collects."""
    calendars, cutoff = bank.calendars, bank.terms.ach_cutoff
    if entry.effective_on is None:
        return []
    is_credit, is_open = entry.direction == Direction.CREDIT, calendars.is_fed_day
    times = windows.schedule(approved_at, entry.amount, calendars, is_credit=is_credit, cutoff=cutoff)
    accepted = windows.accepted_on(approved_at, calendars, cutoff)
    stages = [Stage("Accepted", accepted, f"approved at {_from(approved_at)}, the cut-off is {cutoff:%H:%M}", is_open)]
    if is_credit:
        sold = "the bills that fund it settle first"
        stages.append(Stage("Sent", calendars.next_settlement_day(accepted), sold, calendars.is_settlement_day))
    large = f"from {windows.SAME_DAY_BELOW_CENTS // 100:,} dollars on it settles one banking day after it is sent"
    stages.append(Stage("Effective date", times.effective_on, large, is_open))
    words = "An entry belongs to the banking day on which it is accepted before the cut-off. It settles in a window of"
    found = [
        explain_date(
            "Settlement date",
            f"{words} that day or the next.",
            et_date(approved_at),
            *stages,
            calendars=calendars,
            agreed=entry.effective_on,
        )
    ]
    if entry.held_until is not None:
        days = windows.HELD_DAYS[entry.sec_code]
        until = windows.held_until(entry.effective_on, entry.sec_code, calendars)
        found.append(
            explain_date(
                "End of the hold",
                f"What a {entry.sec_code} debit collects stays in the Pocket for {days} banking days, in which it may"
                " still be returned. It earns, and counts in the amount held.",
                entry.effective_on,
                Stage("End of the hold", et_date(until), "it may still be returned", is_open),
                calendars=calendars,
                agreed=et_date(calendars.settles_at(entry.held_until)),
            )
        )
    return found
