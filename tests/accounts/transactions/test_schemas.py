"""Transactions as both versions show them: one variant per type."""

from datetime import UTC, datetime

import msgspec
import pytest

from billfold.accounts.transactions.schemas import render_transaction, render_v1_transaction
from billfold.accounts.transactions.settlement import TransactionRow
from billfold.platform import ids
from billfold.platform.calendars import Calendars

AT = datetime(2025, 6, 2, 13, tzinfo=UTC)


def row_of(kind, details):
    """Return a row of activity of this type with these details."""
    return TransactionRow(
        ids.new(),
        ids.new(),
        1,
        posting_no=1,
        activity_id=ids.new(),
        transaction_id=ids.new(),
        type=kind,
        direction="CREDIT",
        amount=100,
        title="title",
        description="text",
        booked_at=AT,
        settles_at=AT,
        details=msgspec.json.encode(details).decode(),
        remittance=None,
        written_no=1,
    )


def test_a_transaction_type_shows_only_its_own_details_and_missing_ones_as_null():
    shown = msgspec.to_builtins(
        render_transaction(row_of("FEE", {"fee_type": "WIRE_FEE", "secret": 1}), AT, Calendars())
    )
    assert (shown["type"], shown["object_type"]) == ("FEE", "FeeTransactionActivity")
    assert (shown["fee_type"], shown["related_transaction_id"]) == ("WIRE_FEE", None)
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("kind", "details", "older", "block"),
    [
        ("ACH", {"trace_number": "1"}, "ACH", "ach_transaction"),
        ("FEE", {"fee_type": "WIRE_FEE"}, "WIRE_FEE", "wire_fee_transaction"),
        ("FEE", {"fee_type": "AUM_FEE"}, "GENERIC", None),
        ("CREDIT", {"credit_type": "CASH_BACK"}, "CASH_BACK", "cash_back_transaction"),
        ("CREDIT", {"credit_type": "PROMOTION"}, "GENERIC", None),
        ("GENERIC", {}, "GENERIC", None),
    ],
)
def test_v1_transactions_have_one_detail_block_for_each_type_except_generic(kind, details, older, block):
    shown = render_v1_transaction(row_of(kind, details), AT, Calendars()).details
    assert shown["transaction_type"] == older
    usual = {"title", "transaction_type", "sub_title", "transaction_type_title", "direction"}
    assert set(shown) - usual == ({block} if block else set())
