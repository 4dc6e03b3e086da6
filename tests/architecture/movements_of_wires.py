"""What becomes of wires, both ways, played on books in memory."""

from datetime import date
from uuid import UUID

from tests.architecture.world import ARRIVED, World

from billfold.payments.wires.commands import CompleteWire, ReceiveWireReturn, RejectWire, ReturnWire, SubmitWire


def _one():
    world = World()
    anna = world.customer("Anna")
    return world, anna, world.pocket(anna)


def _two_lots(world, customer, pocket):
    """Buy bills of two kinds."""
    for day in (date(2025, 5, 29), date(2025, 6, 3)):
        world.at(day)
        world.receive(customer, pocket, 40_000_00)


def _a_wire():
    world, anna, pocket = _one()
    _two_lots(world, anna, pocket)
    world.forget()
    world.send_wire(anna, pocket, 70_000_00)
    return world, anna


def a_wire_is_accepted():
    world, _ = _a_wire()
    return world.moved()


def _what_became_of_it(kind, status, **fields):
    world, anna = _a_wire()
    wire_id = world.see_wire(anna, status)
    world.do(kind, anna, wire_id=wire_id, **fields)
    return world.moved()


def a_wire_leaves():
    return _what_became_of_it(SubmitWire, "PENDING", imad="20250603BLFDQGV1000001")


def a_wire_settles():
    return _what_became_of_it(CompleteWire, "PROCESSING")


def a_wire_is_rejected():
    return _what_became_of_it(RejectWire, "PROCESSING", code="AC04")


def a_wire_comes_back():
    world, anna = _a_wire()
    original = world.see_wire(anna, "COMPLETED")
    world.do(
        ReceiveWireReturn,
        anna,
        original_id=original,
        wire_id=UUID(int=4),
        amount=70_000_00,
        code="AC04",
        information=None,
        imad="20250603SIMFED01000001",
        omad=None,
        message="{}",
    )
    return world.moved()


def _that_arrived():
    world, anna, pocket = _one()
    world.forget()
    world.receive(anna, pocket, 50_000_00, wire=ARRIVED)
    return world, anna


def a_wire_by_message_arrives():
    world, _ = _that_arrived()
    return world.moved()


def a_wire_is_paid_back():
    world, anna = _that_arrived()
    original = world.see_wire(anna, "COMPLETED")
    world.do(ReturnWire, anna, original_id=original, code="DUPL")
    return world.moved()


OF_WIRES = {
    "Outgoing wire accepted": a_wire_is_accepted,
    "Outgoing wire submitted": a_wire_leaves,
    "Outgoing wire completed": a_wire_settles,
    "Outgoing wire rejected": a_wire_is_rejected,
    "Outgoing wire returned": a_wire_comes_back,
    "Incoming wire from a Fedwire message": a_wire_by_message_arrives,
    "Incoming wire returned": a_wire_is_paid_back,
}
