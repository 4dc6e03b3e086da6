"""Transactions as both versions show them: one variant per type."""

from datetime import UTC, datetime

import msgspec
import pytest
from tests.support.partner_desk import UNKNOWN

from billfold.accounts.transactions.schemas import render_transaction, render_v1_transaction
from billfold.accounts.transactions.store import TransactionRow
from billfold.platform import ids

SHARED = {
    "id",
    "transaction_id",
    "type",
    "description",
    "amount",
    "time_booked",
    "time_settled",
    "status",
    "title",
    "direction",
    "pocket_id",
    "customer_id",
    "remittance_information",
    "object_type",
}
OWN = {
    "ACH": (
        "ACHTransactionActivity",
        (
            "company_name company_entry_description individual_identification_number trace_number "
            "ach_id ach_direction portal_id"
        ),
    ),
    "WIRE": (
        "WireTransactionActivity",
        ("wire_type original_wire_id wire_id reference_number counterparty_name counterparty_id portal_id"),
    ),
    "CARD": (
        "CardTransactionActivity",
        ("card_id counterparty location terminal_id merchant_type issue_id pre_authorization merchant_category_code"),
    ),
    "ON_US": (
        "OnUsTransactionActivity",
        ("on_us_transfer_id on_us_transfer_type source target counterparty end_to_end_identification"),
    ),
    "FEE": ("FeeTransactionActivity", "fee_type related_transaction_id"),
    "CREDIT": ("CreditTransactionActivity", "credit_type period card_id"),
    "GENERIC": ("GenericTransactionActivity", ""),
    "SWEEP": ("SweepTransactionActivity", "trade_id sweep_direction"),
}
NEEDED = {
    "ON_US": {"on_us_transfer_id": UNKNOWN, "on_us_transfer_type": "PEER_TO_PEER"},
    "FEE": {"fee_type": "WIRE_FEE"},
}
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
        swept=False,
        title="title",
        description="text",
        booked_at=AT,
        settles_at=AT,
        details=msgspec.json.encode(details).decode(),
        remittance=None,
    )


@pytest.mark.parametrize("kind", sorted(OWN))
def test_every_variant_has_all_its_fields_and_unknown_ones_are_null(kind):
    shown = msgspec.to_builtins(render_transaction(row_of(kind, NEEDED.get(kind, {})), AT))
    object_type, names = OWN[kind]
    assert set(shown) == SHARED | set(names.split())
    assert (shown["type"], shown["object_type"]) == (kind, object_type)


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
def test_v1_knows_seven_types_and_a_block_for_each_but_generic(kind, details, older, block):
    shown = render_v1_transaction(row_of(kind, details), AT).details
    assert shown["transaction_type"] == older
    usual = {"title", "transaction_type", "sub_title", "transaction_type_title", "direction"}
    assert set(shown) - usual == ({block} if block else set())
