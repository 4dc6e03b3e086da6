"""Wires and counterparties are compared with the fingerprints that their commands left."""

import subprocess
import sys

import pytest
from tests.support.damage import checks_of, report_of, undetected

from billfold.accounts import checks as account_checks
from billfold.payments.ach import checks as ach_checks
from billfold.payments.fedwire import checks as fedwire_checks
from billfold.payments.files import checks as file_checks
from billfold.verify.fingerprints import check_fingerprints

check_parts = checks_of(account_checks, ach_checks, file_checks, fedwire_checks)


FINGERPRINTED = """
ach_entry ach_return_entry agreement_acceptance card card_authorization card_dispute card_limits card_order
card_payment cash_back counterparty crypto_deposit crypto_withdrawal dealer_order dealer_quote execution hold
object_note reconciled_day reconciliation_break reversal_request settlement_difference settlement_instruction
suspense_item trading_desk wire wire_message
"""
_LIST = """
from billfold.platform.database.rows import fingerprinted_rows
from billfold.verify.runner import check_modules

check_modules()
print(*sorted(row.table for row in fingerprinted_rows()))
"""


def test_the_verification_loads_every_fingerprinted_table():
    listed = subprocess.run([sys.executable, "-c", _LIST], capture_output=True, text=True, check=True).stdout
    assert listed.split() == FINGERPRINTED.split()


async def test_undamaged_fingerprints_verify_clean(rails):
    assert (await report_of(rails, check_fingerprints, check_parts)).is_clean


@pytest.mark.parametrize(
    "where",
    [
        "direction = 'OUTGOING' AND status = 'COMPLETED' AND wire_type = 'PAYMENT'",
        "direction = 'INCOMING' AND status = 'COMPLETED'",
        "direction = 'OUTGOING' AND status = 'PENDING'",
    ],
)
async def test_verify_reports_a_damaged_wire(rails, where):
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
async def test_verify_reports_a_damaged_counterparty(rails, where):
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
