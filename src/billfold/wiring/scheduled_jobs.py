"""Which function runs each kind of scheduled job, and which takes the files of each rail."""

from functools import partial
from types import MappingProxyType

from billfold.adapters.nacha_files import NachaFiles
from billfold.adapters.simulated_custodian import SimulatedCustodian
from billfold.domain import requests
from billfold.engine import approved, changing
from billfold.engine.bank import JobRunners
from billfold.engine.expiring import expire_request, expire_verification
from billfold.engine.unclaimed import UNCLAIMED, send_unclaimed_back
from billfold.engine.worker import Errand
from billfold.flows.counterparties import DEPOSITS_DUE, EXPIRES
from billfold.flows.originate_ach import WINDOW
from billfold.flows.send_wire import WIRE_SEND
from billfold.flows.transfer_bills import APPOINTMENT as DELIVER
from billfold.interfaces.inbound import custody
from billfold.interfaces.inbound.ach_booking import SUSPENSE_RETURN, answer_from_suspense
from billfold.interfaces.inbound.ach_files import FILES, AchGate
from billfold.interfaces.inbound.wire_suspense import send_back_held
from billfold.interfaces.outbound import ach_windows
from billfold.interfaces.outbound.ach_micro_deposits import send_micro_deposits
from billfold.wiring.ach_world import WORLD, AchWorld, on_handed
from billfold.wiring.simulated_wires import WIRE_ANSWER
from billfold.wiring.wire_room import WireRoom


def job_runners() -> JobRunners:
    """Return the function of every kind of job, the same in every process."""
    wires, nacha = WireRoom(), NachaFiles()
    gate = AchGate(nacha)
    return MappingProxyType(
        {
            WIRE_SEND: wires.sender.keep,
            WIRE_ANSWER: wires.world.answer,
            "wire.suspense_return": send_back_held,
            ach_windows.COLLECT: ach_windows.collect,
            ach_windows.COUNT: ach_windows.count,
            WORLD: AchWorld(gate).answer,
            FILES: gate.keep,
            SUSPENSE_RETURN: answer_from_suspense,
            UNCLAIMED: send_unclaimed_back,
            DEPOSITS_DUE: send_micro_deposits,
            WINDOW: ach_windows.AchWindows(nacha, on_handed).open_window,
            EXPIRES: expire_verification,
            requests.APPLY: changing.keep_change,
            requests.EXECUTE: approved.keep_execution,
            requests.EXPIRE: expire_request,
            requests.EXPIRE_CHANGE: expire_request,
            DELIVER: partial(custody.deliver, SimulatedCustodian()),
        }
    )


def file_gates() -> tuple[Errand, ...]:
    """Return what takes the files that arrived, per rail; each returns how many it looked at."""
    return (WireRoom().gate, AchGate(NachaFiles()).take)
