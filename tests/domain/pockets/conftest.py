"""A whole bank for every test of Pockets that asks."""

from tests.whole_bank import bank, new_holder

__all__ = ["bank", "new_holder"]
