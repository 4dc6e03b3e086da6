"""Who keeps which kind of appointment."""

from functools import partial

from billfold.adapters.simulated_custodian import SimulatedCustodian
from billfold.domain import requests
from billfold.domain.agenda import Appointment
from billfold.engine import approved, changing
from billfold.engine.bank import Agenda, Bank
from billfold.engine.expiring import expire
from billfold.flows.counterparties import EXPIRES
from billfold.flows.transfer_bills import APPOINTMENT as DELIVER
from billfold.interfaces.inbound import custody
from billfold.ports.custodian import Custodian


def appointments() -> Agenda:
    """Return every kind of appointment and whoever keeps it, in every process alike."""
    return {
        EXPIRES: expire,
        requests.APPLY: changing.keep_change,
        requests.EXECUTE: approved.keep_execution,
        requests.EXPIRE: approved.keep_expiry,
        requests.EXPIRE_CHANGE: changing.keep_change_expiry,
        DELIVER: partial(_deliver, SimulatedCustodian()),
    }


async def _deliver(custodian: Custodian, bank: Bank, appointment: Appointment) -> None:
    await custody.deliver(bank, custodian, appointment)
