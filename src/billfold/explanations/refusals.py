"""Explains why a payment was refused: what was needed and what the Pocket could pay, by the rule that decided."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import NamedTuple
from uuid import UUID

from billfold.accounts.explain.prices import tick_row
from billfold.accounts.explain.schemas import TO_CENT, Explanation, Formula, Input, Unit, explain, given
from billfold.accounts.explain.store import HeldAmount, hold_row, list_holds
from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.pockets.store import get_pocket
from billfold.bills.rules import fees
from billfold.ledger.bank import Bank
from billfold.ledger.book.draft import Account, Lot, PocketBook, selling_order
from billfold.ledger.context import Context, SaleTerms
from billfold.ledger.types import AccountKind, PocketStatus
from billfold.payments.on_us.rules import reallocation_terms
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused
from billfold.platform.money import cents_for
from billfold.treasury.rules.day_end import ONE_DAY, accrue
from billfold.treasury.rules.unsettled import free_cash
from billfold.treasury.rules.withdraw import payable_cents

_STOPPED = "The bank's checks stopped it. The bank gives no further reason."
REASONS = {
    "AMOUNT_NOT_ALLOWED": "An approval rule did not allow the amount, or its amount for the day was used up.",
    "ACCOUNT_UNAVAILABLE": "An account was closed, frozen or no longer linked, or an agreement was not accepted.",
    "CANCELED": "It was cancelled before it was sent.",
    "CLOSED_DAY": "Its day was a closed day, on which the schedule leaves it out.",
    "COUNTERPARTY_CHANGED": "The payee was changed after it was approved.",
    "INSUFFICIENT_FUNDS": "The Pocket could not raise the amount and its fees, less fees accrued and holds.",
    "INVALID_TRANSFER": "It could no longer be carried out as it was requested.",
    "MISSED": "Its day had passed when it could have been made.",
    "NOTHING_TO_MOVE": "Its amount was to be decided when it was due, and was zero.",
    "PAUSED": "Its series was paused on that day.",
    "POLICY_REFUSED": "The policy of the company in force at that time refused it, or required more approvals.",
    "REQUESTER_NOT_ALLOWED": "Who requested it could no longer do so, or nobody could approve it.",
    "SANCTION_SCREEN_FAILED": _STOPPED,
    "SUSPECTED_FRAUD": _STOPPED,
}
"""What reasons of a rejection mean; what checks found is not told."""
INSUFFICIENT_FUNDS = "INSUFFICIENT_FUNDS"
_BEFORE = timedelta(microseconds=1)


class _Moment(NamedTuple):
    """A Pocket at an instant, as the rules of a payment saw it, and the terms of its sales."""

    row: PocketRow
    pocket: PocketBook
    ctx: Context
    terms: SaleTerms

    @property
    def payable(self) -> int:
        return payable_cents(self.pocket, self.ctx, self.terms)


async def explain_shortfall(
    bank: Bank, key: tuple[UUID, UUID], at: datetime, *, amount: int, fee: int = 0, to: UUID | None = None
) -> Explanation | None:
    """Explain by how much a Pocket could not pay an amount and a fee at an instant; None if its state is not known.

    `key` is the customer and the Pocket; `to` another Pocket of the customer that was to be paid.
    """
    ctx = bank.engine.context(at)
    async with bank.pool.acquire() as conn:
        # Commits of the same instant, after the refusal, are in the first of the two states.
        for known_at in (at, at - _BEFORE):
            try:
                moment = await _moment_of(conn, key, known_at, ctx=ctx, to=to)
            except (NotFound, Refused):
                return None
            if moment.payable < amount + fee:
                return _explain_missing(moment, amount, fee, await list_holds(conn, *key))
    return None


async def _moment_of(
    conn: Connection, key: tuple[UUID, UUID], known_at: datetime, *, ctx: Context, to: UUID | None
) -> _Moment:
    row = await get_pocket(conn, *key, as_of=known_at)
    paid = None if to is None else await get_pocket(conn, key[0], to, as_of=known_at)
    terms = ctx.same_day if paid is None else reallocation_terms(ctx, _book_of(paid, ctx))
    return _Moment(row, _book_of(row, ctx), ctx, terms)


def _explain_missing(moment: _Moment, amount: int, fee: int, holds: Sequence[HeldAmount]) -> Explanation:
    return explain(
        "Missing",
        "What was needed, less what the Pocket could pay at that moment.",
        Formula("S", "N + E - A", Unit.CENTS, "Missing"),
        comes_to=amount + fee - moment.payable,
        inputs=[given("N", "Amount", amount, Unit.CENTS), given("E", "Fee of the payment", fee, Unit.CENTS)],
        parts=[_explain_payable(moment, holds)],
    )


def _explain_payable(moment: _Moment, holds: Sequence[HeldAmount]) -> Explanation:
    row, pocket, ctx, terms = moment
    cash, accrued = free_cash(pocket, terms), fees.split_accrued_fee(pocket.fee_accrued)[0]
    return explain(
        "Available then",
        f"Cash, and what the bills fetched for settlement on {terms.cash_on}, less fees not yet charged and holds.",
        Formula("A", "max(0, C + sum(W) - F - sum(H))", Unit.CENTS, "Available then"),
        comes_to=moment.payable,
        inputs=[
            given("C", "Cash, less what cards reserve and the cost of using it early", cash, Unit.CENTS),
            given("F", "Fee accrued and not yet charged", accrued, Unit.CENTS),
            *_holds(row, ctx, holds),
        ],
        parts=[_explain_proceeds(cusip, units, ctx, terms) for cusip, units in pocket.positions()],
    )


def _holds(row: PocketRow, ctx: Context, holds: Sequence[HeldAmount]) -> list[Input]:
    return [
        given(
            "H",
            f"Held until {et_date(until)}",
            cents,
            Unit.CENTS,
            rows=[hold_row(each) for each in holds if each.until == until],
        )
        for until, cents in sorted(zip(row.hold_ends, row.hold_amounts, strict=True))
        if ctx.calendars.settles_at(until) > ctx.now
    ]


def _explain_proceeds(cusip: str, units: int, ctx: Context, terms: SaleTerms) -> Explanation:
    label, price = f"Proceeds of {cusip}", terms.price_of(cusip)
    struck = tick_row(
        ctx.bill(cusip), price, ctx.calendars.last_tick(ctx.now), label="Bid, less the spread of the bank"
    )
    return explain(
        label,
        "Bills times the bid, which is per $100 of face value: one bill is $100.",
        Formula("W", "round(100 * u * B)", Unit.CENTS, label, TO_CENT),
        comes_to=cents_for(units, price),
        inputs=[
            given("u", "Bills held", units, Unit.UNITS),
            given("B", "Bid", Fraction(price, 10**6), Unit.USD_PER_100, rows=[struck]),
        ],
    )


def _book_of(row: PocketRow, ctx: Context) -> PocketBook:
    """Return a Pocket as its rules see it, from its state at an instant, with its fee accrued up to the day before."""
    held = zip(row.lot_cusips, row.lot_units, row.lot_dates, strict=True)
    lots = [
        Lot(0, AccountKind.LOT, cusip, balance=units, acquired_on=day, maturity=ctx.bill(cusip).maturity)
        for cusip, units, day in held
    ]
    pocket = PocketBook(
        pocket_id=row.pocket_id,
        partner_id=row.partner_id,
        name=row.name,
        type=row.type,
        status=PocketStatus(row.status),
        deposit_weeks=row.deposit_weeks,
        reinvestment_weeks=row.reinvestment_weeks,
        opened_at=row.opened_at,
        fee_accrued=row.fee_accrued,
        accrued_through=row.accrued_through,
        next_fee_date=date.max,
        # A cost to use it early is all that tells whether cash is unsettled.
        unsettled=row.unsettled_discount,
        unsettled_discount=row.unsettled_discount,
        unsettled_on=row.unsettled_on,
        cash=Account(0, AccountKind.CASH, "USD", balance=row.cash, reserved=row.reserved),
        owed=Account(0, AccountKind.OWED, "USD", balance=-row.owed) if row.owed else None,
        lots=sorted(lots, key=selling_order),
        liens=list(zip(row.hold_amounts, row.hold_ends, strict=True)),
    )
    accrue(pocket, ctx, through=ctx.today - ONE_DAY)
    return pocket
