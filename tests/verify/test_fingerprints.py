"""Wires and counterparties against the fingerprints their commands left."""

import pytest
from tests.support.damage import checks_of, report_of, undetected

import billfold.accounts.checks as account_checks
import billfold.payments.ach.checks as ach_checks
import billfold.payments.files.checks as file_checks
import billfold.payments.fedwire.checks as wire_checks
from billfold.verify.fingerprints import check_fingerprints

check_parts = checks_of(account_checks, ach_checks, file_checks, wire_checks)


async def test_nothing_is_named_when_nothing_was_damaged(rails):
    assert (await report_of(rails, check_fingerprints, check_parts)).is_clean


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
            check_parts,
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
            check_parts,
            where=where,
            undetectable=("display_name", "created_at", "updated_at"),
        )
        == []
    )
