"""The stories are set in a town with two partners."""

from tests.journeys.town import bank, town

__all__ = ["bank", "town"]
