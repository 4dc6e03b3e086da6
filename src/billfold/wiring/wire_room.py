"""The wire room: what sends messages, what takes them, and in a sandbox the other side."""

from billfold.adapters.fedwire_messages import FedwireXml
from billfold.interfaces.inbound.wire_gate import WireGate
from billfold.interfaces.outbound.wire_sender import WireSender
from billfold.wiring.simulated_wires import SimulatedWires, on_handed


class WireRoom:
    """The parts of one process; other processes do the same beside it."""

    def __init__(self) -> None:
        files = FedwireXml()
        self.sender = WireSender(files, on_handed)
        self.gate = WireGate(files)
        self.world = SimulatedWires(files, self.sender, self.gate)
