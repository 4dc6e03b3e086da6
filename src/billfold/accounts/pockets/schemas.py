"""A Pocket as returned by both APIs."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.notes.types import ShownNote
from billfold.accounts.pockets.commands import PocketRow
from billfold.bills.rules import earnings as bill_earnings
from billfold.bills.rules import fees as bill_fees
from billfold.bills.rules import valuation as bill_valuation
from billfold.bills.rules.earnings import EarningsEntry
from billfold.bills.rules.valuation import Valuation
from billfold.bills.types import tradable_id
from billfold.http.schemas import Amount, format_appreciation, format_price, one_of, usd
from billfold.ledger.bank import Bank
from billfold.ledger.types import PocketStatus
from billfold.platform.dates import et_date

# A client could not decode a union of dates and date-times, so both are texts.
EarningsBound = Annotated[str, msgspec.Meta(description="A date, or a date-time.")]
"""A day, included; an instant if the range was given by date-times."""


class Earnings(msgspec.Struct, kw_only=True):
    """One entry. `earnings` is before fees: realised plus the change of unrealised gains."""

    pocket_id: UUID | UnsetType = UNSET
    earnings: Amount
    earnings_net: Amount
    fees: Amount
    realised: Amount
    unrealised_change: Amount
    contributions: Amount
    withdrawals: Amount
    start_value: Amount
    end_value: Amount
    date_from: EarningsBound | None
    date_to: EarningsBound
    pricing_timestamp: datetime | None = None
    appreciation_per_second: str | None = None
    object_type: str = "PocketEarnings"


class EarningsList(msgspec.Struct, kw_only=True):
    """One entry per Pocket and their sum, field by field."""

    items: list[Earnings]
    aggregate: Earnings
    object_type: Literal["EarningsList"] = "EarningsList"


class PocketEarnings(msgspec.Struct, frozen=True, kw_only=True):
    """An entry before rendering. The slope is present for pockets with real-time yield."""

    pocket_id: UUID
    entry: EarningsEntry
    dates: tuple[date, date]
    priced_at: datetime | None
    slope: Decimal | None


def render_earned(earned: PocketEarnings, *, with_pocket_id: bool) -> Earnings:
    """Return one entry for display, with its pocket's id in a list."""
    slope = earned.slope
    return Earnings(
        pocket_id=earned.pocket_id if with_pocket_id else UNSET,
        **_amounts(earned.entry),  # type: ignore[arg-type]
        date_from=_bound(earned.dates[0]),
        date_to=_bound(earned.dates[1]),
        pricing_timestamp=earned.priced_at,
        appreciation_per_second=None if slope is None else format_appreciation(slope),
    )


def render_all(all_earned: list[PocketEarnings], today: date) -> EarningsList:
    """Return every entry for display, and the exact sum."""
    appreciations = [each.slope for each in all_earned if each.slope is not None]
    priced_at_times = [each.priced_at for each in all_earned if each.priced_at is not None]
    return EarningsList(
        items=[render_earned(each, with_pocket_id=True) for each in all_earned],
        aggregate=Earnings(
            **_amounts(  # type: ignore[arg-type]
                bill_earnings.sum_earnings(each.entry for each in all_earned)
            ),
            date_from=_bound(min(each.dates[0] for each in all_earned)) if all_earned else None,
            date_to=_bound(max((each.dates[1] for each in all_earned), default=today)),
            pricing_timestamp=max(priced_at_times, default=None),
            appreciation_per_second=format_appreciation(sum(appreciations, Decimal(0))) if appreciations else None,
            object_type="AggregateEarnings",
        ),
    )


def _bound(day_or_instant: date) -> str:
    text: str = msgspec.to_builtins(day_or_instant)
    return text


def _amounts(entry: EarningsEntry) -> dict[str, Amount]:
    return {name: usd(cents) for name, cents in entry._asdict().items()}


ALL_TIME_EARNINGS_UNTIL = date(2026, 8, 1)
"""`all_time_earnings` is in the portfolio up to and including this business date."""

Omit = frozenset[str]


class Security(msgspec.Struct, kw_only=True):
    """One bill of a portfolio; `quantity` counts units of $100 face."""

    type: Literal["FIXED_INCOME"] = "FIXED_INCOME"
    quantity: int
    market_value: Amount
    cusip: str
    mark_price: str
    description: str
    maturity_date: date
    yield_to_maturity: str
    object_type: Literal["FixedIncomeSecurity"] = "FixedIncomeSecurity"


class Fee(msgspec.Struct, kw_only=True):
    """A fee accrued and not yet deducted, in whole cents."""

    type: Literal["AUM_FEE"] = "AUM_FEE"
    amount: Amount


class Portfolio(msgspec.Struct, kw_only=True):
    """The holdings of a Pocket at the last tick."""

    securities: list[Security]
    cash: Amount
    all_time_earnings: Amount | UnsetType = UNSET
    total_value: Amount
    fees: list[Fee]
    owed: Annotated[
        Amount, msgspec.Meta(description="The Pocket's overdraft, which the bank recovers from incoming money.")
    ]
    held: Annotated[Amount, msgspec.Meta(description="What holds keep of it: only payments that name them can use it.")]
    liquidation_value_t0: Amount
    liquidation_value_t1: Amount
    pricing_timestamp: datetime | None = None
    appreciation_per_second: str | None = None
    object_type: Literal["Portfolio"] = "Portfolio"


class Pocket(ShownNote, kw_only=True):
    """A bank account and a brokerage account in one."""

    id: UUID
    pocket_name: str
    portfolio: Portfolio | None
    status: Annotated[str, one_of(*PocketStatus)]
    attributes: list[str]
    deposit_strategy_id: str
    reinvestment_strategy_id: str | None
    type: Annotated[str, one_of("STANDARD", "NETWORK", "FACILITATION")]
    customer_id: UUID | UnsetType = UNSET
    object_type: Literal["Pocket"] = "Pocket"


class AccountSecurity(msgspec.Struct, kw_only=True):
    """One bill of an account, v1."""

    description: str
    tradable_id: UUID
    security_type: Literal["FIXED_INCOME"] = "FIXED_INCOME"
    quantity: int
    market_value: Amount
    external_id: str
    maturity_date: date
    yield_to_maturity: str
    ask: str
    bid: str


class AccountPortfolio(msgspec.Struct, kw_only=True):
    """The holdings of an account, v1."""

    securities: list[AccountSecurity]
    cash: Amount
    all_time_earnings: Amount | UnsetType = UNSET


class Account(msgspec.Struct, kw_only=True):
    """A Pocket in its v1 form."""

    id: UUID
    name: str
    total_value: Amount
    status: Annotated[str, one_of(*PocketStatus)]
    portfolio: AccountPortfolio
    object_type: Literal["Account"] = "Account"


def render_pocket(
    row: PocketRow,
    bank: Bank,
    now: datetime,
    *,
    omit: Omit = frozenset(),
    with_customer_id: bool = True,
    real_time: bool = False,
) -> Pocket:
    """Return a Pocket for display; without `with_customer_id` the customer is omitted, as after an update.

    `real_time` values it at this second, not at the last tick.
    """
    attributes = ["real_time_yield"] if row.real_time_yield else []
    if row.status == "OPEN":
        attributes.append("network_enabled")
    weeks = row.reinvestment_weeks
    hides_portfolio = row.status == "PENDING" or "PORTFOLIO" in omit
    return Pocket(
        id=row.pocket_id,
        pocket_name=row.name,
        portfolio=None if hides_portfolio else portfolio_of(row, bank, now, omit=omit, real_time=real_time),
        status=row.status,
        attributes=attributes,
        deposit_strategy_id=f"UST-{row.deposit_weeks}W",
        reinvestment_strategy_id=None if weeks is None else f"UST-{weeks}W",
        type=row.type,
        customer_id=row.customer_id if with_customer_id else UNSET,
    )


def render_account(row: PocketRow, bank: Bank, now: datetime) -> Account:
    """Return the same Pocket as an account of v1."""
    current_value = valuation(row, bank, now)
    securities = [
        AccountSecurity(
            description=held.bill.description,
            tradable_id=tradable_id(held.cusip),
            quantity=held.units,
            market_value=usd(held.market_value),
            external_id=held.cusip,
            maturity_date=held.bill.maturity,
            yield_to_maturity=held.yield_to_maturity,
            ask=format_price(bank.market.ask(held.bill, now)),
            bid=format_price(held.mark_price),
        )
        for held in current_value.positions
    ]
    return Account(
        id=row.pocket_id,
        name=row.name,
        total_value=usd(current_value.total_value),
        status=row.status,
        portfolio=AccountPortfolio(
            securities=securities,
            cash=usd(row.cash),
            all_time_earnings=_all_time_earnings(row, current_value, bank, now=now, omit=frozenset()),
        ),
    )


def valuation(
    row: PocketRow, bank: Bank, now: datetime, *, fees: int | None = None, real_time: bool = False
) -> Valuation:
    """Return the Pocket's value at the last tick before `now`, or at `now`; `fees` are `accrued_cents` if known."""
    if fees is None:
        fees = accrued_cents(row, bank, now)
    return bill_valuation.value_positions(
        positions_of(row, bank, now),
        row.cash,
        fees + row.reserved,
        market=bank.market,
        at=now,
        discount_cents=row.discount_on(bank.calendars.pricing_day(now)),
        haircut_bps=bank.terms.haircut_bps,
        stale_bps=bank.stale_bps(now),
        real_time=real_time,
    )


def positions_of(row: PocketRow, bank: Bank, now: datetime) -> list[tuple[str, int, int]]:
    """Return the Pocket's (cusip, units, settled units), shortest maturity first.

    A matured bill has no settled units: it can no longer be sold and waits for its redemption.
    """
    today = bank.calendars.business_date(now)
    held: dict[str, list[int]] = {}
    for cusip, units, acquired_on in zip(row.lot_cusips, row.lot_units, row.lot_dates, strict=True):
        units_and_settled = held.setdefault(cusip, [0, 0])
        units_and_settled[0] += units
        # A bill settles on the day after its purchase; until then only the bank can sell it.
        is_settled = acquired_on < today and bank.calendars.next_settlement_day(acquired_on) <= today
        if is_settled and now < bank.market.matures_at(bank.market.bill(cusip)):
            units_and_settled[1] += units
    return sorted(
        ((cusip, units, settled) for cusip, (units, settled) in held.items()),
        key=lambda position: (bank.market.bill(position[0]).maturity, position[0]),
    )


def accrued_cents(row: PocketRow, bank: Bank, now: datetime) -> int:
    """Return the whole cents of fee accrued up to yesterday and not yet charged."""
    yesterday = et_date(now) - timedelta(days=1)
    accrued = row.fee_accrued
    if row.accrued_through < yesterday and (row.cash or row.lot_units):
        accrued += bill_fees.accrue_days(
            row.positions().items(),
            row.cash,
            after=row.accrued_through,
            through=yesterday,
            market=bank.market,
            bps=bank.terms.aum_fee_bps,
        )
    return bill_fees.split_accrued_fee(accrued)[0]


def portfolio_of(row: PocketRow, bank: Bank, now: datetime, *, omit: Omit, real_time: bool) -> Portfolio:
    """Return the Pocket's holdings for display."""
    fees = accrued_cents(row, bank, now)
    current_value = valuation(row, bank, now, fees=fees, real_time=real_time)
    is_real_time = row.real_time_yield
    return Portfolio(
        securities=[
            Security(
                quantity=held.units,
                market_value=usd(held.market_value),
                cusip=held.cusip,
                mark_price=format_price(held.mark_price),
                description=held.bill.description,
                maturity_date=held.bill.maturity,
                yield_to_maturity=held.yield_to_maturity,
            )
            for held in current_value.positions
        ],
        cash=usd(row.cash),
        all_time_earnings=_all_time_earnings(row, current_value, bank, now=now, omit=omit),
        total_value=usd(current_value.total_value),
        fees=[Fee(amount=usd(fees))] if fees else [],
        owed=usd(row.owed),
        held=usd(row.held_cents(now, bank.calendars)),
        liquidation_value_t0=usd(current_value.liquidation_value_t0),
        liquidation_value_t1=usd(current_value.liquidation_value_t1),
        pricing_timestamp=current_value.pricing_timestamp if is_real_time else None,
        appreciation_per_second=format_appreciation(current_value.appreciation_per_second) if is_real_time else None,
    )


def _all_time_earnings(
    row: PocketRow, current_value: Valuation, bank: Bank, now: datetime, omit: Omit
) -> Amount | UnsetType:
    if "ALL_TIME_EARNINGS" in omit:
        return UNSET
    if bank.calendars.business_date(now) > ALL_TIME_EARNINGS_UNTIL:
        return UNSET
    return usd(current_value.total_value - row.inflow + row.outflow + row.fees)
