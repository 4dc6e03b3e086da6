"""Every movement of money and its related rows, under its name in the tables of docs/domain/movements.md."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from tests.architecture.movements_of_cards import (
    play_card_holds,
    play_card_records,
    play_card_settlement,
    play_cards,
    play_disputes,
)
from tests.architecture.movements_of_crypto import play_crypto
from tests.architecture.movements_of_desk import play_desk
from tests.architecture.movements_of_rails import (
    play_ach,
    play_incoming_ach,
    play_reviews,
    play_wires,
    play_withdrawals,
)
from tests.architecture.movements_of_reconciliation import play_reconciliation
from tests.architecture.movements_of_reversals import play_reversals
from tests.architecture.stage import LATER, Stage, noted_calls
from tests.fixtures.market import know_through

from billfold.accounts.agreements.rules import AcceptAgreements, AcceptedBy, Consent
from billfold.accounts.counterparties.commands import (
    AddCounterparty,
    ConfirmDeposits,
    CorrectAccount,
    DecideVerification,
    ExpireVerification,
    FailVerification,
    SettleLink,
    SettleScreening,
    UpdateCounterparty,
)
from billfold.accounts.counterparties.rules.verification_kinds import Account
from billfold.accounts.counterparties.types import SanctionsStatus
from billfold.accounts.customers.commands import CloseCustomer, SetCustomerState, UpdateCustomer
from billfold.accounts.holds.commands import ExpireHold, PlaceHold, ReleaseHold
from billfold.accounts.notes.commands import Annotate
from billfold.accounts.pockets.commands import SetPocketState, UpdatePocket
from billfold.accounts.portals.commands import OpenPortal, UpdatePortal
from billfold.approvals.series.commands import ReportRun, ReportState
from billfold.batches.commands import CommandList, CounterpartyList, ReportBatch
from billfold.events.commands import ReportChange
from billfold.ledger.book.notes import Note
from billfold.ledger.scheduler import CatchUp
from billfold.ledger.types import Agreements, AgreementTerms
from billfold.onboarding.applications.rules.status import ReportApplication
from billfold.onboarding.applications.types import ApplicationStatus
from billfold.payments.ach.commands import SendMicroDeposits
from billfold.payments.adjustments.rules import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.clearing.rules import CloseBankDay, MovedPocket, RailTotals, ReportMoves, SettlementBlock
from billfold.payments.custody.rules import DeliverBills, EndDelivery, ReceiveBills
from billfold.payments.files.rules import CloseRailFile
from billfold.payments.on_us.commands import TransferOnUs, TransferOrder
from billfold.payments.suspense.rules import AssignFromSuspense, HoldInSuspense, ReturnFromSuspense
from billfold.reports.rules import AnnounceRoot, FinishReport
from billfold.treasury.rules.catch_up import InvestWaitingCash, RescheduleDueWork

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")
BILL = "912797PT8"
AGREEMENTS = Agreements([AgreementTerms("2025-06-01", None)])
CONSENT = Consent(version="2025-06-01", accepted_at=datetime(2025, 6, 2, tzinfo=UTC), accepted_by=AcceptedBy.USER)


def play_all(functions):
    """Return the traces of each movement by its title; only calls of these functions are recorded."""
    rows: dict[str, object] = {}
    with noted_calls(functions) as calls:
        for play in PLAYS:
            play(lambda **terms: Stage(rows, calls, **terms))
    return rows


def _play_reports(stage, anna, pocket):
    with stage.row("Daily root announced"):
        stage.submit(AnnounceRoot, anna, day=date(2025, 5, 28), root="a.b.c")
    with stage.row("Run of a series reported"):
        stage.submit(ReportRun, anna, series_id=pocket, run_on=date(2025, 5, 28), reason=None)
    with stage.row("State of a series reported"):
        stage.submit(ReportState, anna, series_id=pocket, state="PAUSED")
    with stage.row("Change reported"):
        stage.submit(ReportChange, anna, event_kind="team.member.updated", payload="{}")
    with stage.row("Note changed"):
        note = {"noted": pocket, "attached": Note(external_id="v1:sealed", key=stage.number())}
        stage.bank.submit(Annotate(caller="teller", key=stage.number(), customers=(anna,), kind="pocket", **note))
    with stage.row("Batch reported"):
        stage.submit(ReportBatch, anna, completed=2, failed=1, refused=False)
    with stage.row("Application moved"):
        stage.submit(ReportApplication, anna, application_id=pocket, status=ApplicationStatus.APPROVED)


def play_arrivals(new_stage):
    stage = new_stage(ach_credit_hold_days=2)
    with stage.row("Customer enrolled"):
        anna = stage.new_customer("Anna")
    with stage.row("Pocket opened"):
        pocket = stage.new_pocket(anna)
    with stage.row("Incoming wire"):
        stage.receive_money(pocket, 5_000_000_00)
    with stage.row("Incoming ACH credit"):
        stage.receive_money(pocket, 50_000_00, rail="ACH")
    with stage.row("No work due"):
        stage.submit(CatchUp, anna)
    _play_reports(stage, anna, pocket)
    with stage.row("Day end of a pocket"):
        stage.catch_up(anna, date(2025, 5, 29), 18)
    stage.until(date(2025, 6, 2), 20)
    with stage.row("Deposit after hours"):
        stage.receive_money(pocket, 50_000_00)
    with stage.row("Waiting cash invested"):
        stage.catch_up(anna, date(2025, 6, 3), 9)
    know_through(stage.bank, date(2025, 6, 2))
    stage.until(date(2025, 6, 4))
    stage.receive_money(pocket, 50_000_00)
    know_through(stage.bank, date(2025, 7, 1))
    with stage.row("Waiting cash invested when there is market data"):
        stage.submit(InvestWaitingCash, anna)
    stage.until(date(2025, 6, 30), 18)
    with stage.row("Fee"):
        stage.catch_up(anna, date(2025, 7, 1), 8)


def play_maturities(new_stage):
    for title, weeks in (("Maturity, reinvested", 4), ("Maturity, not reinvested", None)):
        stage = new_stage()
        anna, pocket = stage.rich(reinvest=weeks)
        stage.until(date(2025, 6, 23), 18)
        with stage.row(title):
            stage.catch_up(anna, date(2025, 6, 24), 9)
        with stage.row("Report finished"):
            stage.submit(FinishReport, anna, report_request_id=anna)
        with stage.row("Due work rescheduled"):
            stage.submit(RescheduleDueWork, anna)
        with stage.row("Moved settlements reported"):
            moved = MovedPocket(pocket.id, date(2025, 6, 26))
            stage.submit(ReportMoves, anna, day=date(2025, 6, 25), pockets=(moved,))


def play_accounts(new_stage):
    stage = new_stage(agreements=AGREEMENTS)
    anna = stage.new_customer("Anna")
    pocket, other = stage.new_pocket(anna), stage.new_pocket(anna)
    with stage.row("Agreements accepted"):
        stage.submit(AcceptAgreements, anna, consent=CONSENT)
    with stage.row("Customer updated"):
        stage.submit(UpdateCustomer, anna, profile=None)
    with stage.row("Portal opened"):
        portal = UUID(stage.submit(OpenPortal, anna, pocket_id=pocket.id, name="Another")["portal_id"])
    with stage.row("Portal updated or closed"):
        stage.submit(UpdatePortal, anna, portal_id=portal, close=True)
    with stage.row("Deposit to a closed portal rejected"):
        assert stage.receive_money(pocket._replace(portal=portal), 50_000_00)["status"] == "REJECTED"
    with stage.row("Pocket updated or closed"):
        stage.submit(UpdatePocket, anna, pocket_id=other.id, name="Another", close_for="not needed")
    with stage.row("Pocket frozen"):
        stage.submit(SetPocketState, anna, pocket_id=pocket.id, status="FROZEN")
    with stage.row("Customer frozen"):
        stage.submit(SetCustomerState, anna, status="FROZEN", reason="Court order")
    bert = stage.new_customer("Bert")
    spent = stage.new_pocket(bert)
    stage.receive_money(spent, 90_00)
    stage.until(date(2025, 9, 8))
    stage.new_pocket(bert)
    with stage.row("Rest of a pocket paid out on closing"):
        stage.submit(UpdatePocket, bert, pocket_id=spent.id, close_for="not needed")
    bert = stage.new_customer("Another Bert")
    stage.new_pocket(bert)
    with stage.row("Customer closed"):
        stage.submit(CloseCustomer, bert, reason="moved away")


def play_payments(new_stage):
    stage = new_stage()
    anna, pocket = stage.rich()
    bert = stage.new_customer("Bert")
    second, theirs = stage.new_pocket(anna), stage.new_pocket(bert)
    with stage.row("Transfer rejected", anna):
        stage.transfer(pocket, theirs, 999_999_00)
    with stage.row("Transfer accepted for later"):
        stage.transfer(pocket, theirs, 1_00, later=True)
    with stage.row("Transfer between own pockets"):
        stage.transfer(pocket, second, 10_000_00)
    with stage.row("Rows of an atomic batch, here of one transfer between own Pockets"):
        own = {"type": "INTERNAL_REALLOCATION", "from_pocket_id": pocket.id, "to_pocket_id": second.id}
        keys = {"caller": "teller", "key": stage.number(), "transfer_id": stage.number(), "partner_id": stage.number()}
        part = TransferOnUs(**keys, **own, customers=(anna,), amount=10_000_00)
        stage.submit(CommandList, anna, parts=(part,))
    with stage.row("Transfer in kind between own pockets"):
        stage.transfer(pocket, second, 10_000_00, order=IN_KIND)
    with stage.row("On-us payment, payer", anna), stage.row("On-us payment, payee", bert):
        stage.transfer(pocket, theirs, 50_000_00)
    stage.until(LATER)
    with stage.row("On-us payment of the whole balance", anna):
        stage.transfer(pocket, theirs, None)
    held = {"pocket_id": second.id, "amount": 1_00, "until": datetime(2025, 6, 11, 13, tzinfo=UTC), "reason": "rent"}
    for number, (row, ends) in enumerate((("Hold released", ReleaseHold), ("Hold on a Pocket expired", ExpireHold))):
        hold = {"hold_id": UUID(int=900 + number)}
        with stage.row("Hold placed on a Pocket"):
            stage.submit(PlaceHold, anna, **hold, **held)
        if ends is ExpireHold:
            stage.until(date(2025, 6, 11))
        with stage.row(row):
            stage.submit(ends, anna, references=tuple(hold.values()), **hold)


def play_counterparties(new_stage):
    stage = new_stage()
    anna = stage.new_customer("Anna")
    pocket = stage.new_pocket(anna)
    bert = stage.new_customer("Bert")
    target = {"target_customer_id": bert, "target_pocket_id": stage.new_pocket(bert).id}
    with stage.row("Counterparty added"):
        linked = stage.add_counterparty(
            anna, "on_us", details={"account_number": "700000000001"}, verification=None, **target
        )
    with stage.row("Counterparties of an atomic batch"):
        own: dict[str, Any] = {"caller": "teller", "key": stage.number(), "customers": (anna,), "type": "on_us"}
        own |= {"holder": "Bert", "details": {}, "counterparty_name": {"type": "business", "business_name": "Bert"}}
        stage.submit(CounterpartyList, anna, parts=(AddCounterparty(**own, is_screened=True),))
    with stage.row("Counterparty updated or unlinked"):
        stage.submit(UpdateCounterparty, anna, counterparty_id=UUID(linked["counterparty_id"]), unlink=True)

    def waiting(verification, number, **fields):
        details = {"routing_number": "021000021", "account_number": number}
        made = stage.add_counterparty(anna, "ach", details=details, verification=verification, **fields)
        return UUID(made["counterparty_id"])

    with stage.row("Counterparty awaiting a wire"):
        waiting("incoming_wire", "12345678")
    with stage.row("Incoming wire verifies a counterparty"):
        stage.receive_money(pocket, 50_000_00, sender=Account("021000021", "12345678"))
    document = {"document_ids": (UUID(int=13),)}
    linked = {"linked": {"id": "x", "mask": "5678", "status": "PENDING_MANUAL_VERIFICATION", "access": ""}}
    corrected = {"account_number": "87654321", "account_type": "SAVINGS"}
    for title, verification, more, kind, fields in (
        ("Micro-deposits confirmed", "micro_deposits", {}, ConfirmDeposits, {"amounts": (22, 11), "are_sent": True}),
        ("Verification decided", "supporting_documents", document, DecideVerification, {"approved": True}),
        ("Verification failed", "micro_deposits", {}, FailVerification, {"reason": "They came back."}),
        ("Verification expired", "incoming_wire", {}, ExpireVerification, {}),
        ("Account corrected by its bank", "micro_deposits", {}, CorrectAccount, {"details": corrected}),
        ("Account linking completed", "linking_provider", linked, SettleLink, {"link_status": "MANUALLY_VERIFIED"}),
        ("Screening settled", "incoming_wire", {}, SettleScreening, {"sanctions": SanctionsStatus.OPEN}),
    ):
        counterparty = waiting(verification, f"5647{stage.count:06}", **more)
        with stage.row(title):
            stage.submit(kind, anna, counterparty_id=counterparty, **fields)


def play_bills_elsewhere(new_stage):
    stage = new_stage()
    anna = stage.new_customer("Anna")
    common = {"pocket_id": stage.new_pocket(anna).id, "cusip": BILL, "counterparty_name": "Elsewhere"}
    with stage.row("Bills received from another custodian"):
        stage.submit(ReceiveBills, anna, transfer_id=UUID(int=1), units=10, counterparty_account="1", **common)
    stage.until(date(2025, 5, 30))
    with stage.row("Bills delivered to another custodian"):
        stage.submit(DeliverBills, anna, transfer_id=UUID(int=2), units=4, counterparty_account="1", **common)
    with stage.row("Delivery completed"):
        stage.about(EndDelivery, anna, {"transfer_id": UUID(int=2)}, reason=None)
    stage.submit(DeliverBills, anna, transfer_id=UUID(int=3), units=4, counterparty_account="1", **common)
    with stage.row("Delivery rejected"):
        stage.about(EndDelivery, anna, {"transfer_id": UUID(int=3)}, reason="ACCOUNT_UNAVAILABLE")


def play_corrections(new_stage):
    stage = new_stage()
    anna = stage.new_customer("Anna")
    pocket, other = stage.new_pocket(anna), stage.new_pocket(anna)

    def give():
        given = stage.submit(
            PostGoodwillCredit, anna, pocket_id=pocket.id, amount=300_00, credit_type="PROMOTION", description="welcome"
        )
        return {"activity_id": UUID(given["activity_id"])}

    with stage.row("Goodwill credit"):
        given = give()
    with stage.row("Adjustment"):
        stage.submit(
            AdjustPocket, anna, pocket_id=pocket.id, direction="DEBIT", amount=100_00, description="an adjustment"
        )
    stage.transfer(pocket, other, 100_00)
    with stage.row("Overdraft"):
        stage.about(ReverseTransaction, anna, given, description="a mistake")
    with stage.row("Overdraft recovered"):
        stage.receive_money(pocket, 50_00)
    stage = new_stage()
    anna = stage.new_customer("Anna")
    pocket = stage.new_pocket(anna)
    stage.until(date(2025, 5, 29), 20)
    given = give()
    with stage.row("Credit reversed"):
        stage.about(ReverseTransaction, anna, given, description="a mistake")


def play_suspense(new_stage):
    stage = new_stage()
    house, anna = stage.house(), stage.new_customer("Anna")
    place = stage.new_pocket(anna)

    def hold(**details):
        item = {"item_id": stage.number()}
        stage.submit(
            HoldInSuspense,
            house,
            rail="WIRE",
            direction="CREDIT",
            amount=100_00,
            reason="NO_ACCOUNT",
            details=details,
            **item,
        )
        return item

    with stage.row("Payment held in suspense"):
        item = hold()
    with stage.row("File of a rail closed"):
        stage.submit(CloseRailFile, house, file_id=stage.number(), rail="WIRE", reason="returned by hand")
    with stage.row("Suspense item returned"):
        stage.about(ReturnFromSuspense, house, item, reason="NO_ACCOUNT")
    item = hold()
    with stage.row("Rejected wire held with its fee"):
        item_with_fee = hold(fee=15_00)
    for title, held in (("Suspense item assigned", item), ("Suspense item assigned with its fee", item_with_fee)):
        with stage.row(title, house):
            stage.submit(
                AssignFromSuspense,
                house,
                anna,
                pocket_id=place.id,
                portal_id=place.portal,
                references=tuple(held.values()),
                **held,
            )


def play_settlement(new_stage):
    day = date(2025, 5, 29)

    def block(side):
        return SettlementBlock(day, BILL, 99_754_125, side=side, units=2506, customers_cents=2506 * 9975 + 1050)

    for title, blocks, clearings in (
        ("Settlement of purchases", (block("BUY"),), ()),
        ("Settlement of sales", (block("SELL"),), ()),
        ("Settlement of maturities", (block("MATURITY"),), ()),
        ("Settlement of a rail, inbound", (), (RailTotals(day, "WIRE", 100_00, outflow=0),)),
        ("Settlement of a rail, outbound", (), (RailTotals(day, "WIRE", 0, outflow=100_00),)),
    ):
        stage = new_stage()
        house = stage.house()
        with stage.row(title):
            stage.submit(CloseBankDay, house, day=day, blocks=blocks, clearings=clearings)
    stage = new_stage()
    house = stage.house()
    with stage.row("Micro-deposits sent"):
        stage.submit(
            SendMicroDeposits,
            house,
            counterparty_id=UUID(int=1),
            amounts=(11, 22),
            routing_number="021000021",
            account_number="5647772655",
            account_type="CHECKING",
            party_name="Beta LLC",
            company_name="The Bank",
        )


PLAYS = (
    play_arrivals,
    play_maturities,
    play_accounts,
    play_payments,
    play_wires,
    play_withdrawals,
    play_ach,
    play_reviews,
    play_incoming_ach,
    play_counterparties,
    play_reversals,
    play_bills_elsewhere,
    play_corrections,
    play_suspense,
    play_settlement,
    play_desk,
    play_reconciliation,
    play_cards,
    play_crypto,
    play_card_holds,
    play_card_records,
    play_disputes,
    play_card_settlement,
)
