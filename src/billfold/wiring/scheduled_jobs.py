"""Which function runs each kind of scheduled job, and which takes the files of each rail."""

from functools import partial
from types import MappingProxyType

from billfold.accounts.counterparties.rules.manage import DEPOSITS_DUE, VERIFICATION_EXPIRY
from billfold.approvals import apply_authorizations as changing
from billfold.approvals import execute_transfers as approved
from billfold.approvals.expiry import expire_request, expire_verification
from billfold.approvals.store.authorization_requests import APPLY_AUTHORIZATION_REQUEST, EXPIRE_AUTHORIZATION_REQUEST
from billfold.approvals.types import EXECUTE_TRANSFER_REQUEST, EXPIRE_TRANSFER_REQUEST
from billfold.ledger.bank import JobRunners
from billfold.payments.ach.inbound.booking import SUSPENSE_RETURN_JOB, queue_suspense_return
from billfold.payments.ach.inbound.files import ACH_FILES_JOB, AchFileProcessor
from billfold.payments.ach.outbound import windows as ach_windows
from billfold.payments.ach.outbound.micro_deposits import send_micro_deposits
from billfold.payments.ach.rules.entries import ACH_WINDOW
from billfold.payments.custody import worker as custody
from billfold.payments.custody.rules import APPOINTMENT as DELIVER
from billfold.payments.suspense.worker import UNCLAIMED_RETURN_JOB, return_unclaimed
from billfold.payments.wires.inbound.suspense import queue_held_return
from billfold.payments.wires.rules.recording import WIRE_SEND
from billfold.sandbox.ach.network import SIMULATED_ANSWER, SimulatedAchNetwork, on_handed
from billfold.sandbox.simulated_custodian import SimulatedCustodian
from billfold.sandbox.wires.fedwire import WIRE_ANSWER
from billfold.wiring.fedwire import FedwireService
from billfold.wiring.worker import PeriodicTask


def job_runners() -> JobRunners:
    """Return the function of every kind of job, the same in every process."""
    wires = FedwireService()
    ach_files = AchFileProcessor()
    return MappingProxyType(
        {
            WIRE_SEND: wires.sender.run,
            WIRE_ANSWER: wires.simulation.answer,
            "wire.suspense_return": queue_held_return,
            ach_windows.COLLECT_JOB: ach_windows.collect_debits,
            ach_windows.COUNT_SETTLED_JOB: ach_windows.count_settled,
            SIMULATED_ANSWER: SimulatedAchNetwork(ach_files).answer,
            ACH_FILES_JOB: ach_files.run,
            SUSPENSE_RETURN_JOB: queue_suspense_return,
            UNCLAIMED_RETURN_JOB: return_unclaimed,
            DEPOSITS_DUE: send_micro_deposits,
            ACH_WINDOW: ach_windows.AchWindows(on_handed).open_window,
            VERIFICATION_EXPIRY: expire_verification,
            APPLY_AUTHORIZATION_REQUEST: changing.run_apply_job,
            EXECUTE_TRANSFER_REQUEST: approved.run_execute_job,
            EXPIRE_AUTHORIZATION_REQUEST: expire_request,
            EXPIRE_TRANSFER_REQUEST: expire_request,
            DELIVER: partial(custody.deliver, SimulatedCustodian()),
        }
    )


def file_receivers() -> tuple[PeriodicTask, ...]:
    """Return what takes the files that arrived, per rail; each returns how many it looked at."""
    return (FedwireService().gate, AchFileProcessor().process_all)
