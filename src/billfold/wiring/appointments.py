"""Who keeps which kind of appointment."""

from billfold.domain import requests
from billfold.engine import approved
from billfold.engine.bank import Agenda
from billfold.engine.expiring import expire
from billfold.flows.counterparties import EXPIRES
from billfold.wiring.ach_appointments import ach_appointments


def appointments() -> Agenda:
    """Return every kind of appointment and whoever keeps it, in every process alike."""
    return {
        **ach_appointments(),
        EXPIRES: expire,
        requests.EXECUTE: approved.keep_execution,
        requests.EXPIRE: approved.keep_expiry,
    }
