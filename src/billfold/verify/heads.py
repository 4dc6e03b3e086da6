"""The head of a customer, compared with its log, its Pockets and its own row."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from asyncpg import Record

from billfold.bills.rules.market import Market
from billfold.ledger.book.draft import Account, Lot, PocketBook
from billfold.ledger.types import AccountKind
from billfold.platform.database.checks import Certainty, Findings
from billfold.platform.errors import NotFound
from billfold.verify.pockets import CalendarVariants, PocketReplay
from billfold.verify.streams import CUSTOMERS, LEDGER_HEADS, POCKETS

_HOUSE_ROLE = "house"
_DAY_END_KINDS = frozenset({"settlement", "clearing"})


class LogEnd(NamedTuple):
    """The end of a customer's log: its last journal entry and the number of its last event."""

    journal: Record | None
    event_no: int


def check_head(
    findings: Findings, head: Record, customers: Sequence[Record], pockets: PocketReplay, end: LogEnd, market: Market
) -> None:
    """Compare the head with the last journal entry and with due work."""
    key, calendar_variants = LEDGER_HEADS.key_of(head), pockets.calendar_variants
    if not customers:
        findings.add("customer", key, "the row is missing", certainty=Certainty.MISSING)
        return
    customer = customers[0]
    for message in _customer(customer, pockets):
        findings.add("customer", CUSTOMERS.key_of(customer), message, certainty=Certainty.SUSPECT)
    is_house = customer["role"] == _HOUSE_ROLE
    for message in _numbers(head, end):
        findings.add("ledger_head", key, message)
    date_problem = _dates(
        head, customer["opened_at"], end.journal, calendar_variants=calendar_variants, is_house=is_house
    )
    if date_problem:
        findings.add("ledger_head", key, date_problem)
    pocket_books = [] if is_house else list(_books(pockets, market))
    if is_house and head["due_at"] not in calendar_variants.closes(head["business_date"]):
        findings.add("ledger_head", key, "due_at is not the end of its day", certainty=Certainty.SUSPECT)
    elif not is_house and not calendar_variants.is_first_due(head["due_at"], pocket_books):
        due = calendar_variants.first_due(pocket_books)
        findings.add("ledger_head", key, f"the first due work is due at {due}", certainty=Certainty.SUSPECT)


def _numbers(head: Record, end: LogEnd) -> Iterator[str]:
    last = 0 if end.journal is None else end.journal["entry_no"]
    if head["entry_no"] != last:
        yield f"the last journal is {last}"
    if head["event_no"] != end.event_no:
        yield f"the last event is {end.event_no}"


def _dates(
    head: Record, opened_at: datetime, last: Record | None, calendar_variants: CalendarVariants, *, is_house: bool
) -> str | None:
    """Check that the head's time is the last journal entry's, or that of due work without effect."""
    booked_at, business_date = head["booked_at"], head["business_date"]
    last_booked_at = opened_at if last is None else last["booked_at"]
    if booked_at < last_booked_at or (booked_at != last_booked_at and not calendar_variants.is_opening(booked_at)):
        return f"it was last booked at {last_booked_at}"
    if is_house:
        first = min(calendar_variants.business_dates(opened_at)) if last is None else last["business_date"]
        # Its day advances when it is closed; journal entries that the bank books during a day leave it open.
        is_later = last is None or last["kind"] not in _DAY_END_KINDS or business_date > first
        if business_date < first or not is_later or not calendar_variants.is_settlement_day(business_date):
            return f"its day cannot be {business_date} after {first}"
    elif business_date not in (
        {last["business_date"]}
        if last is not None and booked_at == last_booked_at
        else calendar_variants.business_dates(booked_at)
    ):
        return f"its business date is not that of {booked_at}"
    return None


def _customer(row: Record, pockets: PocketReplay) -> Iterator[str]:
    status = row["account_status"]
    if (status == "CLOSED") != (row["closed_at"] is not None):
        yield "account_status and closed_at contradict each other"
    if (status == "CLOSED") != (row["closure_reason"] is not None):
        yield "account_status and closure_reason contradict each other"
    if (row["partner_id"] is None) != (row["role"] == _HOUSE_ROLE):
        yield "partner_id contradicts its role"
    yield from _check_pockets(row, pockets)


def _check_pockets(row: Record, pockets: PocketReplay) -> Iterator[str]:
    status = row["account_status"]
    if status == "PENDING" and pockets.by_id:
        yield "it is pending, but has Pockets"
    if status == "OPEN" and not pockets.by_id and row["role"] != _HOUSE_ROLE:
        yield "it is open, but has no Pocket"
    if status == "CLOSED" and any(p["status"] != "CLOSED" for p in pockets.by_id.values()):
        yield "it is closed, but has open Pockets"
    if any(p["partner_id"] != row["partner_id"] for p in pockets.by_id.values()):
        yield "its partner differs from its Pockets'"


def _books(pockets: PocketReplay, market: Market) -> Iterator[PocketBook]:
    """Return the pockets as the engine would load them, as far as their due instants need it."""
    accounts = pockets.accounts
    for row in pockets.by_id.values():
        pocket = PocketBook(**{name: row[name] for name in POCKETS.columns[1:]})
        cash = accounts.cash.get(pocket.pocket_id)
        if cash is None:
            continue
        pocket.cash = Account(cash.no, AccountKind.CASH, cash.asset, balance=cash.balance)
        for held in accounts.held.get(pocket.pocket_id, {}).values():
            lot = _lot(held.no, held.asset, held.balance, market=market)
            if lot is not None:
                pocket.adopt(lot)
        yield pocket


def _lot(no: int, cusip: str, units: int, market: Market) -> Lot | None:
    try:
        maturity = market.bill(cusip).maturity
    except NotFound:
        return None
    # The day it was bought does not matter here; each number makes a separate lot.
    lot = Lot(no, AccountKind.LOT, cusip, acquired_on=maturity, maturity=maturity)
    lot.balance = units
    return lot
