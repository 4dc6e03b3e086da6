"""A bank whose reserve, bills and trades others state, too."""

import pytest
from tests.reconciliation.books import Mornings
from tests.reconciliation.files import RESERVE, SAFE
from tests.support.whole_bank import close_bank, open_bank


@pytest.fixture
async def bank(bank_dsn):
    """A founded bank at 2025-06-02 09:00 ET with two dealers, of which one sends a recap."""
    accounts = {"reserve_account": RESERVE, "custodian_account": SAFE}
    opened = await open_bank(bank_dsn, dealers=("citadel", "jpm"), dealer_recaps=("citadel",), **accounts)
    yield opened
    await close_bank(opened)


@pytest.fixture
def morning(bank):
    return Mornings(bank)
