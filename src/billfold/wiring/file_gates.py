"""Whoever takes the files that have arrived, one for each rail."""

from billfold.engine.worker import Errand
from billfold.wiring.ach_appointments import take_ach_files
from billfold.wiring.wire_room import WireRoom


def file_gates() -> tuple[Errand, ...]:
    """Return the gates; each takes what has arrived and returns how many files it looked at."""
    return (WireRoom().gate, take_ach_files())
