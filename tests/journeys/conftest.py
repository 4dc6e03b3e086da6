"""The stories are set in a bank with two partners."""

from tests.journeys.two_partners import town
from tests.support.whole_bank import bank

__all__ = ["bank", "town"]
