"""Fedwire ISO 20022 messages: written as the service takes them, read as it sends them.

Owns where each thing stands in the XML. Never decides what becomes of a wire: it takes all
messages of a file or none.
"""

from billfold.adapters.fedwire_messages.envelope import FedwireXml, read_wires, write_wires
from billfold.ports.fedwire import FedwireRefused, Mistake

__all__ = ["FedwireRefused", "FedwireXml", "Mistake", "read_wires", "write_wires"]
