"""Who keeps which kind of appointment."""

from billfold.adapters.nacha_files import NachaFiles
from billfold.engine.bank import Agenda
from billfold.engine.unclaimed import UNCLAIMED, send_unclaimed_back
from billfold.flows.originate_ach import WINDOW
from billfold.interfaces.inbound.ach_booking import SUSPENSE_RETURN, answer_from_suspense
from billfold.interfaces.inbound.ach_files import FILES, AchGate
from billfold.interfaces.outbound.ach_windows import COLLECT, COUNT, WORLD, AchWindows
from billfold.interfaces.outbound.ach_windows import collect as collect_ach
from billfold.interfaces.outbound.ach_windows import count as count_ach
from billfold.wiring.ach_world import AchWorld


def appointments() -> Agenda:
    """Return every kind of appointment and whoever keeps it, in every process alike."""
    nacha = NachaFiles()
    gate = AchGate(nacha)
    return {
        COLLECT: collect_ach,
        COUNT: count_ach,
        FILES: gate.keep,
        SUSPENSE_RETURN: answer_from_suspense,
        UNCLAIMED: send_unclaimed_back,
        WINDOW: AchWindows(nacha).open_window,
        WORLD: AchWorld(gate).answer,
    }
