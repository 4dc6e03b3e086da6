"""A figure summed over the Pockets of a customer: one input per Pocket, which has its own explanation."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import UNSET

from billfold.accounts.explain.portfolio import PortfolioField
from billfold.accounts.explain.schemas import Explanation, Formula, Row, RowKind, Unit, explain, given
from billfold.accounts.pockets.schemas import Portfolio, portfolio_of
from billfold.accounts.pockets.types import PocketRow
from billfold.ledger.bank import Bank

_LABELS = {
    PortfolioField.LIQUIDATION_VALUE_T0: "Available today",
    PortfolioField.LIQUIDATION_VALUE_T1: "Available tomorrow",
}
"""What a figure of a Pocket is called where that is not its name."""


def explain_total(bank: Bank, rows: Sequence[PocketRow], field: PortfolioField, now: datetime) -> Explanation:
    """Explain the sum of a figure over these Pockets, each as it is shown; one that is not shown counts nothing."""
    is_slope = field == PortfolioField.APPRECIATION_PER_SECOND
    unit = Unit.CENTS_PER_SECOND if is_slope else Unit.CENTS
    inputs = []
    for row in rows:
        shown = portfolio_of(row, bank, now, omit=frozenset(), real_time=False)
        pocket = Row(kind=RowKind.POCKET, label=row.name, id=str(row.pocket_id))
        inputs.append(given("v", row.name, _figure(row, shown, field), unit, rows=[pocket]))
    label = f"{_LABELS.get(field) or field.replace('_', ' ').capitalize()} of all Pockets"
    return explain(
        label,
        "The sum over all Pockets that are not closed. Each has an explanation of its own.",
        Formula("S", "sum(v)", unit, label),
        comes_to=str(sum(Decimal(each.value) for each in inputs)),
        inputs=inputs,
    )


def _figure(row: PocketRow, shown: Portfolio, field: PortfolioField) -> int | str:
    bills = sum(each.market_value.value for each in shown.securities)
    figures: dict[PortfolioField, int | str] = {
        PortfolioField.TOTAL_VALUE: shown.total_value.value,
        PortfolioField.BILLS_VALUE: bills,
        PortfolioField.CASH: shown.cash.value,
        PortfolioField.LIQUIDATION_VALUE_T0: shown.liquidation_value_t0.value,
        PortfolioField.LIQUIDATION_VALUE_T1: shown.liquidation_value_t1.value,
        PortfolioField.APPRECIATION_PER_SECOND: shown.appreciation_per_second or "0",
        PortfolioField.FEES: sum(each.amount.value for each in shown.fees),
        PortfolioField.OWED: shown.owed.value,
        PortfolioField.UNREALISED: bills - row.earnings_basis,
        PortfolioField.ALL_TIME_EARNINGS: 0 if shown.all_time_earnings is UNSET else shown.all_time_earnings.value,
    }
    return figures[field]
