"""Rules of Pockets in memory: opened, changed, frozen, closed."""

from datetime import date, timedelta
from types import SimpleNamespace
from uuid import UUID

import msgspec
import pytest
from tests.fixtures.teller import Teller

from billfold.accounts.customers.commands import SetCustomerState
from billfold.accounts.pockets import commands
from billfold.accounts.pockets.rules import require_usable
from billfold.bills.rules.fees import ACCRUED_UNITS_PER_CENT
from billfold.ledger.book.postings import JournalEntry, TransactionEntry
from billfold.ledger.customers import DirectoryEntry
from billfold.ledger.types import Agreements, AgreementTerms, ScheduledJob
from billfold.platform.errors import NotFound, Refused


class Owner(Teller):
    """A customer with two Pockets, of which the first holds $1,000."""

    def __init__(self, **terms):
        super().__init__(**terms)
        self.first, self.second = self.pocket(), self.pocket()
        self.deposit(self.first, 1_000_00)
        self.until(date(2025, 6, 4))

    def update(self, pocket, **fields):
        return self.do(commands.UpdatePocket, pocket_id=pocket.pocket_id, references=(), **fields)

    def close(self, pocket):
        return self.update(pocket, close_for="not needed")

    def refused(self, code, act, *arguments, **fields):
        with pytest.raises(Refused) as told:
            act(*arguments, **fields)
        assert told.value.code == code
        return told.value.detail


@pytest.fixture
def owner():
    return Owner()


def test_a_new_pocket_is_open_charged_next_month_and_opens_its_customer():
    teller = Teller()
    assert teller.book.account_status == "PENDING"
    pocket = teller.pocket(13, None)
    assert (pocket.status, pocket.deposit_weeks, pocket.reinvestment_weeks) == ("OPEN", 13, None)
    assert (pocket.opened_at, pocket.accrued_through) == (teller.bank.now, date(2025, 6, 1))
    assert pocket.next_fee_date == date(2025, 7, 1)
    assert teller.book.account_status == "OPEN"
    found = [(row[0], row[-1]) for row in map(msgspec.structs.astuple, teller.bank.tables[DirectoryEntry])]
    assert ("pocket", pocket.pocket_id) in found
    for weeks, again in ((5, 4), (4, 5)):
        with pytest.raises(NotFound):
            teller.pocket(weeks, again)
    teller.do(SetCustomerState, status="FROZEN", reason="an order", references=(teller.customer,))
    with pytest.raises(Refused, match="customer-not-open"):
        teller.pocket()


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({"name": "Rent"}, ("Rent", 4, 4)),
        ({"deposit_weeks": 13}, ("Pocket", 13, 4)),
        ({"reinvestment_weeks": 26, "keep_reinvestment": False}, ("Pocket", 4, 26)),
        ({"reinvestment_weeks": None, "keep_reinvestment": False}, ("Pocket", 4, None)),
        ({"reinvestment_weeks": 26}, ("Pocket", 4, 4)),
    ],
)
def test_only_what_is_given_is_changed_and_a_network_pocket_keeps_its_strategy(owner, fields, after):
    pocket, name = owner.first, owner.first.name
    owner.update(pocket, **fields)
    told = (after[0] if "name" in fields else name, *after[1:])
    assert (pocket.name, pocket.deposit_weeks, pocket.reinvestment_weeks) == told
    owner.second.type = "NETWORK"
    if "name" in fields or fields == {"reinvestment_weeks": 26}:
        owner.update(owner.second, **fields)
    else:
        owner.refused("pocket-strategy-locked", owner.update, owner.second, **fields)


@pytest.mark.parametrize(("weeks", "uninvested", "left"), [(None, 50, 50), (26, 50, 0), (26, 0, 0)])
def test_a_new_strategy_invests_what_was_left_uninvested(owner, weeks, uninvested, left):
    pocket = owner.first
    pocket.uninvested = uninvested
    owner.update(pocket, reinvestment_weeks=weeks, keep_reinvestment=False)
    due = owner.bank.calendars.next_open(owner.bank.now) if uninvested > left else None
    assert (pocket.uninvested, pocket.invest_at) == (left, due)


@pytest.mark.parametrize(
    ("customer", "status", "code"),
    [
        ("OPEN", "OPEN", None),
        ("PENDING", "OPEN", None),
        ("FROZEN", "OPEN", "customer-not-open"),
        ("OPEN", "FROZEN", "pocket-frozen"),
        ("OPEN", "CLOSED", "pocket-not-open"),
    ],
)
def test_money_leaves_only_open_pockets_of_open_customers(owner, customer, status, code):
    owner.first.status = status
    if code is None:
        require_usable(customer, owner.first)
    else:
        owner.refused(code, require_usable, customer, owner.first)


def test_a_frozen_pocket_is_changed_and_not_closed_and_a_closed_one_neither(owner):
    pocket = owner.second
    shown = owner.do(commands.SetPocketState, pocket_id=pocket.pocket_id, status="FROZEN", real_time_yield=True)
    assert (shown["status"], shown["real_time_yield"]) == ("FROZEN", True)
    assert owner.update(pocket, name="Rent")["status"] == "FROZEN"
    owner.refused("pocket-not-open", owner.close, pocket)
    shown = owner.do(commands.SetPocketState, pocket_id=pocket.pocket_id, status="OPEN")
    assert (shown["status"], shown["real_time_yield"]) == ("OPEN", True)
    assert owner.close(pocket)["status"] == "CLOSED"
    owner.refused("pocket-not-open", owner.update, pocket, name="Again")
    owner.refused("pocket-not-open", owner.do, commands.SetPocketState, pocket_id=pocket.pocket_id, status="OPEN")
    with pytest.raises(NotFound):
        owner.do(commands.SetPocketState, pocket_id=UUID(int=1), status="OPEN")
    owner.do(SetCustomerState, status="FROZEN", reason="an order", references=(owner.customer,))
    owner.refused("customer-not-open", owner.update, owner.first, name="Rent")


def test_a_closed_pocket_has_no_portal_fee_or_investment_left(owner):
    pocket = owner.second
    pocket.fee_accrued, pocket.invest_at = 7, owner.bank.now + timedelta(days=9)
    owner.close(pocket)
    assert (pocket.fee_accrued, pocket.invest_at, pocket.closure_reason) == (0, None, "not needed")
    assert pocket.closed_at == owner.bank.now
    assert {each.status for each in owner.book.portals.values() if each.pocket_id == pocket.pocket_id} == {"CLOSED"}
    assert {each.status for each in owner.book.portals.values() if each.pocket_id != pocket.pocket_id} == {"OPEN"}
    jobs = [(job.kind, job.object_id) for job in owner.bank.tables[ScheduledJob]]
    assert jobs == [("pocket.closed", pocket.pocket_id)]


def test_what_a_pocket_holds_owes_or_has_in_process_keeps_it_open(owner):
    owner.refused("pocket-not-empty", owner.close, owner.first)
    second = owner.second
    second.liens.append((1, owner.bank.now + timedelta(days=9)))
    owner.refused("pocket-not-empty", owner.close, second)
    second.liens.clear()
    second.unsettled_until = owner.bank.now.date() + timedelta(days=1)
    assert "settle on 2025-06-05" in owner.refused("pocket-not-empty", owner.close, second)
    second.unsettled_until = owner.bank.now.date()
    second.cash.balance = 100_00
    owner.refused("pocket-not-empty", owner.close, second)
    second.cash.balance = 0
    payment = SimpleNamespace(pocket_id=second.pocket_id, is_open=True)
    owner.book.referenced = {UUID(int=1): payment}
    assert "still in process" in owner.refused("pocket-not-empty", owner.close, second)
    payment.is_open = False
    waiting = owner.move(owner.first, second, 1_00, later=True)
    assert "still pending" in owner.refused("pocket-not-empty", owner.close, second)
    owner.book.pending.pop(UUID(waiting["transfer_id"]))
    assert owner.close(second)["status"] == "CLOSED"
    owner.first.lots.clear()
    owner.refused("last-open-pocket", owner.close, owner.first)


def test_what_is_left_of_a_closed_pocket_is_paid_into_the_oldest_other_one(owner):
    third = owner.pocket()
    owner.move(owner.first, third, None)
    owner.until(date(2025, 6, 6))
    left = owner.first.cash.balance
    assert 0 <= left < 100_00
    owner.deposit(owner.first, 50_00)
    owner.until(date(2025, 6, 9))
    cents, before = owner.first.cash.balance, (owner.second.inflow, third.inflow)
    owner.first.fee_accrued += 3 * ACCRUED_UNITS_PER_CENT
    paid_out, fee = owner.first.outflow, owner.first.fees
    owner.close(owner.first)
    fee = owner.first.fees - fee
    assert (owner.first.cash.balance, owner.first.outflow) == (0, paid_out + cents - fee)
    assert (owner.second.inflow, third.inflow) == (before[0] + cents - fee, before[1])
    assert fee == 3
    debit, credit = [row for row in owner.bank.tables[TransactionEntry] if row.title == "Pocket closed"]
    assert (debit.direction, debit.pocket_id, credit.direction, credit.pocket_id) == (
        "DEBIT",
        owner.first.pocket_id,
        "CREDIT",
        owner.second.pocket_id,
    )
    assert (debit.amount, credit.amount) == (cents - fee, cents - fee)
    assert debit.description.startswith("What was left, to")
    assert credit.description.startswith("What was left in")
    other = [msgspec.json.decode(row.details)["pocket_id"] for row in (debit, credit)]
    assert other == [str(owner.second.pocket_id), str(owner.first.pocket_id)]
    assert owner.bank.tables[JournalEntry][-1].kind == "on_us"


def test_a_pocket_is_opened_only_after_the_agreements_are_accepted():
    teller = Teller(agreements=Agreements([AgreementTerms("2025-05-01", date(2025, 6, 3))]))
    teller.pocket()
    teller.until(date(2025, 6, 3))
    with pytest.raises(Refused, match="agreement-not-accepted"):
        teller.pocket()
