"""A bank with two dealers, worked by hand."""

import pytest
from tests.support.whole_bank import close_bank, open_bank
from tests.trading.desk_by_hand import DeskByHand


@pytest.fixture
async def bank(bank_dsn):
    """A founded bank at 2025-06-02 09:00 ET with two dealers."""
    opened = await open_bank(bank_dsn, dealers=("citadel", "jpm"))
    yield opened
    await close_bank(opened)


@pytest.fixture
def desk(bank):
    return DeskByHand(bank)
