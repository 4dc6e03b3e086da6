"""Reads the history of a Pocket's account: first its balances and totals, then its entries page by page.

The brokerage account is valued at the recorded closing prices of the day; before the day is over, at
the last price. Work that is due by then is done first, so that a day that is over does not change.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from copy import copy
from datetime import date, datetime, timedelta
from typing import NamedTuple, TypeVar
from uuid import UUID

import structlog

from billfold.accounts.transactions.pages import noted_transactions, open_transactions
from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import CatchUp
from billfold.platform.database.shortage import error_summary
from billfold.platform.errors import InvariantError
from billfold.platform.money import PRICE_PAR_MICROS
from billfold.reports.entries import rules, store, types
from billfold.reports.entries.store import AccountRow, Span

ROWS_PER_PAGE = 500
_ONE_DAY = timedelta(days=1)
_POSTING_NO_MAX = 2**15 - 1
_SERIAL_DIGITS = 20


class StatementRange(NamedTuple):
    """An account of a Pocket over Eastern days, both included, as seen at an instant.

    With a `position` the log is read up to there. With `entries_after` it is read from that journal entry on, whatever
    its day; only for a bank account, which is empty on both sides.
    """

    customer_id: UUID
    pocket_id: UUID
    type: types.AccountType
    first_day: date
    last_day: date
    now: datetime
    position: types.LedgerPosition | None = None
    entries_after: int | None = None


async def read_statement(bank: Bank, wanted: StatementRange) -> types.AccountStatement:
    """Return balances and totals of an account. Raises NotFound, InvariantError if they do not add up."""
    customer_id, pocket_id = wanted.customer_id, wanted.pocket_id
    period = rules.period_of(wanted.first_day, wanted.last_day, wanted.now)
    # Before the day is over, entries booked at this very instant belong to it.
    end = period.ends_at if period.is_closed else period.ends_at + datetime.resolution
    position = wanted.position or await current_position(bank, customer_id, end)
    row = await store.get_account(bank.pool, customer_id, pocket_id, end)
    first = wanted.entries_after
    if first is None:
        first = await store.last_entry_before(bank.pool, customer_id, period.starts_at)
    elif (last_booked_at := await store.find_booked_at(bank.pool, customer_id, first)) is not None:
        period = rules.period_since(last_booked_at, period)
    moved = await store.movements(bank.pool, Span(customer_id, pocket_id, first, position.entry_no))
    opening = closing = types.Balance()
    gains: tuple[types.AccountEntry, ...] = ()
    if wanted.type == types.AccountType.BROKERAGE:
        before = Span(customer_id, pocket_id, 0, first)
        opening = await _balance(bank, before, period.starts_at, day=period.first_day - _ONE_DAY)
        through = before._replace(through=position.entry_no)
        live = None if period.is_closed else row.real_time_yield
        closing = await _balance(bank, through, end, day=period.last_day, real_time=live)
        gains = tuple(rules.gains_of(period, opening, closing, moved.trades, bank.market))
    totals = rules.totals_of(wanted.type, moved, gains)
    rules.require_balance(opening, closing, totals, pocket_id)
    return types.AccountStatement(
        account=_account(bank, wanted, row),
        period=period,
        opening=opening,
        closing=closing,
        totals=totals,
        gains=gains,
        entries_after=first,
        position=position,
    )


async def list_entries(bank: Bank, statement: types.AccountStatement) -> AsyncIterator[list[types.AccountEntry]]:
    """Yield the entries of a statement in booking order, page by page, then its gains.

    Raises InvariantError at the end if the entries do not match the totals of the statement.
    """
    totals = types.EntryTotals()
    async for page in _pages(bank, statement):
        totals = totals.add(*(each.amount for each in page))
        yield page
    if statement.gains:
        totals = totals.add(*(each.amount for each in statement.gains))
        yield list(statement.gains)
    if totals != statement.totals:
        raise InvariantError("Entries differ from their totals.", pocket_id=statement.account.pocket_id)


async def current_position(bank: Bank, customer_id: UUID, end: datetime) -> types.LedgerPosition:
    """Return the position of the customer's last journal entry before an instant, after doing all work due by then."""
    return await store.position_of(bank.pool, customer_id, await current_entry(bank, customer_id, end))


async def current_entry(bank: Bank, customer_id: UUID, end: datetime) -> int:
    """Return the number of the customer's last journal entry before an instant, after doing all work due by then."""
    due = await store.due_at(bank.pool, customer_id)
    if due is not None and due < end:
        await bank.engine.submit(CatchUp(caller="due", key=customer_id, customers=(customer_id,)))
    return await store.last_entry_before(bank.pool, customer_id, end)


def _account(bank: Bank, wanted: StatementRange, row: AccountRow) -> types.Account:
    return types.Account(
        type=wanted.type,
        customer_id=wanted.customer_id,
        owner=row.owner,
        pocket_id=wanted.pocket_id,
        name=row.name,
        number=row.account_number or wanted.pocket_id.hex[-_SERIAL_DIGITS:].upper(),
        routing_number=row.routing_number or bank.settings.bank_routing_number,
        bank=bank.settings.bank_name,
    )


async def _pages(bank: Bank, statement: types.AccountStatement) -> AsyncIterator[list[types.AccountEntry]]:
    account = statement.account
    last = statement.entries_after
    place = (last, _POSTING_NO_MAX)
    span = Span(account.customer_id, account.pocket_id, last, statement.position.entry_no)
    while True:
        listed = await store.list_transactions(bank.pool, span, place, ROWS_PER_PAGE, ends_at=statement.period.ends_at)
        opened = await noted_transactions(bank, await open_transactions(bank, [each.row for each in listed]))
        page = [
            entry
            for row, each in zip(opened, listed, strict=True)
            for entry in rules.entries_of(each._replace(row=row), account.type, bank.calendars)
        ]
        is_last = len(listed) < ROWS_PER_PAGE
        if account.type == types.AccountType.BROKERAGE:
            through = span.through if is_last else opened[-1].entry_no
            in_kind = await store.list_transfers_in_kind(bank.pool, span._replace(after=last, through=through))
            page += [rules.transfer_entry(each, bank.market) for each in in_kind]
            page.sort(key=lambda entry: entry.entry_no or 0)
            last = through
        if page:
            yield page
        if is_last:
            return
        place = opened[-1].entry_no, opened[-1].posting_no


async def _balance(bank: Bank, span: Span, at: datetime, *, day: date, real_time: bool | None = None) -> types.Balance:
    """Return the holdings after `span` at the closing prices of a day, or at the last price given `real_time`."""
    snapshot = await store.snapshot_before(bank.pool, span, bank.calendars.business_date(at))
    later = await store.movements(bank.pool, span._replace(after=snapshot.entry_no))
    cash, units = rules.move(snapshot.cash, snapshot.positions, later)
    held = {cusip: count for cusip, count in units.items() if count}
    if real_time is None:
        prices = await _closing_prices(bank, held, day)
    else:
        ticks = bank.market.tick_prices(at - datetime.resolution, real_time=real_time)
        prices = {cusip: ticks[cusip].mark_micros for cusip in held}
    return rules.balance_of(cash, held, prices, bank.market)


async def _closing_prices(bank: Bank, cusips: Iterable[str], day: date) -> dict[str, int]:
    """Return closing prices of a day in micros as recorded, else from the market."""
    priced_on = bank.calendars.pricing_day(bank.calendars.closes_at(day))
    recorded = await store.closing_prices(bank.pool, priced_on, list(cusips))
    return {
        cusip: PRICE_PAR_MICROS
        if bank.market.bill(cusip).maturity <= day
        else recorded.get(cusip) or bank.market.closing_mark(cusip, day)
        for cusip in cusips
    }


log = structlog.get_logger(__name__)
Result = TypeVar("Result")


async def read_current(bank: Bank, work: Callable[[Bank], Awaitable[Result]]) -> Result:
    """Return the result of `work`, which reads everything committed so far. If it fails, it is repeated on the primary.

    It must not submit commands, because the replica might not show their effects.
    """
    if bank.replica is not None and await bank.replica.catch_up():
        on_replica = copy(bank)
        on_replica.pool = bank.replica.pool
        on_replica.ports = bank.ports.copy()
        on_replica.ports[DataKeys] = bank.ports[DataKeys].read_by(bank.pool)
        try:
            return await work(on_replica)
        except Exception as error:  # noqa: BLE001 - the primary shows whether the replica caused it
            log.warning("replica_read_failed", error=error_summary(error))
    return await work(bank)
