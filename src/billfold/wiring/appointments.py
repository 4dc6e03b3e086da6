"""Who keeps which kind of appointment."""

from billfold.domain import requests
from billfold.engine import approved, changing
from billfold.engine.bank import Agenda
from billfold.engine.expiring import expire
from billfold.flows.counterparties import EXPIRES


def appointments() -> Agenda:
    """Return every kind of appointment and whoever keeps it, in every process alike."""
    return {
        EXPIRES: expire,
        requests.APPLY: changing.keep_change,
        requests.EXECUTE: approved.keep_execution,
        requests.EXPIRE: approved.keep_expiry,
        requests.EXPIRE_CHANGE: changing.keep_change_expiry,
    }
