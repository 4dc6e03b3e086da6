"""The wire room: what sends messages, what takes them, and in a sandbox the other side."""

from billfold.payments.wires.inbound.files import WireGate
from billfold.payments.wires.iso20022.envelope import FedwireXml
from billfold.payments.wires.sender import WireSender
from billfold.sandbox.wires.fedwire import SimulatedWires, on_handed


class WireRoom:
    """The parts of one process; other processes do the same beside it."""

    def __init__(self) -> None:
        files = FedwireXml()
        self.sender = WireSender(files, on_handed)
        self.gate = WireGate(files)
        self.world = SimulatedWires(files, self.sender, self.gate)
