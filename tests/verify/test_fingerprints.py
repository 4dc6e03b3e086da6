"""Wires and counterparties against the fingerprints their commands left."""

import pytest
from tests.support.damage import proved, unnamed

from billfold.accounts.checks import run_queries
from billfold.payments.files.checks import check_rails
from billfold.payments.wires.checks import WIRES
from billfold.verify.fingerprints import check_proofs


async def check_wires(conn, found):
    await run_queries(conn, found, WIRES)


async def test_nothing_is_named_when_nothing_was_damaged(rails):
    assert (await proved(rails, check_proofs, check_wires)).is_clean


@pytest.mark.parametrize(
    "where",
    ["direction = 'OUTGOING' AND status = 'COMPLETED' AND wire_type = 'PAYMENT'",
     "direction = 'INCOMING' AND status = 'COMPLETED'",
     "direction = 'OUTGOING' AND status = 'PENDING'"],
)  # fmt: skip
async def test_a_wire_is_named_when_it_was_damaged(rails, where):
    # The other side's own number, and when the row was last touched.
    assert await unnamed(
        rails, "wire", check_proofs, check_wires, check_rails, where=where,
        unproved=("omad", "updated_at"),
    ) == []  # fmt: skip


@pytest.mark.parametrize("where", ["type = 'wire'", "status = 'PENDING'"])
async def test_a_counterparty_is_named_when_it_was_damaged(rails, where):
    assert await unnamed(
        rails, "counterparty", check_proofs, check_rails, where=where,
        unproved=("display_name", "created_at", "updated_at"),
    ) == []  # fmt: skip
