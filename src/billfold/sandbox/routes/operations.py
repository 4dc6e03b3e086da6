"""Declares operations of the sandbox, and derives ids from a request."""

from typing import Unpack
from uuid import UUID

from billfold.apis.partner_api import PartnerApi, partner_operations
from billfold.events.broadcaster import EventBroadcaster
from billfold.http.operations import TOKEN, Declare, Operation, Options, operations_below, post
from billfold.identity.partners.caller import Caller
from billfold.identity.partners.store import get_first_partner_id
from billfold.ledger.bank import Bank
from billfold.platform.errors import Refused
from billfold.platform.ids import command_id, derive
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.control.faults import FaultStore
from billfold.sandbox.control.socket import SandboxControl
from billfold.sandbox.custodian import FOLDER, SimulatedCustodian
from billfold.sandbox.rails.ach_network import SimulatedAchNetwork
from billfold.sandbox.rails.fedwire import SimulatedFedwire


def sandbox_post(path: str, **options: Unpack[Options]) -> Declare:
    """Declare an operation below `/api/v1/sandbox/`, called with only a token and answered with 202."""
    usual: Options = {"tag": "sandbox", "status": 202}
    return post(f"/api/v1/sandbox/{path}", TOKEN, **(usual | options))


async def require_first_partner(bank: Bank, caller: Caller) -> None:
    """Raise Refused `sandbox-of-another-partner` unless the caller belongs to the bank's first partner."""
    if caller.partner_id != await get_first_partner_id(bank.pool):
        raise Refused("sandbox-of-another-partner", "The clock and the forks of a sandbox belong to its first partner.")


def request_id(caller: Caller) -> UUID:
    """Return the id of a request: the same when the request is repeated under its key."""
    return command_id(f"sandbox:{caller.user_id}", caller.key)


def derived_id(bank: Bank, caller: Caller, nth: int = 0) -> UUID:
    """Return the id of the nth object that a request creates."""
    return derive(bank.seed, request_id(caller), nth)


def sandbox_operations() -> list[Operation]:
    """Return the operations that only a sandbox has."""
    return operations_below("billfold.sandbox")


def build_sandbox_app() -> PartnerApi:
    """Return the Partner API with the sandbox's operations, without a bank yet."""
    return PartnerApi(partner_operations(sandbox_operations()))


def open_sandbox(api: PartnerApi, bank: Bank, broadcaster: EventBroadcaster | None = None) -> None:
    """Connect such an API to a bank and its simulators."""
    api.open_bank(
        bank,
        broadcaster,
        stepping=ClockStepper(bank),
        fedwire=SimulatedFedwire(),
        custodian=SimulatedCustodian(bank.settings.state_dir / FOLDER),
        network=SimulatedAchNetwork(),
        control=SandboxControl(bank.settings.state_dir),
        faults=FaultStore(bank.settings.state_dir),
    )
