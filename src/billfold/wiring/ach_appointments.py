"""Who keeps the appointments of the ACH network, and who takes what it brings."""

from billfold.adapters.nacha_files import NachaFiles
from billfold.engine.bank import Agenda
from billfold.engine.unclaimed import UNCLAIMED, send_unclaimed_back
from billfold.engine.worker import Errand
from billfold.flows.counterparties import DEPOSITS_DUE
from billfold.flows.originate_ach import WINDOW
from billfold.interfaces.inbound.ach_booking import SUSPENSE_RETURN, answer_from_suspense
from billfold.interfaces.inbound.ach_files import FILES, AchGate
from billfold.interfaces.outbound.ach_micro_deposits import send_micro_deposits
from billfold.interfaces.outbound.ach_windows import COLLECT, COUNT, WORLD, AchWindows
from billfold.interfaces.outbound.ach_windows import collect as collect_ach
from billfold.interfaces.outbound.ach_windows import count as count_ach
from billfold.wiring.ach_world import AchWorld


def ach_appointments() -> Agenda:
    """Return the kinds of appointments of ACH entries and files, and whoever keeps each."""
    nacha = NachaFiles()
    gate = AchGate(nacha)
    return {
        COLLECT: collect_ach,
        COUNT: count_ach,
        FILES: gate.keep,
        SUSPENSE_RETURN: answer_from_suspense,
        UNCLAIMED: send_unclaimed_back,
        DEPOSITS_DUE: send_micro_deposits,
        WINDOW: AchWindows(nacha).open_window,
        WORLD: AchWorld(gate).answer,
    }


def take_ach_files() -> Errand:
    """Return the errand of a worker that takes files that have arrived."""
    return AchGate(NachaFiles()).take
