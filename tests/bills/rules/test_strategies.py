"""The four strategies."""

import pytest

from billfold.bills.rules.strategies import get_strategy, strategy_for_weeks
from billfold.platform.errors import NotFound


def test_an_unknown_strategy_is_not_found():
    with pytest.raises(NotFound):
        get_strategy("UST-1W")
    with pytest.raises(NotFound):
        strategy_for_weeks(17)
