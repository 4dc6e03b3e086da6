"""The strategies a pocket can follow: buy the newest bill of one term and hold it."""

from dataclasses import dataclass
from enum import StrEnum

from billfold.bills.rules.issue_calendar import TERMS
from billfold.platform.errors import NotFound


class StrategyUse(StrEnum):
    """The money that a strategy may invest: deposits, or the proceeds of matured bills."""

    DEPOSIT = "DEPOSIT"
    REINVESTMENT = "REINVESTMENT"


@dataclass(frozen=True, slots=True)
class Strategy:
    """A rule for buying bills, named after its term."""

    id: str
    description: str
    maturity_weeks: int
    enabled_for: tuple[StrategyUse, ...]


STRATEGIES = tuple(
    Strategy(f"UST-{weeks}W", f"US T-bills, {weeks}-week, Buy-and-hold", weeks, enabled_for=tuple(StrategyUse))
    for weeks in TERMS
)
"""Every strategy, shortest term first."""


def list_strategies(enabled_for: StrategyUse | None = None) -> tuple[Strategy, ...]:
    """Return the strategies enabled for a use, or all of them by default."""
    return tuple(strategy for strategy in STRATEGIES if enabled_for is None or enabled_for in strategy.enabled_for)


def get_strategy(strategy_id: str) -> Strategy:
    """Return a strategy by its id, such as `UST-4W`. Raises NotFound."""
    for strategy in STRATEGIES:
        if strategy.id == strategy_id:
            return strategy
    raise NotFound("There is no such trading strategy.", strategy_id=strategy_id)


def strategy_for_weeks(weeks: int) -> Strategy:
    """Return the strategy of a term in weeks. Raises NotFound."""
    return get_strategy(f"UST-{weeks}W")
