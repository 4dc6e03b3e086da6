"""The four strategies."""

import pytest

from billfold.bills.rules.strategies import STRATEGIES, StrategyUse, get_strategy, list_strategies, strategy_for_weeks
from billfold.platform.errors import NotFound


def test_there_is_one_strategy_per_term_and_each_may_be_used_for_everything() -> None:
    assert [(item.id, item.maturity_weeks) for item in STRATEGIES] == [
        ("UST-4W", 4),
        ("UST-13W", 13),
        ("UST-26W", 26),
        ("UST-52W", 52),
    ]
    assert list_strategies() == list_strategies(StrategyUse.DEPOSIT) == STRATEGIES
    assert list_strategies(StrategyUse.REINVESTMENT) == STRATEGIES


def test_a_strategy_is_found_by_its_id_and_by_its_term() -> None:
    assert get_strategy("UST-13W").description == "US T-bills, 13-week, Buy-and-hold"
    assert strategy_for_weeks(13) is get_strategy("UST-13W")


def test_an_unknown_strategy_is_not_found() -> None:
    with pytest.raises(NotFound):
        get_strategy("UST-1W")
    with pytest.raises(NotFound):
        strategy_for_weeks(17)
