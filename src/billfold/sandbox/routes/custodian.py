"""The simulated custodian's treatment of the next instructions and maturities."""

from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.sandbox.custodian import Plan, SimulatedCustodian
from billfold.sandbox.routes.operations import require_first_partner, sandbox_post


@sandbox_post("custodian/", name="sandbox_custodian", refuses=("sandbox-of-another-partner",))
async def plan_custodian(caller: Caller, bank: Bank, custodian: SimulatedCustodian, data: Plan) -> None:
    """Choose how the custodian treats the next instruction of a dealer's trade, after those planned before.

    It rejects it, fails for some days, settles some units first, confirms other money, or denies its cancellation. With
    `misses_maturity` it says nothing of the next bill that matures. Without a plan it settles on the settlement date.
    """
    await require_first_partner(bank, caller)
    custodian.plan(data)
