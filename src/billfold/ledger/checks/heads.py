"""The head of a customer against his log, his pockets and his own row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from billfold.accounts.pockets.checks import PocketRows
from billfold.ledger.book.holdings import Account, Lot, PocketBook
from billfold.ledger.types import AccountKind
from billfold.platform.errors import NotFound
from billfold.verify.decision_dates import Decided
from billfold.verify.report import MISSING, SUSPECT, Findings
from billfold.verify.streams import CUSTOMERS, HEADS, POCKETS

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.bills.rules.market import Market

CHECK = "heads"
_HOUSE = "house"
_CLOSES_A_DAY = frozenset({"settlement", "clearing"})


class LogEnd(NamedTuple):
    """Where a customer's log ends: his last journal and the number of his last event."""

    journal: Record | None
    event_no: int


def check_head(
    found: Findings,
    head: Record,
    customers: Sequence[Record],
    pockets: PocketRows,
    end: LogEnd,
    market: Market,
) -> None:
    """Compare what the head says with the last journal and with what is due."""
    key, decided = HEADS.key_of(head), pockets.decided
    if len(customers) != 1:
        wrong = "the customer is missing" if not customers else "the customer is there twice"
        found.add(CHECK, "customer", key, wrong, MISSING)
        return
    customer = customers[0]
    for wrong in _customer(customer, pockets):
        found.add("customers", "customer", CUSTOMERS.key_of(customer), wrong, SUSPECT)
    is_house = customer["role"] == _HOUSE
    for wrong in _numbers(head, end):
        found.add(CHECK, "head", key, wrong)
    misdated = _dates(head, customer["opened_at"], end.journal, decided, is_house=is_house)
    if misdated:
        found.add(CHECK, "head", key, misdated)
    books = [] if is_house else list(_books(pockets, market))
    if is_house and head["due_at"] not in decided.closes(head["business_date"]):
        found.add(CHECK, "head", key, "its day does not end then", SUSPECT)
    elif not is_house and not decided.is_first_due(head["due_at"], books):
        due = decided.first_due(books)
        found.add(CHECK, "head", key, f"what is due first is due at {due}", SUSPECT)


def _numbers(head: Record, end: LogEnd) -> Iterator[str]:
    last = 0 if end.journal is None else end.journal["journal_no"]
    if head["journal_no"] != last:
        yield f"the last journal is {last}"
    if head["event_no"] != end.event_no:
        yield f"the last event is {end.event_no}"


def _dates(
    head: Record, opened_at: datetime, last: Record | None, decided: Decided, *, is_house: bool
) -> str | None:
    """The head's time is the last journal's, or that of a due thing that came to nothing."""
    booked_at, business_date = head["booked_at"], head["business_date"]
    since = opened_at if last is None else last["booked_at"]
    if booked_at < since or (booked_at != since and not decided.is_opening(booked_at)):
        return f"it was last booked at {since}"
    if is_house:
        first = min(decided.business_dates(opened_at)) if last is None else last["business_date"]
        # Its day goes on when it is closed; what the house books by day leaves it open.
        later = last is None or last["kind"] not in _CLOSES_A_DAY or business_date > first
        if business_date < first or not later or not decided.is_settlement_day(business_date):
            return f"its day cannot be {business_date} after {first}"
    elif business_date not in (
        {last["business_date"]}
        if last is not None and booked_at == since
        else decided.business_dates(booked_at)
    ):
        return f"its business date is not that of {booked_at}"
    return None


def _customer(row: Record, pockets: PocketRows) -> Iterator[str]:
    status = row["account_status"]
    if (status == "CLOSED") != (row["closed_at"] is not None):
        yield "it is closed without an end, or ended without being closed"
    if (status == "CLOSED") != (row["closure_reason"] is not None):
        yield "it is closed without a reason, or has a reason without being closed"
    if (row["partner_id"] is None) != (row["role"] == _HOUSE):
        yield "every customer but the house has a partner"
    yield from _against_pockets(row, pockets)


def _against_pockets(row: Record, pockets: PocketRows) -> Iterator[str]:
    status = row["account_status"]
    if status not in {"PENDING", "OPEN", "CLOSED"}:
        yield f"no customer is {status}"
    if status == "PENDING" and pockets.by_id:
        yield "it has pockets and is not open"
    if status == "OPEN" and not pockets.by_id and row["role"] != _HOUSE:
        yield "it is open without a pocket"
    if status == "CLOSED" and any(p["status"] != "CLOSED" for p in pockets.by_id.values()):
        yield "it is closed and has open pockets"
    if any(p["partner_id"] != row["partner_id"] for p in pockets.by_id.values()):
        yield "its pockets are served by another partner"


def _books(pockets: PocketRows, market: Market) -> Iterator[PocketBook]:
    """The pockets as the engine would load them, as far as their due instants need it."""
    accounts = pockets.accounts
    for row in pockets.by_id.values():
        pocket = PocketBook(**{name: row[name] for name in POCKETS.columns[1:]})
        cash = accounts.cash.get(pocket.pocket_id)
        if cash is None:
            continue
        pocket.cash = Account(cash.no, AccountKind.CASH, cash.asset, balance=cash.balance)
        for held in accounts.held.get(pocket.pocket_id, {}).values():
            lot = _lot(held.no, held.asset, held.balance, market)
            if lot is not None:
                pocket.adopt(lot)
        yield pocket


def _lot(no: int, cusip: str, units: int, market: Market) -> Lot | None:
    try:
        maturity = market.bill(cusip).maturity
    except NotFound:
        return None
    # The day it was bought decides nothing here; each number makes a lot of its own.
    lot = Lot(no, AccountKind.LOT, cusip, acquired_on=maturity, maturity=maturity)
    lot.balance = units
    return lot
