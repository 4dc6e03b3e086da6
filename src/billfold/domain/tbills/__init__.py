"""Bills: what the Treasury sells, what it is worth at any instant, what a pocket earns on it.

Owns the arithmetic of bills, the market built from published rates and auctions, the choice of
lots to sell, valuation, earnings and the fee on assets. Everything is pure: prices, days and
states go in, integers come out.
Never moves money, never writes a row, never reads a clock.
"""

from billfold.domain.tbills.calendar_rule import TERMS
from billfold.domain.tbills.cusips import tradable_id
from billfold.domain.tbills.earnings import (
    Entry,
    PeriodName,
    PocketState,
    aggregate,
    entry,
    period_bounds,
)
from billfold.domain.tbills.fees import (
    ACCRUED_PER_CENT,
    accrual,
    accrue,
    charge,
    month_charge_date,
)
from billfold.domain.tbills.files import parse_auctions, parse_daily_rates
from billfold.domain.tbills.lots import (
    Lot,
    Sale,
    part_of_basis,
    plan_sale,
    units_for,
    units_to_raise,
)
from billfold.domain.tbills.market import Market
from billfold.domain.tbills.pricing import investment_rate, less_spread, price_from_rate
from billfold.domain.tbills.strategies import (
    STRATEGIES,
    Strategy,
    StrategyUse,
    get_strategy,
    list_strategies,
    strategy_of,
)
from billfold.domain.tbills.types import Auction, Bill, DailyRates, Period, Quote, Struck
from billfold.domain.tbills.valuation import FACE_CENTS, PositionValue, Valuation, value

__all__ = [
    "ACCRUED_PER_CENT",
    "FACE_CENTS",
    "STRATEGIES",
    "TERMS",
    "Auction",
    "Bill",
    "DailyRates",
    "Entry",
    "Lot",
    "Market",
    "Period",
    "PeriodName",
    "PocketState",
    "PositionValue",
    "Quote",
    "Sale",
    "Strategy",
    "StrategyUse",
    "Struck",
    "Valuation",
    "accrual",
    "accrue",
    "aggregate",
    "charge",
    "entry",
    "get_strategy",
    "investment_rate",
    "less_spread",
    "list_strategies",
    "month_charge_date",
    "parse_auctions",
    "parse_daily_rates",
    "part_of_basis",
    "period_bounds",
    "plan_sale",
    "price_from_rate",
    "strategy_of",
    "tradable_id",
    "units_for",
    "units_to_raise",
    "value",
]
