"""Every movement of money and of what stands around it, played on books in memory.

`MOVEMENTS` names each as the tables of ARCHITECTURE.md do.
"""

from datetime import date

from tests.architecture.movements_of_ach import OF_ACH
from tests.architecture.movements_of_counterparties import OF_COUNTERPARTIES
from tests.architecture.movements_of_house import OF_THE_HOUSE
from tests.architecture.movements_of_wires import OF_WIRES
from tests.architecture.world import World

from billfold.accounts.commands import (
    CloseCustomer,
    OpenPortal,
    SetPocketState,
    UpdateCustomer,
    UpdatePocket,
    UpdatePortal,
)
from billfold.payments.on_us.types import TransferOrder

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")


def _three_lots(world, customer, pocket):
    """Buy on three days: two lots of the bill that matures first, one of the next."""
    for day in (date(2025, 5, 29), date(2025, 5, 30), date(2025, 6, 3)):
        world.at(day)
        world.receive(customer, pocket, 30_000_00)
    first, second, third = world.books[customer].pockets[pocket[0]].lots
    assert first.cusip == second.cusip != third.cusip


def _one(**terms):
    world = World(**terms)
    anna = world.customer("Anna")
    return world, anna, world.pocket(anna)


# -- money in ---------------------------------------------------------------------------


def a_wire_arrives():
    world, anna, pocket = _one()
    world.forget()
    world.receive(anna, pocket, 50_000_00)
    return world.moved()


def an_ach_credit_arrives():
    world, anna, pocket = _one(lien_days=2)
    world.forget()
    world.receive(anna, pocket, 50_000_00, "ACH")
    return world.moved()


def money_arrives_after_hours():
    world, anna, pocket = _one()
    world.at(date(2025, 6, 2), 20)
    world.forget()
    world.receive(anna, pocket, 50_000_00)
    return world.moved()


def waiting_cash_is_invested():
    world, anna, pocket = _one()
    world.at(date(2025, 6, 2), 20)
    world.receive(anna, pocket, 50_000_00)
    world.forget()
    world.at(date(2025, 6, 3), 9)
    world.catch_up(anna)
    return world.moved()


def money_for_a_closed_portal_goes_back():
    world, anna, pocket = _one()
    world.do(UpdatePortal, anna, portal_id=pocket[1], close=True)
    world.forget()
    assert world.receive(anna, pocket, 50_000_00)["status"] == "REJECTED"
    return world.moved()


# -- money between customers ------------------------------------------------------------


def _a_payment(cents):
    world, anna, pocket = _one()
    bert = world.customer("Bert")
    berts = world.pocket(bert)
    _three_lots(world, anna, pocket)
    world.forget()
    world.pay(anna, pocket, bert, berts, cents)
    return world, anna, bert


def a_customer_pays_another():
    world, anna, _ = _a_payment(70_000_00)
    return world.moved(anna)


def the_other_is_paid():
    world, _, bert = _a_payment(70_000_00)
    return world.moved(bert)


def everything_leaves():
    world, anna, pocket = _one()
    bert = world.customer("Bert")
    berts = world.pocket(bert)
    _three_lots(world, anna, pocket)
    world.at(date(2025, 6, 10))
    world.forget()
    world.pay(anna, pocket, bert, berts, None)
    return world.moved(anna)


def a_transfer_is_rejected():
    world, anna, _ = _a_payment(999_999_00)
    return world.moved(anna)


def a_transfer_waits():
    world, anna, pocket = _one()
    bert = world.customer("Bert")
    berts = world.pocket(bert)
    world.forget()
    world.pay(anna, pocket, bert, berts, 1_00, later=True)
    return world.moved()


# -- money within one customer ----------------------------------------------------------


def _within(cents, **fields):
    world, anna, pocket = _one()
    other = world.pocket(anna)
    _three_lots(world, anna, pocket)
    world.forget()
    world.pay(anna, pocket, anna, other, cents, **fields)
    return world.moved()


def money_moves_between_own_pockets():
    return _within(70_000_00)


def bills_move_between_own_pockets():
    return _within(70_000_00, order=IN_KIND)


# -- what is due ------------------------------------------------------------------------


def _matured(reinvest):
    world = World()
    anna = world.customer("Anna")
    pocket = world.pocket(anna, reinvest=reinvest)
    _three_lots(world, anna, pocket)
    world.at(date(2025, 6, 23), 18)
    world.catch_up(anna)
    world.forget()
    world.at(date(2025, 6, 24), 9)
    world.catch_up(anna)
    return world.moved()


def a_bill_matures_and_is_bought_again():
    return _matured(4)


def a_bill_matures_and_the_money_stays():
    return _matured(None)


def a_day_of_a_pocket_ends():
    world, anna, pocket = _one()
    world.receive(anna, pocket, 50_000_00)
    world.forget()
    world.at(date(2025, 5, 29), 18)
    world.catch_up(anna)
    return world.moved()


def _fee(cents):
    world = World()
    anna = world.customer("Anna")
    pocket = world.pocket(anna)
    world.receive(anna, pocket, cents)
    world.at(date(2025, 6, 30), 18)
    world.catch_up(anna)
    world.forget()
    world.at(date(2025, 7, 1), 8)
    world.catch_up(anna)
    return world.moved()


def the_fee_is_charged():
    return _fee(1_000_000_00)


# -- what moves no money -----------------------------------------------------------------


def _enrolled():
    world = World()
    return world, world.customer("Anna")


def a_customer_is_enrolled():
    world, _ = _enrolled()
    return world.moved()


def a_customer_changes():
    world, anna = _enrolled()
    world.forget()
    world.do(UpdateCustomer, anna, profile={"email": "anna@example.org"})
    return world.moved()


def a_customer_leaves():
    world, anna, _ = _one()
    world.forget()
    world.do(CloseCustomer, anna, reason="moved away")
    return world.moved()


def a_pocket_opens():
    world, anna = _enrolled()
    world.forget()
    world.pocket(anna)
    return world.moved()


def a_pocket_changes_or_closes():
    world, anna, pocket = _one()
    world.pocket(anna)
    world.forget()
    world.do(UpdatePocket, anna, pocket_id=pocket[0], name="Another", close_for="not needed")
    return world.moved()


def the_operator_freezes_a_pocket():
    world, anna, pocket = _one()
    world.forget()
    world.do(SetPocketState, anna, pocket_id=pocket[0], status="FROZEN")
    return world.moved()


def a_portal_opens():
    world, anna, pocket = _one()
    world.forget()
    world.do(OpenPortal, anna, pocket_id=pocket[0], name="Another")
    return world.moved()


def a_portal_changes_or_closes():
    world, anna, pocket = _one()
    world.forget()
    world.do(UpdatePortal, anna, portal_id=pocket[1], close=True)
    return world.moved()


def nothing_is_due():
    world, anna, _ = _one()
    world.forget()
    world.catch_up(anna)
    return world.moved()


MOVEMENTS = (
    {
        "Incoming wire": a_wire_arrives,
        "Incoming ACH credit": an_ach_credit_arrives,
        "Deposit after hours": money_arrives_after_hours,
        "Waiting cash invested": waiting_cash_is_invested,
        "Deposit to a closed portal rejected": money_for_a_closed_portal_goes_back,
        "On-us payment, payer": a_customer_pays_another,
        "On-us payment, payee": the_other_is_paid,
        "On-us payment of the whole balance": everything_leaves,
        "Transfer between own pockets": money_moves_between_own_pockets,
        "Transfer in kind between own pockets": bills_move_between_own_pockets,
        "Transfer accepted for later": a_transfer_waits,
        "Transfer rejected": a_transfer_is_rejected,
        "Maturity, reinvested": a_bill_matures_and_is_bought_again,
        "Maturity, not reinvested": a_bill_matures_and_the_money_stays,
        "Fee": the_fee_is_charged,
        "Day end of a pocket": a_day_of_a_pocket_ends,
        "Customer enrolled": a_customer_is_enrolled,
        "Customer updated": a_customer_changes,
        "Customer closed": a_customer_leaves,
        "Pocket opened": a_pocket_opens,
        "Pocket updated or closed": a_pocket_changes_or_closes,
        "Pocket frozen": the_operator_freezes_a_pocket,
        "Portal opened": a_portal_opens,
        "Portal updated or closed": a_portal_changes_or_closes,
        "No work due": nothing_is_due,
    }
    | OF_ACH
    | OF_COUNTERPARTIES
    | OF_THE_HOUSE
    | OF_WIRES
)
