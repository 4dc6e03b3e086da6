"""Wires and counterparties against the fingerprints their commands left."""

import pytest
from tests.support.damage import report_of, undetected

from billfold.payments.files.checks import check_rail_files
from billfold.payments.wires.checks import WIRE_CHECKS
from billfold.verify.fingerprints import check_fingerprints
from billfold.verify.query_check import run_checks


async def check_wires(conn, found):
    await run_checks(conn, found, WIRE_CHECKS)


async def test_nothing_is_named_when_nothing_was_damaged(rails):
    assert (await report_of(rails, check_fingerprints, check_wires)).is_clean


@pytest.mark.parametrize(
    "where",
    [
        "direction = 'OUTGOING' AND status = 'COMPLETED' AND wire_type = 'PAYMENT'",
        "direction = 'INCOMING' AND status = 'COMPLETED'",
        "direction = 'OUTGOING' AND status = 'PENDING'",
    ],
)
async def test_a_wire_is_named_when_it_was_damaged(rails, where):
    # The other side's own number, and when the row was last touched.
    assert (
        await undetected(
            rails,
            "wire",
            check_fingerprints,
            check_wires,
            check_rail_files,
            where=where,
            undetectable=("omad", "updated_at"),
        )
        == []
    )


@pytest.mark.parametrize("where", ["type = 'wire'", "status = 'PENDING'"])
async def test_a_counterparty_is_named_when_it_was_damaged(rails, where):
    assert (
        await undetected(
            rails,
            "counterparty",
            check_fingerprints,
            check_rail_files,
            where=where,
            undetectable=("display_name", "created_at", "updated_at"),
        )
        == []
    )
