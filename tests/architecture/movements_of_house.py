"""What the house and its operator do, played on books in memory: suspense, rails, corrections."""

from datetime import date
from uuid import UUID

from tests.architecture.world import SEED, World

from billfold.accounts.commands import EnrolCustomer
from billfold.accounts.transactions.types import BankBooking
from billfold.ledger.book.rows import JournalEntry, TransactionEntry
from billfold.payments.adjustments.commands import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.custody.commands import DeliverBills, EndDelivery, ReceiveBills
from billfold.payments.settlement.commands import CloseBankDay
from billfold.payments.settlement.rules import RailTotals, SettlementBlock
from billfold.payments.suspense.commands import AssignFromSuspense, HoldInSuspense, ReturnFromSuspense
from billfold.platform.ids import command_id, derive


def _house():
    world = World()
    house = derive(SEED, command_id("architecture", "the house"), 0)
    world.do(EnrolCustomer, house, partner_id=None, role="house", type="BUSINESS", name="House", profile={})
    world.forget()
    return world, house


def _cleared(inflow, outflow):
    world, house = _house()
    day = world.books[house].business_date
    rail = RailTotals(day, "WIRE", inflow, outflow=outflow)
    world.do(CloseBankDay, house, day=day, blocks=(), clearings=(rail,))
    return world.moved()


def the_house_settles_what_came_in():
    return _cleared(100_00, 0)


def the_house_settles_what_went_out():
    return _cleared(0, 100_00)


_ITEM = UUID("7c0de000-0000-4000-8000-000000000001")


def _held(**details):
    world, house = _house()
    world.do(
        HoldInSuspense,
        house,
        item_id=_ITEM,
        rail="WIRE",
        direction="CREDIT",
        amount=100_00,
        reason="NO_ACCOUNT",
        details=details,
    )
    return world, house


def money_comes_for_nobody():
    world, _ = _held()
    return world.moved()


def a_rejected_wire_is_held_with_its_fee():
    world, _ = _held(fee=15_00)
    return world.moved()


def it_goes_back():
    world, house = _held()
    seen = dict(world.books[house].referenced)
    world.forget()
    world.books[house].referenced = seen
    world.do(ReturnFromSuspense, house, item_id=_ITEM, reason="NO_ACCOUNT")
    return world.moved()


def it_finds_its_owner():
    return _assigned()


def it_finds_its_owner_with_the_fee():
    return _assigned(fee=15_00)


def _assigned(**details):
    world, house = _held(**details)
    anna = world.customer("Anna")
    pocket = world.pocket(anna)
    seen = dict(world.books[house].referenced)
    world.forget()
    world.books[house].referenced = seen
    world.do(AssignFromSuspense, house, anna, item_id=_ITEM, pocket_id=pocket[0], portal_id=pocket[1])
    return world.moved(house)


# -- by hand -----------------------------------------------------------------------------


def _given(hour=10):
    world = World()
    anna = world.customer("Anna")
    pocket = world.pocket(anna)
    world.at(date(2025, 5, 29), hour)
    world.forget()
    given = world.do(
        PostGoodwillCredit, anna, pocket_id=pocket[0], amount=300_00, credit_type="PROMOTION", description="welcome"
    )
    return world, anna, pocket, UUID(given["activity_id"])


def a_credit_is_given():
    world, _, _, _ = _given()
    return world.moved()


def _taken_back(spend, hour=10):
    """What is taken back of a credit of $300.00 of which so much was spent."""
    world, anna, pocket, activity_id = _given(hour)
    if spend:
        world.pay(anna, pocket, anna, world.pocket(anna), spend)
    book = world.books[anna]
    kinds = {row.entry_no: row.kind for row in book.draft.rows_of(JournalEntry)}
    shown = {row.activity_id: row for row in book.draft.rows_of(TransactionEntry)}
    given = shown[activity_id]
    world.forget()
    book.referenced[activity_id] = BankBooking(
        activity_id,
        pocket[0],
        given.entry_no,
        journal_kind=kinds[given.entry_no],
        type="CREDIT",
        direction="CREDIT",
        amount=300_00,
        cause=None,
        is_corrected=False,
    )
    world.do(ReverseTransaction, anna, activity_id=activity_id, description="a mistake")
    return world, anna, pocket


def a_credit_is_taken_back():
    world, _, _ = _taken_back(0, hour=20)
    return world.moved()


def a_pocket_cannot_pay_back_all():
    world, _, _ = _taken_back(200_00)
    return world.moved()


def what_is_owed_is_repaid():
    world, anna, pocket = _taken_back(200_00)
    world.forget()
    world.receive(anna, pocket, 50_00)
    return world.moved()


def a_pocket_is_set_right():
    world, anna, pocket, _ = _given()
    world.forget()
    world.do(AdjustPocket, anna, pocket_id=pocket[0], direction="DEBIT", amount=100_00, description="an adjustment")
    return world.moved()


# -- bills elsewhere ---------------------------------------------------------------------


_BILL, _TRANSFER = "912797PT8", UUID("7b111000-0000-4000-8000-000000000001")


def _with_bills():
    world = World()
    anna = world.customer("Anna")
    pocket = world.pocket(anna)
    world.forget()
    world.do(
        ReceiveBills,
        anna,
        transfer_id=_ITEM,
        pocket_id=pocket[0],
        cusip=_BILL,
        units=10,
        counterparty_name="Elsewhere",
        counterparty_account="1",
    )
    return world, anna, pocket


def bills_come_from_elsewhere():
    return _with_bills()[0].moved()


def _leaving():
    world, anna, pocket = _with_bills()
    world.at(date(2025, 5, 30))
    world.forget()
    world.do(
        DeliverBills,
        anna,
        transfer_id=_TRANSFER,
        pocket_id=pocket[0],
        cusip=_BILL,
        units=4,
        counterparty_name="Elsewhere",
        counterparty_account="1",
    )
    return world, anna


def bills_go_elsewhere():
    return _leaving()[0].moved()


def _answered(reason):
    world, anna = _leaving()
    seen = dict(world.books[anna].referenced)
    world.forget()
    world.books[anna].referenced = seen
    world.do(EndDelivery, anna, transfer_id=_TRANSFER, reason=reason)
    return world.moved()


def bills_have_arrived():
    return _answered(None)


def bills_come_back():
    return _answered("ACCOUNT_UNAVAILABLE")


def _settled(side):
    world = World()
    house = derive(SEED, command_id("architecture", "the house"), 0)
    world.do(EnrolCustomer, house, partner_id=None, role="house", type="BUSINESS", name="House", profile={})
    world.forget()
    day = world.books[house].business_date
    block = SettlementBlock(day, "912797PT8", 99_754_125, side=side, units=2506, customers_cents=2506 * 9975 + 1050)
    world.do(CloseBankDay, house, day=day, blocks=(block,))
    return world.moved()


def the_house_settles_what_was_bought():
    return _settled("BUY")


def the_house_settles_what_was_sold():
    return _settled("SELL")


def the_house_settles_what_matured():
    return _settled("MATURITY")


OF_THE_HOUSE = {
    "Settlement of purchases": the_house_settles_what_was_bought,
    "Settlement of sales": the_house_settles_what_was_sold,
    "Settlement of maturities": the_house_settles_what_matured,
    "Bills received from another custodian": bills_come_from_elsewhere,
    "Bills delivered to another custodian": bills_go_elsewhere,
    "Delivery completed": bills_have_arrived,
    "Delivery rejected": bills_come_back,
    "Settlement of a rail, inbound": the_house_settles_what_came_in,
    "Settlement of a rail, outbound": the_house_settles_what_went_out,
    "Payment held in suspense": money_comes_for_nobody,
    "Suspense item returned": it_goes_back,
    "Suspense item assigned": it_finds_its_owner,
    "Rejected wire held with its fee": a_rejected_wire_is_held_with_its_fee,
    "Suspense item assigned with its fee": it_finds_its_owner_with_the_fee,
    "Goodwill credit": a_credit_is_given,
    "Credit reversed": a_credit_is_taken_back,
    "Overdraft": a_pocket_cannot_pay_back_all,
    "Overdraft recovered": what_is_owed_is_repaid,
    "Adjustment": a_pocket_is_set_right,
}
