"""The next statements of the sandbox's correspondent bank, custodian and dealers, made wrong on purpose."""

import msgspec

from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.sandbox.rails.statements import SimulatedStatements, StatementBehavior
from billfold.sandbox.routes.operations import require_first_partner, sandbox_post


class StatementRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The error of the next statements; null for none."""

    behavior: StatementBehavior | None


@sandbox_post("statements/", name="sandbox_statement", refuses=("sandbox-of-another-partner",))
async def choose_statement(caller: Caller, bank: Bank, data: StatementRequest) -> None:
    """Make the statements after the next close wrong: an unknown line, a missing one, a cent or a bill off, or none."""
    await require_first_partner(bank, caller)
    await SimulatedStatements().choose(bank, data.behavior)
