"""Which function runs each kind of scheduled job, and which takes the files of each rail."""

from functools import partial
from types import MappingProxyType

from billfold.accounts.counterparties.rules.manage import DEPOSITS_DUE, EXPIRES
from billfold.accounts.counterparties.worker import expire_request, expire_verification
from billfold.approvals import apply_authorizations as changing
from billfold.approvals import execute_transfers as approved
from billfold.approvals.store.authorization_requests import APPLY, EXPIRE
from billfold.approvals.types import EXECUTE, EXPIRE
from billfold.ledger.bank import JobRunners
from billfold.payments.ach.inbound.booking import SUSPENSE_RETURN, answer_from_suspense
from billfold.payments.ach.inbound.files import FILES, AchGate
from billfold.payments.ach.nacha import NachaFiles
from billfold.payments.ach.outbound import windows as ach_windows
from billfold.payments.ach.outbound.micro_deposits import send_micro_deposits
from billfold.payments.ach.rules.originate import WINDOW
from billfold.payments.suspense.worker import UNCLAIMED, send_unclaimed_back
from billfold.payments.wires.inbound.suspense import send_back_held
from billfold.payments.wires.rules.send import WIRE_SEND
from billfold.sandbox.ach.network import WORLD, AchWorld, on_handed
from billfold.sandbox.simulated_custodian import SimulatedCustodian
from billfold.sandbox.wires.fedwire import WIRE_ANSWER
from billfold.treasury.custody import worker as custody
from billfold.treasury.custody.rules import APPOINTMENT as DELIVER
from billfold.wiring.fedwire import WireRoom
from billfold.wiring.worker import Errand


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
            APPLY: changing.keep_change,
            EXECUTE: approved.keep_execution,
            EXPIRE: expire_request,
            EXPIRE: expire_request,
            DELIVER: partial(custody.deliver, SimulatedCustodian()),
        }
    )


def file_gates() -> tuple[Errand, ...]:
    """Return what takes the files that arrived, per rail; each returns how many it looked at."""
    return (WireRoom().gate, AchGate(NachaFiles()).take)
