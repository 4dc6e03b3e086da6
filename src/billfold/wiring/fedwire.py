"""Fedwire: sender, file processor, and in a sandbox the simulated other side."""

from billfold.payments.wires.inbound.files import FedwireFileProcessor
from billfold.payments.wires.outbound import FedwireSender
from billfold.sandbox.wires.fedwire import SimulatedFedwire, schedule_answer


class FedwireService:
    """The parts of one process; other processes do the same beside it."""

    def __init__(self) -> None:
        self.sender = FedwireSender(schedule_answer)
        self.gate = FedwireFileProcessor()
        self.simulation = SimulatedFedwire(self.sender, self.gate)
