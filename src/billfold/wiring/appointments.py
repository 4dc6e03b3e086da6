"""Who keeps which kind of appointment."""

from functools import partial

from billfold.adapters.simulated_custodian import SimulatedCustodian
from billfold.domain import requests
from billfold.domain.agenda import Appointment
from billfold.engine import approved, changing
from billfold.engine.bank import Agenda, Bank
from billfold.engine.expiring import expire
from billfold.flows.counterparties import EXPIRES
from billfold.flows.send_wire import WIRE_SEND
from billfold.flows.transfer_bills import APPOINTMENT as DELIVER
from billfold.interfaces.inbound import custody
from billfold.interfaces.inbound.wire_suspense import send_back_held
from billfold.ports.custodian import Custodian
from billfold.wiring.ach_appointments import ach_appointments
from billfold.wiring.simulated_wires import WIRE_ANSWER
from billfold.wiring.wire_room import WireRoom


def appointments() -> Agenda:
    """Return every kind of appointment and whoever keeps it, in every process alike."""
    wires = WireRoom()
    return {
        WIRE_SEND: wires.sender.keep,
        WIRE_ANSWER: wires.world.answer,
        "wire.suspense_return": send_back_held,
        **ach_appointments(),
        EXPIRES: expire,
        requests.APPLY: changing.keep_change,
        requests.EXECUTE: approved.keep_execution,
        requests.EXPIRE: approved.keep_expiry,
        requests.EXPIRE_CHANGE: changing.keep_change_expiry,
        DELIVER: partial(_deliver, SimulatedCustodian()),
    }


async def _deliver(custodian: Custodian, bank: Bank, appointment: Appointment) -> None:
    await custody.deliver(bank, custodian, appointment)
