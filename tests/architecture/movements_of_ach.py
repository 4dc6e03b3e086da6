"""What becomes of ACH entries, played on books in memory: those we send and those that reach us."""

from datetime import date
from uuid import UUID

import msgspec
from tests.architecture.world import SEED, World

from billfold.accounts.commands import EnrolCustomer, UpdatePortal
from billfold.accounts.counterparties.types import CounterpartyStatus, Payee
from billfold.payments.ach.commands import (
    CollectAch,
    MarkAchTransmitted,
    OriginateAch,
    ReceiveAch,
    ReceiveAchReturn,
    RecordNoc,
    ReinitiateAch,
    RescheduleAch,
    ReturnAchEntry,
    ReverseAch,
    ReviewAch,
    SendMicroDeposits,
    SettleAch,
)
from billfold.payments.ach.types import AchEntry, IncomingEntry
from billfold.platform.ids import command_id, derive

ACH_ID = UUID("ac000000-0000-4000-8000-000000000001")
FILE_ID = UUID("ac000000-0000-4000-8000-00000000f11e")
PAYEE = Payee(
    counterparty_id=UUID("ac000000-0000-4000-8000-0000000000cc"),
    type="ach",
    status=CounterpartyStatus.VERIFIED,
    counterparty_name={"type": "business", "business_name": "Beta LLC"},
    verification={"type": "supporting_documents"},
    details={"routing_number": "021000021", "account_number": "5647772655", "account_type": "CHECKING"},
)
INCOMING = IncomingEntry(
    code="22",
    amount=700_00,
    account_number="100000000001",
    name="ANNA",
    identification="7",
    trace="091000010000007",
    bank="09100001",
    entry_class="PPD",
    company="ACME",
    company_id="9000000001",
    purpose="PAYMENT",
    effective_on=date(2025, 6, 3),
)


def rich():
    """Return a customer with three lots on three days, and nothing drafted."""
    world = World()
    anna = world.customer("Anna")
    pocket = world.pocket(anna)
    for day in (date(2025, 5, 29), date(2025, 5, 30), date(2025, 6, 3)):
        world.at(day)
        world.receive(anna, pocket, 30_000_00)
    world.forget()
    return world, anna, pocket


def originate(world, anna, pocket, direction, cents=70_000_00, *, payee=PAYEE):
    """Originate an entry to a counterparty that the book has looked at."""
    world.books[anna].referenced = {PAYEE.counterparty_id: payee} if payee else {}
    return world.do(
        OriginateAch,
        anna,
        ach_id=ACH_ID,
        pocket_id=pocket[0],
        counterparty_id=PAYEE.counterparty_id,
        direction=direction,
        sec_code="PPD",
        description="PAYROLL",
        amount=cents,
    )


def see(world, customer, **changes):
    """Let the book look at the entry it drafted last, as it is later; forget what was drafted."""
    book = world.books[customer]
    drafted = book.draft.rows_of(AchEntry)[-1]
    world.forget()
    seen = msgspec.structs.replace(drafted, trace_number="061199990000001", **changes)
    book.referenced = {seen.ach_id: seen}
    return seen.ach_id


def sent(direction, status="IN_TRANSIT"):
    world, anna, pocket = rich()
    originate(world, anna, pocket, direction=direction)
    see(world, anna, status=status, file_id=FILE_ID)
    return world, anna, pocket


def collected():
    """A debit that has settled and is held."""
    world, anna, pocket = sent("DEBIT")
    book = world.books[anna]
    world.do(CollectAch, anna, ach_id=ACH_ID)
    return world, anna, pocket, book.referenced[ACH_ID]


# -- of ours ------------------------------------------------------------------------------


def a_customer_pays_by_ach():
    world, anna, pocket = rich()
    assert originate(world, anna, pocket, direction="CREDIT")["status"] == "APPROVED"
    return world.moved()


def a_customer_collects_by_ach():
    world, anna, pocket = rich()
    assert originate(world, anna, pocket, direction="DEBIT")["status"] == "APPROVED"
    return world.moved()


def ach_entries_leave():
    world, anna, _ = sent("CREDIT", "APPROVED")
    assert world.do(MarkAchTransmitted, anna, ach_ids=(ACH_ID,))["moved"] == 1
    return world.moved()


def ach_entries_count_as_settled():
    world, anna, _ = sent("CREDIT")
    assert world.do(SettleAch, anna, ach_ids=(ACH_ID,))["moved"] == 1
    return world.moved()


def a_collection_settles():
    world, _, _, _ = collected()
    return world.moved()


def come_back(world, anna, code, cents=70_000_00, *, direction=None):
    sent_as = world.books[anna].referenced[ACH_ID].direction
    return world.do(
        ReceiveAchReturn,
        anna,
        ach_id=ACH_ID,
        code=code,
        direction=direction or sent_as,
        amount=cents,
        trace="021000020000001",
        arrived_at=world.now,
    )


def an_ach_payment_comes_back():
    world, anna, _ = sent("CREDIT")
    assert come_back(world, anna, "R03")["status"] == "FAILED"
    return world.moved()


def a_collection_comes_back():
    world, anna, _, entry = collected()
    world.forget()
    world.books[anna].referenced = {ACH_ID: entry}
    assert come_back(world, anna, "R01")["status"] == "FAILED"
    return world.moved()


def a_bank_corrects_an_entry():
    world, anna, _ = sent("CREDIT")
    world.do(RecordNoc, anna, ach_id=ACH_ID, code="C01", corrected="998877")
    return world.moved()


def held_back():
    world, anna, pocket = rich()
    world.terms = msgspec.structs.replace(world.terms, ach_review_above_cents=1)
    assert originate(world, anna, pocket, direction="CREDIT")["status"] == "PENDING"
    see(world, anna)
    return world, anna


def an_entry_is_let_through():
    world, anna = held_back()
    world.do(ReviewAch, anna, ach_id=ACH_ID, decision="APPROVED")
    return world.moved()


def ach_entries_miss_their_window():
    world, anna, pocket = rich()
    originate(world, anna, pocket, direction="CREDIT")
    see(world, anna, settles_at=world.now)
    assert world.do(RescheduleAch, anna, ach_ids=(ACH_ID,)) == {"postponed": 1}
    return world.moved()


def an_entry_is_not_let_through():
    world, anna = held_back()
    world.do(ReviewAch, anna, ach_id=ACH_ID, decision="REJECTED")
    return world.moved()


def a_payment_is_reversed():
    world, anna, _ = sent("CREDIT")
    world.do(ReverseAch, anna, ach_id=ACH_ID)
    return world.moved()


def a_collection_is_sent_again():
    world, anna, pocket = rich()
    originate(world, anna, pocket, direction="DEBIT")
    see(world, anna, status="FAILED", return_code="R01")
    world.do(ReinitiateAch, anna, ach_id=ACH_ID)
    return world.moved()


def micro_deposits_leave():
    world = World()
    house = derive(SEED, command_id("architecture", "the house"), 0)
    world.do(EnrolCustomer, house, partner_id=None, role="house", type="BUSINESS", name="House", profile={})
    world.forget()
    world.do(
        SendMicroDeposits,
        house,
        counterparty_id=PAYEE.counterparty_id,
        amounts=(11, 22),
        routing_number="021000021",
        account_number="5647772655",
        account_type="CHECKING",
        party_name="Beta LLC",
        company_name="The Bank",
    )
    return world.moved()


# -- of others ----------------------------------------------------------------------------


def receive(world, anna, pocket, **changes):
    entry = msgspec.structs.replace(INCOMING, **changes)
    return world.do(
        ReceiveAch, anna, ach_id=ACH_ID, file_id=FILE_ID, portal_id=pocket[1], pocket_id=pocket[0], entry=entry
    )


def an_ach_debit_takes_money():
    world, anna, pocket = rich()
    told = receive(world, anna, pocket, code="27", amount=70_000_00)
    assert told["status"] == "COMPLETED"
    return world.moved()


def a_file_brings_an_ach_credit():
    world, anna, pocket = rich()
    assert receive(world, anna, pocket)["status"] == "COMPLETED"
    return world.moved()


def an_ach_entry_goes_back():
    world, anna, pocket = rich()
    world.do(UpdatePortal, anna, portal_id=pocket[1], close=True)
    world.forget()
    assert receive(world, anna, pocket)["code"] == "R02"
    return world.moved()


def _given_back(why, **changes):
    world, anna, pocket = rich()
    receive(world, anna, pocket, **changes)
    see(world, anna)
    world.do(ReturnAchEntry, anna, ach_id=ACH_ID, code=why)
    return world.moved()


def an_ach_debit_is_given_back():
    return _given_back("R10", code="27", amount=70_000_00)


def an_ach_credit_is_given_back():
    return _given_back("R23", amount=70_000_00)


OF_ACH = {
    "ACH credit originated": a_customer_pays_by_ach,
    "ACH debit originated": a_customer_collects_by_ach,
    "ACH entries transmitted": ach_entries_leave,
    "ACH entries settled": ach_entries_count_as_settled,
    "ACH debit settled and held": a_collection_settles,
    "ACH credit returned": an_ach_payment_comes_back,
    "ACH debit returned": a_collection_comes_back,
    "Notification of change received": a_bank_corrects_an_entry,
    "ACH review approved": an_entry_is_let_through,
    "ACH entries rescheduled": ach_entries_miss_their_window,
    "ACH review rejected": an_entry_is_not_let_through,
    "ACH credit reversed": a_payment_is_reversed,
    "ACH debit reinitiated": a_collection_is_sent_again,
    "Micro-deposits sent": micro_deposits_leave,
    "Incoming ACH debit": an_ach_debit_takes_money,
    "Incoming ACH credit from a file": a_file_brings_an_ach_credit,
    "Incoming ACH entry returned unposted": an_ach_entry_goes_back,
    "Incoming ACH debit returned": an_ach_debit_is_given_back,
    "Incoming ACH credit returned": an_ach_credit_is_given_back,
}
