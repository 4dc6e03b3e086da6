"""Transfers out of a pocket: allowed amounts and payees, and what remains for liens and the accrued fee, to the cent.

At the opening instant the ask of the 4-week bill is 99.754125, its mark 99.746507 and its bid for
tomorrow 99.753833 (docs/domain/tbill_maths.md).
"""

from datetime import date
from uuid import UUID

import msgspec
import pytest
from tests.fixtures.teller import Teller
from tests.support.whole_bank import BETA

from billfold.accounts.counterparties.types import Payee
from billfold.accounts.pockets.commands import SetPocketState
from billfold.ledger.book.postings import EventEntry, JournalEntry, TradeEntry, TransactionEntry, Update
from billfold.ledger.types import Agreements, AgreementTerms
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.dates import et_instant
from billfold.platform.errors import Refused

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")

LIENED = 500_00
LINK = UUID("5c2a0f6e-8a55-4a0a-9d0e-2f8f0f3f7b11")


@pytest.fixture
def teller():
    """A bank that keeps ACH credits for two days, as in production."""
    return Teller(ach_credit_hold_days=2)


@pytest.fixture
def pocket(teller):
    """15 bills and $3.69: $1,000.00 by wire buy 10 for $997.54, $500.00 by ACH 5 for $498.77."""
    pocket = teller.pocket()
    teller.deposit(pocket, 1_000_00)
    teller.deposit(pocket, LIENED, rail="ACH")
    assert (pocket.positions()[0][1], pocket.cash.balance) == (15, 3_69)
    return pocket


def test_a_full_transfer_leaves_held_money_in_the_pocket(teller, pocket):
    """15 bills at tomorrow's bid of 99.753833 fetch $1,496.31; with the cash $1,000.00 is free."""
    there = teller.pocket()
    assert teller.move(pocket, there, 1_000_03)["reason"] == "INSUFFICIENT_FUNDS"
    assert teller.move(pocket, there, None)["reason"] == "INSUFFICIENT_FUNDS"
    assert teller.move(pocket, there, 1_000_00)["status"] == "COMPLETED"
    assert pocket.outflow == 1_000_00


def test_a_lien_ends_at_half_past_eight_on_the_second_banking_day(teller, pocket):
    there = teller.pocket()
    teller.bank.advance(et_instant(date(2025, 6, 4), 8, 29))
    assert teller.move(pocket, there, None)["reason"] == "INSUFFICIENT_FUNDS"
    teller.bank.advance(et_instant(date(2025, 6, 4), 8, 30))
    assert teller.move(pocket, there, None)["status"] == "COMPLETED"
    assert (pocket.lots, pocket.cash.balance) == ([], 0)


def test_bills_move_in_kind_only_if_the_rest_covers_the_hold(teller, pocket):
    """15 bills are worth $1,496.20 and $999.89 is free, but that is 11 bills or $1,097.21."""
    there = teller.pocket()
    refused = teller.move(pocket, there, 999_89, order=IN_KIND)
    assert (refused["status"], refused["reason"]) == ("REJECTED", "INSUFFICIENT_FUNDS")
    assert (pocket.positions()[0][1], there.positions()) == (15, [])
    moved = teller.move(pocket, there, 997_47, order=IN_KIND)
    assert (moved["status"], moved["amount"]) == ("COMPLETED", 997_47)
    assert [units for _, units in pocket.positions() + there.positions()] == [5, 10]


@pytest.fixture
def bert(teller):
    """The Pocket of another customer, whose account Anna has linked under this id."""
    place = teller.new_pocket(teller.new_customer("Bert"))
    teller.bank.seen.put(teller.customer, LINK, linked(place))
    return place


def linked(place, **changes):
    fields = {"type": "on_us", "status": "LINKED", "counterparty_name": BETA, "verification": {"type": "name_match"}}
    return Payee(**{"counterparty_id": LINK, "details": {}, "target_pocket_id": place.id} | fields | changes)


def pay(teller, pocket, place, cents, **fields):
    fields = {"order": TransferOrder(counterparty_id=LINK), "addresses": ("of Anna", "of Bert")} | fields
    return teller.transfer(teller.place_of(pocket), place, cents, references=(LINK,), **fields)


def test_an_on_us_payment_shows_both_parties_the_address_of_the_other(teller, pocket, bert):
    order = TransferOrder(counterparty_id=LINK, end_to_end_identification="E-1")
    assert pay(teller, pocket, bert, 100_00, order=order)["status"] == "COMPLETED"
    sides = teller.bank.tables[TransactionEntry][-2:]
    details = [msgspec.json.decode(row.details) for row in sides]
    assert [each["counterparty"]["network_address"] for each in details] == ["of Bert", "of Anna"]
    told = msgspec.json.decode(sides[1].remittance)
    assert told == {"unstructured": [], "structured": {"end_to_end_identification": "E-1"}}
    received = msgspec.json.decode(teller.bank.tables[EventEntry][-1].payload)
    assert received["transaction_activity_id"] == str(sides[1].activity_id) != str(sides[0].activity_id)
    assert [row.kind for row in teller.bank.tables[JournalEntry] if row.customer_id == bert.customer] == ["on_us"]


def test_only_a_payment_to_another_customer_needs_accepted_agreements():
    teller = Teller(agreements=Agreements([AgreementTerms("2025-05-01", date(2025, 6, 3))]))
    pocket, there = teller.pocket(), teller.pocket()
    teller.deposit(pocket, 1_000_00)
    teller.until(date(2025, 6, 3))
    assert teller.move(pocket, there, 100_00)["status"] == "COMPLETED"
    with pytest.raises(Refused, match="agreement-not-accepted"):
        pay(teller, pocket, teller.new_pocket(teller.new_customer("Bert")), 100_00)


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"status": "UNLINKED"}, "counterparty-not-verified", "ACCOUNT_UNAVAILABLE"),
        ({"target_pocket_id": UUID(int=1)}, "counterparty-not-verified", "ACCOUNT_UNAVAILABLE"),
        ({"verification": {"sanctions": "OPEN"}}, "sanction-screen-failed", "SANCTION_SCREEN_FAILED"),
    ],
)
def test_a_payment_to_an_unlinked_or_redirected_counterparty_is_refused(teller, pocket, bert, changes, code, reason):
    teller.bank.seen.put(teller.customer, LINK, linked(bert, **changes))
    with pytest.raises(Refused, match=code):
        pay(teller, pocket, bert, 100_00)
    rejected = pay(teller, pocket, bert, 100_00, approved=True)
    assert (rejected["status"], rejected["reason"]) == ("REJECTED", reason)
    assert pocket.outflow == 0


def test_a_payment_to_a_counterparty_with_a_closed_address_is_rejected(teller, pocket, bert):
    rejected = pay(teller, pocket, bert, 100_00, addresses=("of Anna", None))
    assert (rejected["status"], rejected["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")


def test_a_full_transfer_over_the_approved_amount_is_refused(teller, pocket, bert):
    teller.bank.advance(et_instant(date(2025, 6, 4), 9))
    booked = list(teller.bank.tables[JournalEntry])
    with pytest.raises(Refused, match="amount-not-allowed"):
        pay(teller, pocket, bert, None, at_most=1_000_00)
    rejected = pay(teller, pocket, bert, None, at_most=1_000_00, approved=True)
    assert (rejected["status"], rejected["reason"]) == ("REJECTED", "INVALID_TRANSFER")
    assert teller.bank.tables[JournalEntry] == booked
    told = [row.kind.rpartition(".")[2] for row in teller.bank.tables[EventEntry][-2:]]
    assert told == ["processing", "rejected"], "it was accepted before"


def test_a_deferred_transfer_is_refused_for_a_frozen_pocket_and_pending_until_executed(teller, pocket):
    there = teller.pocket()
    teller.do(SetPocketState, pocket_id=pocket.pocket_id, status="FROZEN")
    with pytest.raises(Refused, match="pocket-frozen"):
        teller.move(pocket, there, 1_00, later=True)
    teller.do(SetPocketState, pocket_id=pocket.pocket_id, status="OPEN")
    transfer_id = UUID(teller.move(pocket, there, 1_00, later=True)["transfer_id"])
    assert list(teller.book.pending) == [transfer_id]
    assert teller.move(pocket, there, 1_00, transfer_id=transfer_id, accepted=True)["status"] == "COMPLETED"
    assert teller.book.pending == {}
    (update,) = (each for each in teller.bank.tables[Update] if each.key == transfer_id)
    assert (update.columns["status"], update.columns["amount"]) == ("COMPLETED", 1_00)
    assert teller.bank.tables[TransactionEntry][-1].settles_at == et_instant(date(2025, 6, 3), 0)


def test_bills_of_three_lots_are_transferred_at_exact_value_and_keep_their_tax_basis(teller):
    pocket, there = teller.pocket(), teller.pocket()
    for day in (3, 4, 5):
        teller.bank.advance(et_instant(date(2025, 6, day), 10))
        teller.deposit(pocket, 700_00 + day)
    tax = sum(lot.tax_basis for lot in pocket.lots)

    moved = teller.move(pocket, there, 1_790_00, order=IN_KIND)["amount"]

    assert [lot.units for lot in pocket.lots + there.lots] == [3, 7, 7, 4]
    assert (there.earnings_basis(), there.inflow, pocket.outflow) == (moved, moved, moved)
    assert sum(lot.tax_basis for lot in pocket.lots + there.lots) == tax
    trades = [row for row in teller.bank.tables[TradeEntry] if row.activity == "SAME_ENTITY_SECURITY_TRANSFER"]
    assert [row.incoming for row in trades] == [False, True]
    assert trades[0].tax_basis == trades[1].tax_basis == sum(lot.tax_basis for lot in there.lots)
    assert pocket.realised == moved - trades[0].earnings_basis > 0
    assert teller.move(teller.pocket(), there, None, order=IN_KIND)["reason"] == "INSUFFICIENT_FUNDS"
