"""Books under any sequence of commands and days: what must hold after every single step."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.simulation.invariants import (
    check_bank,
    check_book,
    check_cards,
    check_chains,
    check_earnings,
    check_nothing_for_free,
    dealer_position,
    picture,
)
from tests.simulation.life import WEEKS, Life
from tests.simulation.memory_bank import MemoryBank
from tests.simulation.on_chains import OFF_CHAIN, PAYEE, of_withdrawal, transfer_on_chain, wallet_of
from tests.support.whole_bank import Commands, opened
from typing_extensions import override

from billfold.accounts.customers.commands import EnrolCustomer, SetCustomerState
from billfold.accounts.pockets.commands import SetPocketState, UpdatePocket
from billfold.accounts.portals.commands import OpenPortal
from billfold.bills.rules.market import Market
from billfold.ledger.book.postings import TradeEntry
from billfold.ledger.commands import Missing
from billfold.ledger.context import BankPolicy, Context
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.cards.authorizations.commands import (
    AuthorizeCard,
    ChargeBack,
    ClearCard,
    ExpireAuthorization,
    IncrementAuthorization,
    Merchant,
    RefundCard,
    Represent,
    ReverseAuthorization,
    references_of,
)
from billfold.payments.cards.commands import CreateVirtualCard
from billfold.payments.crypto.deposits.rules import (
    CreditDeposit,
    HoldReason,
    RecordUnbooked,
    RestoreDeposit,
    WriteOffDeposit,
)
from billfold.payments.crypto.withdrawals.rules import SendUsdc
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.calendars import Calendars
from billfold.platform.dates import ET, et_instant
from billfold.platform.errors import BillfoldError, NotFound, Refused
from billfold.platform.ids import command_id, derive
from billfold.sandbox.chain.faucet import CHAIN_NAME
from billfold.sandbox.simulated_providers import SimulatedScreening
from billfold.treasury.rules.catch_up import catch_up

SHOP = Merchant(name="Shop", category_code="5411")
MESSAGES = (AuthorizeCard, AuthorizeCard, IncrementAuthorization, ReverseAuthorization)
IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")

CALENDARS = Calendars()
MARKET = Market.packaged(CALENDARS)
START = datetime(2025, 6, 2, 13, tzinfo=UTC)
TERMS = BankPolicy(routing_number="091000019", ach_credit_hold_days=2, screening=SimulatedScreening())

cents = st.one_of(
    st.integers(1, 300),
    st.integers(9_000, 11_000),
    st.integers(1, 100_000_000),
    st.integers(1, 10**6).map(lambda dollars: dollars * 100),
)


parts = st.integers(1, 101)
purchases = st.integers(1, 3)
places = st.integers(0, 1_000)
PLACES = 8


class Books(RuleBasedStateMachine, Commands):
    """Customers with pockets; each command is planned, rolled back, and planned again."""

    @initialize(
        strategies=st.lists(st.tuples(st.sampled_from(WEEKS), st.sampled_from((4, None, 13))), min_size=4, max_size=5),
        dollars=st.lists(st.integers(1, 10**6), min_size=4, max_size=4),
    )
    def found(self, strategies, dollars):
        self.bank = MemoryBank(MARKET, CALENDARS, TERMS, seed=b"seed of the machine", now=START)
        self.count = 0
        self.places, self.cleared, self.wallets, self.payees = [], [], [], {}
        self.arrived, self.sent = [], []
        self.bank.submit(Life(self.bank, 0).found())
        for number in range(2):
            self.enrol(self.customer(number))
        for number, (weeks, again) in enumerate(strategies):
            self.open(number % 2, weeks, again)
        for number in range(2):
            details = {"chain": CHAIN_NAME, "wallet_address": PAYEE, "asset": "USDC"}
            payee = self.add_counterparty(
                self.customer(number), "crypto_wallet_address", details=details, verification="linking_provider"
            )
            self.payees[self.customer(number)] = UUID(payee["counterparty_id"])
        for place, amount in enumerate(dollars):
            self.deposit(place, amount * 100, "WIRE")

    # -- people ---------------------------------------------------------------------

    @staticmethod
    def customer(number):
        return derive(b"machine", command_id("machine", f"customer {number}"), 0)

    def open(self, number, weeks, again):
        customer = self.customer(number)
        outcome = self.open_pocket(customer, weeks=weeks, reinvest=again)
        if not isinstance(outcome, BillfoldError):
            self.places.append(opened(customer, outcome))
            card = {"card_id": self.card_of(self.places[-1]), "pocket_id": self.places[-1].id}
            self.submit(CreateVirtualCard, customer, **card, name="", last_four="4242", expires_on=date(2029, 6, 30))
            wallet = wallet_of(len(self.places))
            on_chain = self.submit(OpenPortal, customer, pocket_id=self.places[-1].id, name="On chain", wallet=wallet)
            self.wallets.append((self.places[-1]._replace(portal=UUID(on_chain["portal_id"])), wallet.address))

    @precondition(lambda self: len(self.places) < PLACES)
    @rule(number=st.integers(0, 1), weeks=st.sampled_from(WEEKS), again=st.sampled_from((*WEEKS, None)))
    def another(self, number, weeks, again):
        self.open(number, weeks, again)

    @rule(place=places, status=st.sampled_from(("OPEN", "OPEN", "FROZEN")))
    def freeze(self, place, status):
        customer, pocket, _ = self.at(place)
        self.submit(SetPocketState, customer, pocket_id=pocket, status=status)

    @rule(number=st.integers(0, 1), status=st.sampled_from(("OPEN", "OPEN", "FROZEN")))
    def freeze_customer(self, number, status):
        self.submit(
            SetCustomerState,
            self.customer(number),
            references=(self.customer(number),),
            status=status,
            reason="an order",
        )

    @rule(place=places, weeks=st.sampled_from((*WEEKS, None)))
    def reinvest(self, place, weeks):
        customer, pocket, _ = self.at(place)
        self.submit(UpdatePocket, customer, pocket_id=pocket, reinvestment_weeks=weeks, keep_reinvestment=False)

    @rule(place=places, there=places)
    def empty_and_close(self, place, there):
        customer, pocket, _ = self.at(place)
        self.transfer(self.at(place), self.at(there), None)
        self.submit(UpdatePocket, customer, pocket_id=pocket, close_for="not needed", references=(pocket,))

    def at(self, place):
        return self.places[place % len(self.places)]

    # -- money ----------------------------------------------------------------------

    @rule(place=places, amount=cents, rail=st.sampled_from(("WIRE", "ACH")))
    def deposit(self, place, amount, rail):
        self.receive_money(self.at(place), amount, rail=rail)

    @rule(origin=places, there=places, amount=st.one_of(cents, st.none()))
    def pay(self, origin, there, amount):
        frozen = self.bank.books[self.at(origin).customer].account_status == "FROZEN"
        paid = self.transfer(self.at(origin), self.at(there), amount)
        assert isinstance(paid, BillfoldError) or not frozen

    @rule(origin=places, there=places, part=parts)
    def pay_part(self, origin, there, part):
        self.transfer(self.at(origin), self.at(there), self.part_of(origin, part))

    @rule(origin=places, other=places, part=st.one_of(parts, st.none()))
    def move_bills(self, origin, other, part):
        own = [place for place in self.places if place.customer == self.at(origin).customer]
        amount = None if part is None else self.part_of(origin, part)
        self.transfer(self.at(origin), own[other % len(own)], amount, order=IN_KIND)

    @rule(origin=places, there=places, part=parts)
    def pay_in_two_steps(self, origin, there, part):
        places, amount = (self.at(origin), self.at(there)), self.part_of(origin, part)
        outcome = self.transfer(*places, cents=amount, later=True)
        if not isinstance(outcome, BillfoldError):
            waiting = UUID(outcome["transfer_id"])
            self.transfer(*places, cents=amount, later=True, accepted=True, transfer_id=waiting)

    # -- cards ------------------------------------------------------------------------

    @staticmethod
    def card_of(place):
        return derive(b"card", place.id, 0)

    def about_card(self, kind, place, purchase, *others, **fields):
        """Submit a command about a card or one of its purchases."""
        card_id, reference = self.card_of(self.at(place)), None if purchase is None else str(purchase)
        return self.submit(
            kind,
            self.at(place).customer,
            references=references_of(card_id, reference, *others),
            card_id=card_id,
            network_reference=reference,
            **fields,
        )

    @rule(place=places, purchase=purchases, kind=st.sampled_from(MESSAGES), amount=cents, is_advice=st.booleans())
    def message(self, place, purchase, kind, amount, is_advice):
        fields = {AuthorizeCard: {"is_advice": is_advice, "is_partial_allowed": True}}.get(kind, {})
        self.about_card(kind, place, purchase, amount=amount, merchant=SHOP, **fields)

    @rule(place=places, purchase=purchases, days=st.integers(-1, 31))
    def expire(self, place, purchase, days):
        due = self.bank.now + timedelta(days=days)
        self.about_card(ExpireAuthorization, place, purchase, merchant=SHOP, due=due)

    @rule(place=places, purchase=st.one_of(purchases, st.none()), amount=cents, is_final=st.booleans())
    def clear(self, place, purchase, amount, is_final):
        record = self.record(place, amount)
        self.about_card(ClearCard, place, purchase, merchant=SHOP, is_final=is_final, **record)
        self.cleared.append((place, record["record_id"]))

    @rule(place=places, amount=cents)
    def refund(self, place, amount):
        self.about_card(RefundCard, place, None, merchant=SHOP, **self.record(place, amount))

    @precondition(lambda self: self.cleared)
    @rule(nth=places, kind=st.sampled_from((ChargeBack, Represent)), amount=cents)
    def dispute(self, nth, kind, amount):
        place, original = self.cleared[nth % len(self.cleared)]
        self.about_card(kind, place, None, original, original_id=original, **self.record(place, amount))

    def record(self, place, amount):
        settles_on = CALENDARS.add_fed_days(self.bank.now.date(), 2)
        number = derive(b"record", command_id("machine", str(self.count)), 0)
        return {"record_id": number, "amount": amount, "settles_on": settles_on}

    # -- chains -----------------------------------------------------------------------

    @rule(place=places, units=st.integers(1, 3_000_000), is_doubted=st.booleans())
    def arrive(self, place, units, is_doubted):
        place, address = self.wallets[place % len(self.wallets)]
        deposit, deposit_id = transfer_on_chain(self.count, address, units), derive(b"deposit", place.id, self.count)
        about = {"portal_id": place.portal, "pocket_id": place.id, "deposit": deposit, "deposit_id": deposit_id}
        about |= {"references": (deposit_id, place.portal)}
        self.arrived.append((place.customer, about))
        doubt = {"amount": 0, "reason": HoldReason.BALANCE_DIFFERS}
        kind, fields = (RecordUnbooked, doubt) if is_doubted else (CreditDeposit, {})
        self.submit(kind, place.customer, **about, **fields)

    @precondition(lambda self: self.arrived)
    @rule(nth=places, kind=st.sampled_from((CreditDeposit, WriteOffDeposit, RestoreDeposit)))
    def arrived_goes_on(self, nth, kind):
        customer, about = self.arrived[nth % len(self.arrived)]
        if kind is CreditDeposit:
            self.submit(kind, customer, **about, is_released=True)
            return
        block = {"block_number": self.count, "block_hash": str(self.count), "log_index": 0}
        about = {name: about[name] for name in ("deposit_id", "references")}
        fields = about | (block if kind is RestoreDeposit else {})
        self.submit(kind, customer, bank_customer_id(self.bank.seed), **fields)

    @rule(place=places, part=parts, approved=st.booleans())
    def send_usdc(self, place, part, approved):
        customer, pocket, _ = self.at(place)
        payee, withdrawal_id = self.payees[customer], derive(b"usdc", pocket, self.count)
        fields = {"counterparty_id": payee, "references": (payee,), "approved": approved}
        sent = {"withdrawal_id": withdrawal_id, "pocket_id": pocket, "amount": self.part_of(place, part)}
        outcome = self.submit(SendUsdc, customer, **sent, **fields)
        if not isinstance(outcome, BillfoldError) and outcome["status"] == "PENDING":
            self.sent.append((customer, withdrawal_id))

    @precondition(lambda self: self.sent)
    @rule(nth=places, kind=st.sampled_from(OFF_CHAIN))
    def usdc_goes_on(self, nth, kind):
        customer, withdrawal_id = self.sent[nth % len(self.sent)]
        self.submit(kind, customer, **of_withdrawal(kind, withdrawal_id))

    def part_of(self, origin, part):
        place = self.at(origin)
        pocket = self.bank.books[place.customer].pockets[place.id]
        worth = pocket.cash.balance + sum(units * 9_990 for _, units in pocket.positions())
        return max(1, worth * part // 100)

    # -- time -------------------------------------------------------------------------

    @rule(minutes=st.integers(1, 600))
    def minutes(self, minutes):
        self.bank.advance(self.bank.now + timedelta(minutes=minutes))

    @rule(days=st.integers(1, 40), hour=st.sampled_from((0, 7, 8, 9, 12, 15, 17, 20)))
    def days(self, days, hour):
        day = self.bank.now.astimezone(ET).date() + timedelta(days=days)
        self.bank.advance(et_instant(day, hour))

    @rule(hours=st.integers(1, 800))
    def nobody_looks(self, hours):
        """Advance the time without a worker; the next command does the due work."""
        self.bank.now += timedelta(hours=hours)

    # -- one command -------------------------------------------------------------------

    @override
    def submit(self, kind, *customers, **fields):
        """Plan a command, roll it back, check that nothing is left, and execute it."""
        self.count += 1
        command = kind(
            caller="machine",
            key=command_id("machine", str(self.count)),
            customers=customers,
            request_hash=b"%d" % self.count,
            **fields,
        )
        is_idle = all(book.due_at is None or book.due_at > self.bank.now for book in self.bank.books.values())
        position, trades = dealer_position(self.bank), len(self.bank.tables[TradeEntry])
        rehearsed = self.rehearse(command)
        try:
            outcome = self.bank.submit(command).outcome
        except BillfoldError as refused:
            assert rehearsed is None or refused.code == rehearsed["refused"]
            return refused
        assert rehearsed is None or rehearsed == {name: outcome[name] for name in outcome if name != "proves"}
        if is_idle:
            check_nothing_for_free(self.bank, position, len(self.bank.tables[TradeEntry]) - trades)
        assert self.bank.submit(command).replayed
        with pytest.raises(Refused):
            self.bank.submit(msgspec.structs.replace(command, request_hash=b"another"))
        return outcome

    def rehearse(self, command):
        if isinstance(command, EnrolCustomer):
            return None
        ctx = Context(now=self.bank.now, market=MARKET, calendars=CALENDARS, terms=TERMS, seed=self.bank.seed)
        own = {customer: self.bank.books[customer] for customer in command.customers}
        for book in own.values():
            book.referenced = self.bank.seen.of(book.customer_id) if command.references else {}
            catch_up(book, ctx)
            book.savepoint()
        before = [picture(book) for book in own.values()]
        ctx.serve(command.command_id)
        try:
            outcome = command.decide(own, ctx)
        except (Refused, NotFound) as refused:
            outcome = {"refused": refused.code}
        except Missing:
            pytest.fail("every customer of the command is there")
        for book in own.values():
            book.undo()
        assert [picture(book) for book in own.values()] == before
        return outcome

    # -- always -------------------------------------------------------------------------

    @invariant()
    def books_are_whole(self):
        if not hasattr(self, "bank"):
            return
        for book in self.bank.books.values():
            check_book(book)
            for pocket in book.pockets.values():
                check_earnings(pocket, MARKET, self.bank.now)
        check_bank(self.bank)
        check_cards(self.bank)

    @override
    def teardown(self):
        if hasattr(self, "bank"):
            check_chains(self.bank)


Books.TestCase.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestBooks = Books.TestCase
