"""Compares a statement with the ledger: how many lines match, and which breaks it opens, changes and closes."""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.platform.database.connection import Connection
from billfold.platform.money import format_price, format_usd
from billfold.reconciliation import store
from billfold.reconciliation.rules.pairing import Pairing, pair
from billfold.reconciliation.types import (
    Break,
    Cause,
    ExpectedLine,
    NewBreak,
    Source,
    StatedLine,
    Statement,
    Trade,
    day_id,
)

_ONE_DAY = timedelta(days=1)
_SIGNED = (Cause.UNKNOWN_LINE, Cause.DIFFERENT_AMOUNT)


class Comparison(NamedTuple):
    """The result: `changed` are breaks that are still open, with the two sides of today."""

    matched: int
    opened: list[NewBreak]
    closed: list[UUID]
    changed: list[tuple[UUID, int, int]]


async def compare(conn: Connection, bank: Bank, statement: Statement) -> Comparison:
    """Compare a statement of a day that the bank has closed. Runs in the caller's snapshot."""
    bank_id = bank.own_id
    open_breaks = await store.list_open(conn, bank_id, statement.source, statement.account)
    work = [each for each in open_breaks if each.cause != Cause.NO_STATEMENT]
    comparers = {
        Source.RESERVE: _compare_reserve,
        Source.CUSTODIAN: _compare_units,
        Source.DEALER: _compare_trades,
    }
    found = await comparers[statement.source](conn, bank, statement, work)
    arrived = [each.break_id for each in open_breaks if each not in work and each.day == statement.day]
    odd = [
        NewBreak(cause=Cause.UNREADABLE_LINE, subject=f"line {each.line_no}", detail=each.reason, line_no=each.line_no)
        for each in statement.odd
    ]
    return found._replace(opened=[*found.opened, *odd], closed=[*found.closed, *arrived])


# -- the reserve account -----------------------------------------------------------------


async def preview(conn: Connection, bank: Bank, statement: Statement) -> tuple[int, list[NewBreak]]:
    """Return how many lines of a report within the day match so far, and the others: they open no breaks."""
    entries = await store.find_entries(conn, bank.own_id, statement.day)
    pairing = _pair_with(statement, await _list_expected(conn, bank, statement, entries), ())
    return pairing.matched, [each for each in _breaks_of(pairing) if each.line_no is not None]


async def _compare_reserve(conn: Connection, bank: Bank, statement: Statement, work: Sequence[Break]) -> Comparison:
    entries = await store.find_entries(conn, bank.own_id, statement.day)
    pairing = _pair_with(statement, await _list_expected(conn, bank, statement, entries), work)
    opened = [*_balance_breaks(statement), *await _gaps(conn, bank, statement, entries), *_breaks_of(pairing)]
    return Comparison(pairing.matched, opened, pairing.closed, [])


async def _list_expected(
    conn: Connection, bank: Bank, statement: Statement, entries: store.EntryRange
) -> list[ExpectedLine]:
    """Return the payments that settle since the business day before, and the other postings of the day.

    Of an earlier date, only those booked since its statement was reconciled were not expected before.
    """
    bank_id = bank.own_id
    previous = bank.calendars.settlement_on_or_before(statement.day - _ONE_DAY)
    expected = await store.list_postings(conn, bank_id, entries)
    for nth in range(1, (statement.day - previous).days + 1):
        expected += await store.list_payments(conn, bank_id, previous + timedelta(days=nth))
    for settled_on in await store.list_cleared_dates(conn, bank_id, entries):
        covered_on = bank.calendars.settlement_on_or_after(settled_on)
        before = await store.find_day(conn, bank_id, day_id(Source.RESERVE, statement.account, covered_on))
        if settled_on <= previous and before is not None and before.file_id is not None:
            late = await store.list_payments(conn, bank_id, settled_on, booked_after=before.reconciled_at)
            expected += late
    return expected


def _pair_with(statement: Statement, expected: Iterable[ExpectedLine], work: Iterable[Break]) -> Pairing:
    """Pair the lines of a statement with expected movements, and with the open breaks of earlier days."""
    lines, movements = list(statement.lines), list(expected)
    for each in work:
        names = frozenset(filter(None, [each.reference]))
        if each.cause in _SIGNED:
            lines.append(StatedLine(0, each.difference, names, each.rail, each.reference, each.break_id))
        elif each.cause == Cause.MISSING_LINE:
            movements.append(ExpectedLine(each.subject, each.booked or 0, names, each.rail, break_id=each.break_id))
    return pair(lines, movements)


def _breaks_of(pairing: Pairing) -> list[NewBreak]:
    """Return the breaks of what is not paired."""
    unknown: list[tuple[StatedLine, None]] = [(each, None) for each in pairing.unknown]
    return [
        *(_line_break(*each) for each in (*pairing.differing, *unknown)),
        *(
            NewBreak(
                cause=Cause.MISSING_LINE,
                subject=each.subject,
                booked=each.amount,
                rail=each.rail,
                reference=min(each.references, default=None),
            )
            for each in pairing.missing
        ),
    ]


def _line_break(line: StatedLine, movement: ExpectedLine | None) -> NewBreak:
    return NewBreak(
        cause=Cause.UNKNOWN_LINE if movement is None else Cause.DIFFERENT_AMOUNT,
        subject=f"line {line.line_no}" if movement is None else movement.subject,
        stated=line.amount,
        booked=None if movement is None else movement.amount,
        rail=line.rail if movement is None else movement.rail,
        reference=line.shown,
        line_no=line.line_no,
    )


def _balance_breaks(statement: Statement) -> Iterable[NewBreak]:
    """Compare the closing balance with the opening balance and the lines; a line that cannot be read has a break."""
    if statement.opening is not None and statement.closing is not None and not statement.odd:
        total = statement.opening + sum(each.amount for each in statement.lines)
        if total != statement.closing:
            detail = "The lines do not lead from the opening to the closing balance."
            yield NewBreak(
                cause=Cause.BALANCE, subject="closing balance", stated=statement.closing, booked=total, detail=detail
            )


async def _gaps(conn: Connection, bank: Bank, statement: Statement, entries: store.EntryRange) -> Iterable[NewBreak]:
    """Compare the balances with those of the adjacent days; of the first statement, with the ledger."""
    bank_id = bank.own_id

    async def stated_on(day: date) -> tuple[int | None, int | None]:
        found = await store.find_day(conn, bank_id, day_id(Source.RESERVE, statement.account, day))
        return (None, None) if found is None else (found.opening, found.closing)

    previous, following = (
        bank.calendars.settlement_on_or_before(statement.day - _ONE_DAY),
        bank.calendars.next_settlement_day(statement.day),
    )
    pairs = [
        ("opening balance", statement.opening, (await stated_on(previous))[1], f"closing balance of {previous}"),
        ("closing balance", statement.closing, (await stated_on(following))[0], f"opening balance of {following}"),
    ]
    if await store.find_first_day(conn, bank_id, Source.RESERVE, statement.account, is_stated=True) is None:
        booked = await store.find_balance_before(conn, bank_id, entries)
        pairs.append(("opening balance", statement.opening, booked, "balance in the ledger, of the first statement"))
    return [
        NewBreak(cause=Cause.BALANCE, subject=subject, stated=stated, booked=booked, detail=f"Expected: {against}.")
        for subject, stated, booked, against in pairs
        if None not in {stated, booked} and stated != booked
    ]


# -- the custodian -----------------------------------------------------------------------


async def _compare_units(conn: Connection, bank: Bank, statement: Statement, work: Sequence[Break]) -> Comparison:
    bank_id = bank.own_id
    entries = await store.find_entries(conn, bank_id, statement.day)
    booked = await store.list_units(conn, bank_id, entries, bank.calendars.closes_at(statement.day))
    stated, known = statement.units, {each.subject: each for each in work if each.cause == Cause.DIFFERENT_UNITS}
    found = Comparison(0, [], [], [])
    for cusip in sorted(stated.keys() | booked.keys() | known.keys()):
        sides, row = (stated.get(cusip, 0), booked.get(cusip, 0)), known.get(cusip)
        if row is not None and row.day > statement.day:  # a statement that came late says nothing of today
            continue
        if sides[0] == sides[1]:
            found.closed.extend([] if row is None else [row.break_id])
        elif row is None:
            found.opened.append(NewBreak(cause=Cause.DIFFERENT_UNITS, subject=cusip, stated=sides[0], booked=sides[1]))
        elif sides != (row.stated, row.booked):
            found.changed.append((row.break_id, *sides))
    return found._replace(matched=sum(booked.get(cusip, 0) == units for cusip, units in stated.items()))


# -- dealers -----------------------------------------------------------------------------


async def _compare_trades(conn: Connection, bank: Bank, statement: Statement, work: Sequence[Break]) -> Comparison:
    bank_id = bank.own_id
    names = [trade.reference for _, trade in statement.trades] + [each.reference for each in work if each.reference]
    found = await store.list_trades(conn, bank_id, statement.account, statement.day, names)
    booked = {name: each for each in found for name in (each.former, each.trade.reference) if name}
    opened, matched, seen = list[NewBreak](), 0, set[str]()
    for line_no, stated in statement.trades:
        ours = booked.get(stated.reference)
        if ours is None or ours.trade.reference in seen:
            opened.append(_trade_break(stated, None, line_no))
            continue
        seen.add(ours.trade.reference)
        if ours.trade._replace(reference=stated.reference) == stated:
            matched += 1
        else:
            opened.append(_trade_break(stated, ours.trade, line_no))
    told = {each.reference for each in work}  # in an earlier recap, and booked since
    missing = [
        each.trade
        for each in found
        if each.business_date == statement.day
        and each.trade.reference not in seen
        and told.isdisjoint({each.trade.reference, each.former})
    ]
    opened += [_trade_break(None, each) for each in missing]
    return Comparison(matched, opened, [each.break_id for each in work if _is_over(each, booked, seen)], [])


def _is_over(row: Break, booked: dict[str, store.BookedTrade], seen: set[str]) -> bool:
    """Tell whether an earlier break is: the trade was booked as the dealer has it, listed late, or busted."""
    ours = booked.get(row.reference or "")
    if row.cause == Cause.MISSING_LINE:
        return ours is None or ours.trade.reference in seen
    return ours is not None and row.detail is not None and row.detail.startswith(describe(ours.trade))


def describe(trade: Trade) -> str:
    """Return the terms of a trade in words."""
    return (
        f"{trade.side} {trade.units:,} {trade.cusip} at {format_price(trade.price_micros)} for "
        f"{format_usd(trade.money)}, settles on {trade.settles_on}"
    )


def _trade_break(stated: Trade | None, booked: Trade | None, line_no: int | None = None) -> NewBreak:
    sides = [each for each in (stated, booked) if each is not None]
    return NewBreak(
        cause=Cause.DIFFERENT_TERMS if stated and booked else Cause.UNKNOWN_LINE if stated else Cause.MISSING_LINE,
        subject=f"trade {sides[0].reference}",
        stated=None if stated is None else stated.money,
        booked=None if booked is None else booked.money,
        reference=sides[0].reference,
        detail="; booked: ".join(map(describe, sides)),
        line_no=line_no,
    )
