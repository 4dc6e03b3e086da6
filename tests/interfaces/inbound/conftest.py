"""A whole bank for every test of what arrives that asks, and the other side of Fedwire."""

import pytest
from tests.interfaces.inbound.fedwire import Fedwire
from tests.whole_bank import bank, new_holder

__all__ = ["bank", "new_holder"]


@pytest.fixture
def fedwire(bank):
    return Fedwire(bank)


@pytest.fixture
async def holder(new_holder):
    """A customer with $5,000."""
    made = await new_holder()
    await made.deposit(5_000_00)
    return made
