"""What the house and its operator do in a seeded life: suspense, credits and corrections."""

from billfold.engine.due_work import house_id
from billfold.flows.adjust import AdjustPocket, CorrectBooking, GiveCredit
from billfold.flows.suspense import AssignFromSuspense, HoldInSuspense, ReturnFromSuspense
from billfold.kit.ids import command_id, derive

CALLER = "life"


def hold(life):
    """A payment comes, or a debit, that nobody is known to have asked for."""
    life.count += 1
    item_id = derive(b"life", command_id(CALLER, f"item:{life.count}"), 0)
    return life._make(
        HoldInSuspense, (house_id(life.bank.seed),), item_id=item_id,
        rail=life.random.choice(("WIRE", "ACH")), amount=life._cents(), reason="NO_ACCOUNT",
        direction=life.random.choice(("CREDIT", "CREDIT", "DEBIT")), details={"to": "nobody"},
    )  # fmt: skip


def give_back(life):
    """Mostly what is held; sometimes what was given back before."""
    if not life.held:
        return None
    item_id = life.random.choice(life.held)
    house = house_id(life.bank.seed)
    if life.random.random() < 0.5:
        return life._make(
            ReturnFromSuspense, (house,), item_id=item_id, reason="NO_ACCOUNT",
            looks_at=(item_id,),
        )  # fmt: skip
    place = life._pocket()
    if place is None:
        return None
    return life._make(
        AssignFromSuspense, (house, place[0]), item_id=item_id, pocket_id=place[1],
        portal_id=life.random.choice(life.portals[place[1]]), looks_at=(item_id,),
    )  # fmt: skip


def give(life):
    place = life._pocket()
    if place is None:
        return None
    kind = life.random.choice(("CASH_BACK", "PROMOTION", "ADJUSTMENT", "DEBIT"))
    if kind == "DEBIT":
        return life._make(
            AdjustPocket, place[:1], pocket_id=place[1], direction="DEBIT",
            amount=life._payable(place), description="an adjustment",
        )  # fmt: skip
    return life._make(
        GiveCredit, place[:1], pocket_id=place[1], amount=life._cents(), credit_type=kind,
        description="a credit",
    )  # fmt: skip


def correct(life):
    """A credit is taken back. Of half of them the pocket is emptied first: then it owes."""
    if not life.given:
        return None
    if len(life.doomed) < 3:
        life.doomed.append(life.random.choice(life.given))
        if life.random.random() < 0.5:
            return life._transfer(life.doomed[-1][0], life._pocket(), amount=lambda _: None)
    place, activity_id = life.doomed.pop()
    return life._make(
        CorrectBooking, place[:1], activity_id=activity_id, description="a mistake",
        looks_at=(activity_id,),
    )  # fmt: skip


OPERATING = {"hold": hold, "give_back": give_back, "give": give, "correct": correct}
