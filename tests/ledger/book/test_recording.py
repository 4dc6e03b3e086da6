"""Every implemented cause raises its event once, with the ids of its objects."""

import json
import tomllib
from datetime import date
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.architecture.movements_of_crypto import chain_deposit
from tests.architecture.pages import text_of
from tests.fixtures.teller import Teller
from tests.payments.wires.rules.test_send import PAYEE as PAID
from tests.payments.wires.rules.test_send import payee, send
from tests.payments.wires.rules.test_status import IMAD, seen

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.customers.commands import EnrolCustomer
from billfold.accounts.pockets.commands import OpenPocket, SetPocketState
from billfold.accounts.portals.commands import OpenPortal, UpdatePortal, Wallet
from billfold.events.kinds import KINDS
from billfold.ledger.book.postings import EventEntry, TradeEntry, TransactionEntry
from billfold.onboarding.applications.rules.status import EVENTS, ReportApplication
from billfold.payments.ach.commands import MarkAchTransmitted, OriginateAch, ReceiveAchReturn, SettleAch
from billfold.payments.cards.authorizations.commands import AuthorizeCard, Merchant, ReverseAuthorization, references_of
from billfold.payments.cards.commands import CardStatus, CloseCard, CreateVirtualCard, FreezeCard, SetCardStatus
from billfold.payments.clearing.rules import MovedPocket, ReportMoves
from billfold.payments.crypto.deposits.rules import CreditDeposit
from billfold.payments.crypto.withdrawals.rules import CompleteWithdrawal, RejectWithdrawal, SendUsdc
from billfold.payments.on_us.commands import TransferOnUs, TransferOrder
from billfold.payments.wires.commands import CompleteWire, HoldWire, RejectWire, SubmitWire
from billfold.platform.ids import command_id, derive
from billfold.reports.rules import AnnounceRoot, FinishReport

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")

PAYEE = derive(b"teller", command_id("teller", "payee"), 0)
PARTNER = UUID(int=1)
LATER = UUID(int=2)


class Witness(Teller):
    """Reads the events raised by a command."""

    def __init__(self):
        super().__init__()
        self.read = 0

    def told(self):
        """Return the events raised since the last call, as (owner, kind, payload), by kind."""
        rows = self.bank.tables[EventEntry][self.read :]
        self.read += len(rows)
        told = [(row.customer_id, row.kind, json.loads(row.payload)) for row in rows]
        return sorted(told, key=lambda each: each[1])

    def refuse(self, portal_id):
        """Close a portal that was opened in addition to the first."""
        self.do(UpdatePortal, portal_id=portal_id, close=True)

    def pay(self, origin, to, cents, **fields):
        """Pay the other customer."""
        return self.do(
            TransferOnUs,
            PAYEE,
            type="PEER_TO_PEER",
            from_pocket_id=origin.pocket_id,
            to_pocket_id=to,
            amount=cents,
            partner_id=PARTNER,
            **{"transfer_id": None, **fields},
        )

    def send_wires(self, origin):
        """Send two wires: one settles, the other is rejected."""
        for kind, fields in ((CompleteWire, {}), (RejectWire, {"code": "AC04"})):
            self.book.referenced = {PAID: payee()}
            send(self, origin, 10_00)
            self.do(HoldWire, wire_id=seen(self))
            self.do(SubmitWire, wire_id=seen(self), imad=IMAD)
            self.do(kind, wire_id=seen(self, status="PROCESSING"), **fields)

    def send_usdc(self, pocket):
        """Send USDC twice; one is paid, the other rejected."""
        wallet = {"chain": "BASE", "wallet_address": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "asset": "USDC"}
        added = self.do(
            AddCounterparty,
            type="crypto_wallet_address",
            verification="linking_provider",
            is_screened=True,
            counterparty_name={"type": "business", "business_name": "Beta LLC"},
            details=wallet,
        )
        payee = UUID(added["counterparty_id"])
        order: dict[str, Any] = {"counterparty_id": payee, "references": (payee,), "pocket_id": pocket.pocket_id}
        ends: dict[Any, dict[str, str]] = {
            CompleteWithdrawal: {"transaction_hash": "0x01"},
            RejectWithdrawal: {"reason": "INVALID_TRANSFER"},
        }
        for number, (kind, fields) in enumerate(ends.items(), 5):
            withdrawal_id = UUID(int=number)
            self.do(SendUsdc, withdrawal_id=withdrawal_id, amount=1_00, **order)
            self.do(kind, withdrawal_id=withdrawal_id, references=(withdrawal_id,), **fields)

    def mark_transmitted(self, pocket):
        """Send two ACH credits; one settles, one comes back."""
        payee = self.do(
            AddCounterparty,
            type="ach",
            verification="pre_verified",
            is_screened=True,
            counterparty_name={"type": "business", "business_name": "Beta LLC"},
            details={"routing_number": "021000021", "account_number": "5647772655", "account_type": "CHECKING"},
        )["counterparty_id"]
        both = UUID(int=3), UUID(int=4)
        for ach_id in both:
            self.do(
                OriginateAch,
                ach_id=ach_id,
                pocket_id=pocket.pocket_id,
                amount=10_00,
                counterparty_id=UUID(payee),
                direction="CREDIT",
                sec_code="PPD",
                description="PAYROLL",
                references=(UUID(payee),),
            )
        self.do(MarkAchTransmitted, ach_ids=both, references=both)
        self.do(SettleAch, ach_ids=both[:1], references=both)
        self.do(
            ReceiveAchReturn,
            ach_id=both[1],
            code="R03",
            direction="CREDIT",
            amount=10_00,
            trace="1",
            references=both,
            arrived_at=self.bank.now,
        )

    def use_card(self, pocket):
        """Create a card, pay with it once and once too much, switch it off, freeze and close it."""
        about: dict[str, Any] = {"card_id": LATER, "references": (LATER,)}
        issued = {"last_four": "4242", "expires_on": date(2029, 6, 30)}
        self.do(CreateVirtualCard, card_id=LATER, pocket_id=pocket.pocket_id, name="A", **issued)
        payment: dict[str, Any] = {"card_id": LATER, "merchant": Merchant(name="A", category_code="5411")}
        for kind, number, cents in (
            (AuthorizeCard, "1", 1_00),
            (AuthorizeCard, "2", 1_04),
            (ReverseAuthorization, "1", 1),
        ):
            named = {"network_reference": number, "references": references_of(LATER, number)}
            self.do(kind, amount=cents, **payment, **named)
        self.do(SetCardStatus, status=CardStatus.OFFLINE, **about)
        self.do(FreezeCard, is_frozen=True, **about)
        self.do(CloseCard, **about)

    def deposit_on_chain(self, pocket):
        """Open a crypto portal and let tokens arrive at it."""
        wallet = Wallet(chain="ETHEREUM", address="0xR", asset="USDC", xpub_id=1, index=0)
        portal_id = UUID(self.do(OpenPortal, pocket_id=pocket.pocket_id, name="On chain", wallet=wallet)["portal_id"])
        about = {"deposit_id": LATER, "portal_id": portal_id, "references": (LATER, portal_id)}
        self.do(CreditDeposit, pocket_id=pocket.pocket_id, deposit=chain_deposit(5_00), **about)

    def payee(self):
        """Return the Pocket of another customer."""
        who: dict[str, Any] = {"caller": "payee", "customers": (PAYEE,), "partner_id": PARTNER}
        self.bank.submit(
            EnrolCustomer(key=UUID(int=1), role="customer", type="BUSINESS", name="B", profile=None, **who)
        )
        opened = self.bank.submit(OpenPocket(key=UUID(int=2), name="In", deposit_weeks=4, reinvestment_weeks=4, **who))
        return UUID(opened.outcome["pocket_id"])


@pytest.fixture
def teller():
    return Witness()


@pytest.mark.parametrize(("rail", "name"), [("WIRE", "wire"), ("ACH", "ach")])
def test_deposits_and_their_returns_raise_events(teller, rail, name):
    pocket = teller.pocket()
    assert [kind for _, kind, _ in teller.told()] == ["pocket.created", "portal.created"]
    teller.deposit(pocket, 1_000_00, rail)
    about = {"service_account_id": str(pocket.pocket_id), f"{name}_id": str(command_id("teller", str(teller.count)))}
    assert teller.told() == [(teller.customer, f"transfers.{name}.in.success", about)]
    teller.refuse(teller.portals[pocket.pocket_id])
    assert teller.deposit(pocket, 1_000_00, rail)["status"] == "REJECTED"
    about[f"{name}_id"] = str(command_id("teller", str(teller.count)))
    closed, rejected = teller.told()
    assert closed[1] == "portal.updated"
    assert rejected == (teller.customer, f"transfers.{name}.in.rejected", about)


def test_a_payment_raises_one_event_for_payer_and_one_for_payee(teller):
    pocket, to = teller.pocket(), teller.payee()
    teller.deposit(pocket, 1_000_00)
    teller.told()
    done = teller.pay(pocket, to, 10_00)
    received, paid = teller.told()
    assert received[:2] == (PAYEE, "transfers.on-us.received")
    assert received[2]["receiving_pocket_id"] == str(to)
    last = teller.bank.tables[TransactionEntry][-1]
    assert received[2]["transaction_activity_id"] == str(last.activity_id)
    assert paid == (
        teller.customer,
        "transfers.on-us.success",
        {
            "on_us_id": done["transfer_id"],
            "origin_account_id": str(pocket.pocket_id),
            "destination_account_id": str(to),
        },
    )
    assert received[2]["on_us_id"] == done["transfer_id"]


LATE, FROZEN = {"transfer_id": LATER, "later": True}, "the Pocket is frozen"
REJECTED = ["rejected"]


@pytest.mark.parametrize(
    "steps",
    [
        [(LATE, ["processing"]), ({**LATE, "accepted": True}, ["received", "success"])],
        [(LATE, ["processing"]), FROZEN, ({**LATE, "accepted": True}, REJECTED)],
        [({"approved": True, "transfer_id": LATER}, ["processing", "received", "success"])],
        [FROZEN, ({"approved": True, "transfer_id": LATER}, ["processing", "rejected"])],
        [({"cents": 999_999_00}, REJECTED)],
    ],
)
def test_every_transfer_status_change_raises_its_events(teller, steps):
    pocket, to = teller.pocket(), teller.payee()
    teller.deposit(pocket, 1_000_00)
    for step in steps:
        teller.told()
        if step is FROZEN:
            teller.do(SetPocketState, pocket_id=pocket.pocket_id, status="FROZEN")
            continue
        fields, expected = step
        teller.pay(pocket, to, **{"cents": 10_00, **fields})
        told = teller.told()
        assert [kind.removeprefix("transfers.on-us.") for _, kind, _ in told] == expected
        assert all((whose == PAYEE) == kind.endswith("received") for whose, kind, _ in told)
        if "transfer_id" in fields:
            assert {payload["on_us_id"] for _, _, payload in told} == {str(LATER)}


def test_a_transfer_between_own_pockets_raises_only_the_success_event(teller):
    pocket, other = teller.pocket(), teller.pocket()
    teller.deposit(pocket, 1_000_00)
    teller.told()
    for fields in ({}, {"order": IN_KIND}):
        teller.move(pocket, other, 100_00, **fields)
        assert [kind for _, kind, _ in teller.told()] == ["transfers.on-us.success"]


def test_a_maturity_raises_an_event_with_its_trade(teller):
    pocket = teller.pocket(reinvest=None)
    teller.deposit(pocket, 1_000_00)
    cusip = pocket.positions()[0][0]
    teller.told()
    teller.bank.advance(teller.bank.calendars.matures_at(pocket.lots[0].maturity))
    matured = next(row for row in teller.bank.tables[TradeEntry] if row.activity == "MATURITY")
    about = {"trade_id": str(matured.trade_id), "pocket_id": str(pocket.pocket_id), "cusip": cusip}
    assert teller.told() == [(teller.customer, "trades.maturity", about)]


def test_a_simulated_life_raises_every_event_kind_not_listed_as_unraised(teller):
    pocket, other, to = teller.pocket(), teller.pocket(reinvest=None), teller.payee()
    for rail in ("WIRE", "ACH"):
        teller.deposit(pocket, 1_000_00, rail)
        teller.deposit(other, 1_000_00, rail)
    teller.refuse(teller.portals[other.pocket_id])
    for rail in ("WIRE", "ACH"):
        teller.deposit(other, 1_000_00, rail)
    teller.pay(pocket, to, 999_999_00)
    for accepted in (False, True):
        teller.pay(pocket, to, 10_00, transfer_id=LATER, later=True, accepted=accepted)
    teller.send_wires(pocket)
    teller.mark_transmitted(pocket)
    teller.send_usdc(pocket)
    teller.use_card(pocket)
    teller.deposit_on_chain(pocket)
    teller.do(AnnounceRoot, day=date(2025, 6, 2), root="a.b.c")
    teller.do(ReportMoves, day=date(2025, 6, 3), pockets=(MovedPocket(pocket.pocket_id, date(2025, 6, 4)),))
    for status in EVENTS:
        teller.do(ReportApplication, application_id=LATER, status=status)
    for report_id in (None, LATER):
        teller.do(FinishReport, report_request_id=LATER, report_id=report_id)
    teller.bank.advance(teller.bank.calendars.matures_at(other.lots[0].maturity))
    told = teller.told()
    unraised = set(tomllib.loads(text_of("docs/unraised.toml"))["events"])
    families = ("hold.", "transfers.series.", "batches.", "customer.", "team.", "policy.")
    elsewhere = {kind for kind in KINDS if kind.startswith(families)}
    elsewhere |= {
        "card.dispute.updated",
        "card.limits.updated",
        "counterparty.updated",
        "pocket.updated",
        "statements.available",
    }
    elsewhere |= {"transfers.on-us.reversal.updated", "transfers.request.updated"}
    assert {kind for _, kind, _ in told} == set(KINDS) - unraised - elsewhere
    for _, kind, payload in told:
        msgspec.convert(payload, KINDS[kind].payload, str_keys=True)
