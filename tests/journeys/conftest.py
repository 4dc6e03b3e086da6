"""The stories are those of one partner's customers."""

import pytest


@pytest.fixture
async def partner(partner_desks):
    """The desk of a partner that may send wires; after the story the ledger must prove itself."""
    return await partner_desks("acme", features=("wires",))
