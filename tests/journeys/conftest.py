"""The stories are set in a town with two partners."""

from tests.journeys.two_partners import bank, town

__all__ = ["bank", "town"]
