"""Rules of card payments in memory: decisions, holds, records, disputes and refunds."""

from datetime import date, timedelta
from uuid import UUID

import msgspec
import pytest
from tests.fixtures.teller import Teller

from billfold.accounts.pockets.commands import SetPocketState
from billfold.ledger.book.postings import EventEntry, JournalEntry, TransactionEntry, Update
from billfold.ledger.types import ScheduledJob
from billfold.payments.cards.authorizations import commands
from billfold.payments.cards.commands import CreateVirtualCard
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.overdraft import overdraft_of
from billfold.treasury.rules.withdraw import payable_cents

SHOP, ATM, HOTEL = (commands.Merchant(name="Shop", category_code=code) for code in ("5411", "6011", "7011"))
GAMES = commands.Merchant(name="Games", category_code="7995")
ALL, MORE = -1, 5_000_00
"""All that the Pocket can pay at once, and more than that."""


class Cardholder(Teller):
    """A customer with a Pocket of $1,000 and a card."""

    def __init__(self, **terms):
        super().__init__(**terms)
        self.held = self.pocket()
        self.deposit(self.held, 1_000_00)
        self.until(date(2025, 6, 4))
        self.card_id = UUID(int=77)
        fields = {"name": "", "last_four": "4242", "expires_on": date(2029, 6, 30)}
        self.do(CreateVirtualCard, card_id=self.card_id, pocket_id=self.held.pocket_id, **fields)

    def about(self, kind, *others, reference: str | None = "one", **fields):
        if kind is not commands.ChargeBack and kind is not commands.Represent:
            fields = {"merchant": SHOP, **fields}
        seen = commands.references_of(self.card_id, reference, *others)
        return self.do(kind, references=seen, card_id=self.card_id, network_reference=reference, **fields)

    def authorize(self, cents, **fields):
        return self.about(commands.AuthorizeCard, **{**fields, "amount": cents})

    def record(self, kind, cents, number=1, *others, days=2, **fields):
        on = self.bank.calendars.add_fed_days(self.bank.now.date(), days)
        return self.about(kind, *others, record_id=UUID(int=number), amount=cents, settles_on=on, **fields)

    def see(self, object_id, **changes):
        """Show a row with other fields to later commands."""
        row = self.bank.seen.of(self.customer)[object_id]
        self.bank.seen.put(self.customer, object_id, msgspec.structs.replace(row, **changes))

    @property
    def payable(self):
        return payable_cents(self.held, self.bank._moment())

    @property
    def row(self):
        """The authorization of the purchase."""
        return self.bank.seen.of(self.customer)[commands.authorization_id_of(self.card_id, "one")]

    def events(self):
        told = [each.kind for each in self.bank.tables[EventEntry] if each.kind.startswith("card.transaction.")]
        return [kind.rpartition(".")[2] for kind in told]


@pytest.fixture
def holder():
    return Cardholder(card_blocked_categories=frozenset({"7995"}))


@pytest.mark.parametrize(
    ("fields", "decision", "cents", "reason"),
    [
        ({"amount": 100_00}, "APPROVED", 100_00, None),
        ({"amount": 0}, "APPROVED", 0, None),
        ({"amount": ALL}, "APPROVED", ALL, None),
        ({"amount": MORE}, "DECLINED", 0, "INSUFFICIENT_FUNDS"),
        ({"amount": MORE, "is_partial_allowed": True}, "PARTIALLY_APPROVED", ALL, None),
        ({"amount": MORE, "is_partial_allowed": True, "entry_mode": "ATM"}, "DECLINED", 0, "INSUFFICIENT_FUNDS"),
        ({"amount": MORE, "is_partial_allowed": True, "merchant": ATM}, "DECLINED", 0, "INSUFFICIENT_FUNDS"),
        ({"amount": MORE, "is_partial_allowed": True, "cash": 4_500_00}, "PARTIALLY_APPROVED", 500_00, None),
        ({"amount": MORE, "is_purchase_only_allowed": True, "cash": 4_500_00}, "PARTIALLY_APPROVED", 500_00, None),
        ({"amount": MORE, "is_purchase_only_allowed": True, "cash": 100_00}, "DECLINED", 0, "INSUFFICIENT_FUNDS"),
        ({"amount": MORE, "cash": 4_500_00}, "DECLINED", 0, "INSUFFICIENT_FUNDS"),
        ({"amount": 1_00, "entry_mode": "MAGSTRIPE"}, "DECLINED", 0, "MAGSTRIPE_OFF"),
        ({"amount": 1_04}, "DECLINED", 0, "SUSPECTED_FRAUD"),
        ({"amount": 1_00, "merchant": GAMES}, "DECLINED", 0, "CATEGORY_BLOCKED"),
    ],
)
def test_a_purchase_is_approved_as_far_as_pocket_and_terminal_allow(holder, fields, decision, cents, reason):
    cents = holder.payable if cents == ALL else cents
    told = holder.authorize(holder.payable if fields["amount"] == ALL else fields["amount"], **fields)
    assert (told["decision"], told["approved_amount"], told["reason"]) == (decision, cents, reason)
    assert holder.held.cash.reserved == cents
    assert holder.events() == (["rejected"] if reason else ["approved", "on_hold"] if cents else [])
    assert bool(told["authorization_id"]) == bool(cents or reason)
    if cents:
        assert (holder.row.approved, holder.row.remaining) == (cents, cents)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": "NOT_ACTIVATED"}, "CARD_NOT_ACTIVATED"),
        ({"status": "OFFLINE"}, "CARD_OFFLINE"),
        ({"status": "CLOSED"}, "CARD_CLOSED"),
        ({"expires_on": date(2025, 6, 3)}, "CARD_EXPIRED"),
        ({"expires_on": date(2025, 6, 4)}, None),
    ],
)
def test_an_unusable_card_pays_nothing_and_shows_no_balance(holder, changes, reason):
    holder.see(holder.card_id, **changes)
    shown = holder.do(commands.InquireBalance, card_id=holder.card_id, references=(holder.card_id,))
    assert (shown["reason"], shown["approved_amount"]) == (reason, 0 if reason else holder.payable)
    assert holder.authorize(1_00)["reason"] == reason
    if reason == "CARD_CLOSED":
        with pytest.raises(Refused, match="already-closed"):
            holder.do(
                commands.SetCardLimits, card_id=holder.card_id, daily=1, categories={}, references=(holder.card_id,)
            )


def test_a_frozen_pocket_pays_no_purchase_and_another_card_is_not_found(holder):
    holder.do(SetPocketState, pocket_id=holder.held.pocket_id, status="FROZEN")
    assert holder.authorize(1_00)["reason"] == "POCKET_FROZEN"
    holder.card_id = UUID(int=78)
    with pytest.raises(NotFound):
        holder.authorize(1_00)


@pytest.mark.parametrize(
    ("daily", "categories", "cents", "reason"),
    [
        (None, {}, 500_00, None),
        (100_00, {}, 60_00, None),
        (100_00, {}, 60_01, "CARD_LIMIT"),
        (0, {}, 1, "CARD_LIMIT"),
        (None, {"5411": 30_00}, 20_00, None),
        (None, {"5411": 30_00}, 20_01, "CATEGORY_LIMIT"),
        (None, {"5411": 30_00}, 30_00, "CATEGORY_LIMIT"),
        (None, {"5411": 0}, 1, "CATEGORY_BLOCKED"),
        (None, {"7011": 0}, 500_00, None),
    ],
)
@pytest.mark.parametrize("day", [date(2025, 6, 4), date(2025, 6, 3)])
def test_limits_count_what_was_spent_today(holder, daily, categories, cents, reason, day):
    """Ten dollars at shops and thirty at hotels were spent on a day."""
    key = commands.spending_id_of(holder.card_id)
    for limit in (1, daily):
        fields = {"card_id": holder.card_id, "daily": limit, "categories": categories}
        holder.do(commands.SetCardLimits, references=(holder.card_id, key), **fields)
    changed = holder.bank.tables[Update][-1]
    assert (changed.row, changed.columns["daily"]) == (commands.CardLimitsRow, daily)
    holder.see(key, day=day, spent={"5411": 10_00, "7011": 30_00})
    if day < date(2025, 6, 4) and 0 not in {daily, *categories.values()}:
        reason = None
    assert holder.authorize(cents)["reason"] == reason
    seen = holder.bank.seen.of(holder.customer)[key]
    counted = {} if day < date(2025, 6, 4) and not reason else {"5411": 10_00, "7011": 30_00}
    assert seen.spent == counted | ({} if reason else {"5411": counted.get("5411", 0) + cents})


def test_a_hold_is_raised_renewed_and_released_in_parts(holder):
    holder.authorize(100_00)
    expires = holder.row.expires_at
    assert expires == holder.bank.now + timedelta(days=7)
    assert holder.row.hold_entry_no == holder.bank.tables[JournalEntry][-1].entry_no
    assert holder.authorize(5_00)["reason"] == "DUPLICATE"
    holder.until(date(2025, 6, 5))
    raised = holder.about(commands.IncrementAuthorization, amount=50_00)
    assert (raised["decision"], holder.row.remaining, holder.row.spent_before) == ("APPROVED", 150_00, 100_00)
    assert holder.row.expires_at == expires + timedelta(days=1)
    refused = holder.about(commands.IncrementAuthorization, amount=MORE)
    assert (refused["reason"], holder.row.remaining) == ("INSUFFICIENT_FUNDS", 150_00)
    assert holder.about(commands.ReverseAuthorization, amount=0)["approved_amount"] == 0
    assert holder.about(commands.ReverseAuthorization, amount=30_00)["approved_amount"] == 30_00
    assert (holder.row.status, holder.row.remaining, holder.row.reversed) == ("PENDING", 120_00, 30_00)
    holder.about(commands.ExpireAuthorization, due=expires)
    assert holder.held.cash.reserved == 120_00
    assert holder.about(commands.ReverseAuthorization)["approved_amount"] == 120_00
    assert (holder.row.status, holder.held.cash.reserved, holder.row.hold_entry_no) == ("REVERSED", 0, None)
    assert holder.events().count("reversed") == 2
    jobs = [job.at for job in holder.bank.tables[ScheduledJob] if job.kind == commands.EXPIRY_JOB]
    assert jobs == [expires, expires + timedelta(days=1)]
    assert holder.about(commands.IncrementAuthorization, amount=1_00)["reason"] == "NO_AUTHORIZATION"
    assert holder.about(commands.ReverseAuthorization)["approved_amount"] == 0


@pytest.mark.parametrize(
    ("merchant", "days", "ended"), [(SHOP, 6, False), (SHOP, 7, True), (HOTEL, 29, False), (HOTEL, 30, True)]
)
def test_a_hold_expires_after_the_days_of_its_merchant(holder, merchant, days, ended):
    holder.authorize(100_00, merchant=merchant)
    due = holder.bank.now + timedelta(days=days)
    assert holder.about(commands.ExpireAuthorization, due=due, merchant=merchant)["approved_amount"] == 0
    assert (holder.row.status, holder.held.cash.reserved) == (("EXPIRED", 0) if ended else ("PENDING", 100_00))
    assert ("reversed" in holder.events()) == ended


@pytest.mark.parametrize(("is_late", "status", "reason"), [(False, "REVERSED", None), (True, "DECLINED", "TIMED_OUT")])
def test_the_reversal_of_a_late_approval_declines_it(holder, is_late, status, reason):
    holder.authorize(100_00)
    holder.about(commands.ReverseAuthorization, is_late=is_late)
    assert (holder.row.status, holder.row.reason) == (status, reason)


@pytest.mark.parametrize("amount", [None, 0, 5_00])
def test_a_reversal_before_its_authorization_takes_its_place_unless_it_is_of_nothing(holder, amount):
    holder.about(commands.ReverseAuthorization, amount=amount)
    assert holder.authorize(1_00)["reason"] == (None if amount == 0 else "DUPLICATE")


@pytest.mark.parametrize(
    ("cents", "is_final", "left", "status", "told"),
    [
        (40_00, True, 0, "CLEARED", ["reversed"]),
        (40_00, False, 60_00, "PENDING", []),
        (100_00, False, 0, "CLEARED", []),
        (130_00, False, 0, "CLEARED", []),
    ],
)
def test_a_record_debits_its_hold_and_releases_the_rest_of_a_final_one(holder, cents, is_final, left, status, told):
    holder.authorize(100_00)
    before = holder.held.outflow
    done = holder.record(commands.ClearCard, cents, is_final=is_final)
    assert (holder.held.outflow - before, holder.held.cash.reserved) == (cents, left)
    assert (holder.row.status, holder.row.remaining, holder.row.cleared) == (status, left, cents)
    assert holder.events()[2:] == told
    assert (done["status"], done["authorization_id"]) == ("POSTED", str(holder.row.authorization_id))


@pytest.mark.parametrize("reference", [None, "one"])
def test_a_record_without_a_hold_is_debited_with_the_event_of_an_approval(holder, reference):
    merchant = commands.Merchant(name="Shop", category_code="5411", city="Reno")
    done = holder.record(commands.ClearCard, 40_00, reference=reference, merchant=merchant)
    told = msgspec.json.decode(holder.bank.tables[TransactionEntry][-1].details)
    assert (told["location"], told["merchant_type"]) == ({"city": "Reno"}, None)
    assert holder.events() == ["approved"]
    assert (done["authorization_id"] is None) == (reference is None)


@pytest.mark.parametrize(
    ("first", "advised", "held", "owed"),
    [
        (None, 100_00, 100_00, 0),
        (100_00, 60_00, 100_00, 0),
        (100_00, 100_00, 100_00, 0),
        (100_00, 130_00, 130_00, 0),
        (MORE, 60_00, 60_00, 0),
        (None, MORE, MORE, ALL),
    ],
)
def test_an_advice_is_held_whatever_the_pocket_has(holder, first, advised, held, owed):
    owed = MORE - holder.payable if owed == ALL else 0
    if first:
        holder.authorize(first)
    told = holder.authorize(advised, is_advice=True)
    assert (told["decision"], told["approved_amount"]) == ("APPROVED", advised)
    assert (holder.row.remaining, holder.held.cash.reserved, holder.row.status) == (held, held, "PENDING")
    assert overdraft_of(holder.held) == owed
    holder.about(commands.ReverseAuthorization)
    assert (overdraft_of(holder.held), holder.held.cash.reserved) == (0, 0)


def test_an_advice_of_what_is_finished_holds_nothing(holder):
    holder.authorize(100_00)
    holder.record(commands.ClearCard, 100_00)
    holder.authorize(200_00, is_advice=True)
    assert (holder.row.status, holder.held.cash.reserved) == ("CLEARED", 0)


def test_a_purchase_is_charged_back_and_represented_up_to_its_amount(holder):
    holder.record(commands.ClearCard, 100_00)
    original = UUID(int=1)

    def dispute(kind, cents, number, **fields):
        return holder.record(kind, cents, number, original, original_id=original, **fields)["status"]

    with pytest.raises(Refused, match="more than is charged back"):
        dispute(commands.Represent, 1, 2)
    before = holder.held.inflow
    assert dispute(commands.ChargeBack, 60_00, 3) == "POSTED"
    assert holder.held.inflow - before == 60_00
    with pytest.raises(Refused, match="more than was paid"):
        dispute(commands.ChargeBack, 40_01, 4)
    assert dispute(commands.ChargeBack, 40_00, 4) == "POSTED"
    before = holder.held.outflow
    assert dispute(commands.Represent, 100_00, 5) == "POSTED"
    assert holder.held.outflow - before == 100_00
    with pytest.raises(NotFound):
        holder.record(commands.ChargeBack, 1, 6, UUID(int=3), original_id=UUID(int=3))
    settled = holder.bank.seen.of(holder.customer)[original].settles_on
    holder.until(settled + timedelta(days=120))
    assert dispute(commands.ChargeBack, 1_00, 7) == "POSTED"
    holder.until(settled + timedelta(days=121))
    with pytest.raises(Refused, match="more than 120 days"):
        dispute(commands.ChargeBack, 1_00, 8)


@pytest.mark.parametrize(("days", "is_held"), [(1, False), (2, True)])
def test_a_refund_that_settles_later_than_bills_is_invested_at_once_and_held_until_then(holder, days, is_held):
    holder.record(commands.RefundCard, 1_000_00, days=days)
    pocket, now = holder.held, holder.bank.now
    assert pocket.cash.balance < 100_00
    assert pocket.held_cents(now, holder.bank.calendars) == (1_000_00 if is_held else 0)
    assert (holder.payable < 1_000_00) == is_held
    told = holder.bank.tables[TransactionEntry][-1]
    assert (told.title, told.direction, told.amount) == ("Card refund", "CREDIT", 1_000_00)
    holder.until(date(2025, 6, 6))
    assert holder.payable > 1_990_00


def test_money_for_a_closed_pocket_is_not_booked(holder):
    holder.held.status = "CLOSED"
    assert holder.record(commands.RefundCard, 1_00)["status"] == "NO_POCKET"
    assert holder.authorize(1_00, is_advice=True)["authorization_id"] is None
    assert holder.held.cash.reserved == 0
