"""The Partner API of a sandbox: with the sandbox's own operations, and the simulated world behind it."""

from billfold.apis.partner_api import PartnerApi, partner_operations
from billfold.events.stream.broadcaster import EventBroadcaster
from billfold.http.operations import Operation, operations_below
from billfold.ledger.bank import Bank
from billfold.sandbox.ach.network import SimulatedAchNetwork
from billfold.sandbox.clock.stepper import ClockStepper
from billfold.sandbox.control.socket import SandboxControl
from billfold.sandbox.wires.fedwire import SimulatedFedwire


def sandbox_operations() -> list[Operation]:
    """Return the operations that only a sandbox has."""
    return operations_below("billfold.sandbox")


def build_sandbox_app() -> PartnerApi:
    """Return the Partner API with the sandbox's operations, and no bank behind it yet."""
    return PartnerApi(partner_operations(sandbox_operations()))


def open_sandbox(api: PartnerApi, bank: Bank, broadcaster: EventBroadcaster | None = None) -> None:
    """Let such an API serve a bank and its simulated world."""
    api.open_bank(
        bank,
        broadcaster,
        stepping=ClockStepper(bank),
        fedwire=SimulatedFedwire(),
        network=SimulatedAchNetwork(),
        control=SandboxControl(bank.settings.state_dir),
    )
