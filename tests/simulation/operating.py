"""The bank and its operator in a simulated history: suspense, credits and corrections."""

from functools import wraps
from uuid import UUID

from tests.support.whole_bank import Place

from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.adjustments.rules import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.custody.rules import DeliverBills, EndDelivery, ReceiveBills
from billfold.payments.suspense.rules import AssignFromSuspense, HoldInSuspense, ReturnFromSuspense
from billfold.platform.ids import command_id, derive

CALLER = "life"


def of_a_pocket(step):
    """Return a step about a randomly drawn pocket; there is none before the first pocket."""

    @wraps(step)
    def drawn(life, **fields):
        place = life._pocket()
        return None if place is None else step(life, place, **fields)

    return drawn


def learn(life, step, outcome):
    """Remember results for later steps."""
    if isinstance(step, DeliverBills):
        life.leaving.append((step.customers[0], step.transfer_id))
    elif isinstance(step, HoldInSuspense) and step.rail != "CRYPTO":
        life.held.append(step.item_id)
    elif isinstance(step, PostGoodwillCredit | AdjustPocket):
        life.given.append((Place(step.customers[0], step.pocket_id, step.pocket_id), UUID(outcome["activity_id"])))


def hold(life):
    """Hold an unclaimed payment, or an unexplained debit, in suspense."""
    life.count += 1
    item_id = derive(b"life", command_id(CALLER, f"item:{life.count}"), 0)
    return life.submit(
        HoldInSuspense,
        bank_customer_id(life.bank.seed),
        item_id=item_id,
        rail=life.random.choice(("WIRE", "ACH")),
        amount=life._cents(),
        reason="NO_ACCOUNT",
        direction=life.random.choice(("CREDIT", "CREDIT", "DEBIT")),
        details={"to": "nobody"},
    )


def give_back(life):
    """Return or assign a held item, sometimes one that was returned before."""
    if not life.held:
        return None
    item_id = life.random.choice(life.held)
    house = bank_customer_id(life.bank.seed)
    if life.random.random() < 0.5:
        return life.submit(ReturnFromSuspense, house, item_id=item_id, reason="NO_ACCOUNT", references=(item_id,))
    place = life._pocket()
    if place is None:
        return None
    return life.submit(
        AssignFromSuspense,
        house,
        place.customer,
        item_id=item_id,
        pocket_id=place.id,
        portal_id=life.random.choice(life.portals[place.id]),
        references=(item_id,),
    )


@of_a_pocket
def give(life, place):
    kind = life.random.choice(("CASH_BACK", "PROMOTION", "ADJUSTMENT", "DEBIT"))
    if kind == "DEBIT":
        return life.submit(
            AdjustPocket,
            place.customer,
            pocket_id=place.id,
            direction="DEBIT",
            amount=life._payable(place),
            description="an adjustment",
        )
    return life.submit(
        PostGoodwillCredit,
        place.customer,
        pocket_id=place.id,
        amount=life._cents(),
        credit_type=kind,
        description="a credit",
    )


def correct(life):
    """Reverse a credit. In half of the cases the pocket is emptied first, so it ends with an overdraft."""
    if not life.given:
        return None
    if len(life.doomed) < 3:
        life.doomed.append(life.random.choice(life.given))
        if life.random.random() < 0.5:
            return life._transfer(life.doomed[-1][0], life._pocket(), amount=lambda _: None)
    place, activity_id = life.doomed.pop()
    return life.submit(
        ReverseTransaction, place.customer, activity_id=activity_id, description="a mistake", references=(activity_id,)
    )


@of_a_pocket
def bills_come(life, place):
    weeks, today = life.random.choice((4, 13, 26)), life.bank.books[place.customer].business_date
    bill = life.bank.market.on_the_run(weeks, today)
    return life.submit(
        ReceiveBills,
        place.customer,
        transfer_id=new_id(life),
        pocket_id=place.id,
        cusip=bill.cusip,
        units=life.random.randint(1, 5_000),
        counterparty_name="Elsewhere",
        counterparty_account="1",
        acquired_on=life.random.choice((None, bill.first_issue)),
        cost_cents=life.random.choice((None, 1, 9_900_00)),
    )


@of_a_pocket
def bills_go(life, place):
    """Deliver bills, some unsettled or missing; the custodian responds later."""
    if life.leaving and life.random.random() < 0.5:
        customer, transfer_id = life.leaving.pop()
        return life.submit(
            EndDelivery,
            customer,
            transfer_id=transfer_id,
            references=(transfer_id,),
            reason=life.random.choice((None, "UNKNOWN")),
        )
    held = life.bank.books[place.customer].pockets[place.id].positions()
    if not held:
        return None
    cusip, units = life.random.choice(held)
    return life.submit(
        DeliverBills,
        place.customer,
        transfer_id=new_id(life),
        pocket_id=place.id,
        cusip=cusip,
        units=life.random.randint(1, units + 1),
        counterparty_name="Elsewhere",
        counterparty_account="1",
    )


def new_id(life, kind="bills"):
    """Return an id that is the same in every run."""
    life.count += 1
    return derive(b"life", command_id(CALLER, f"{kind}:{life.count}"), 0)


OPERATING = {
    "hold": hold,
    "give_back": give_back,
    "give": give,
    "correct": correct,
    "bills_come": bills_come,
    "bills_go": bills_go,
}
