"""Closing an inbound file of which something can never be booked: one operator proposes it, and another confirms it."""

from uuid import UUID

from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.types import FreezeProposal
from billfold.identity.operators import Operator, Power
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Rail
from billfold.payments.files.commands import CloseRailFile
from billfold.payments.files.retries import retry_state_of
from billfold.payments.files.store import find_file
from billfold.platform import ids
from billfold.platform.errors import Refused


async def propose_close(bank: Bank, file_id: UUID, *, reason: str, by: Operator) -> FreezeProposal:
    """Propose to complete a file that waits, without what cannot be booked of it.

    `reason` says what was done about that: it stays in the file's report.

    Raises NotFound, InvalidInput, Refused `file-not-waiting`, `proposal-open`.
    """
    by.require(Power.MOVE_MONEY)
    file = await find_file(bank.pool, file_id)
    failure = retry_state_of(file)
    if failure is None:
        raise Refused("file-not-waiting", f"{file.name} is {file.state}: nothing of it waits.")
    command = CloseRailFile(
        caller="operator",
        key=ids.new(),
        customers=(bank_customer_id(bank.seed),),
        origin=by.origin,
        file_id=file_id,
        rail=Rail(file.rail),
        reason=reason,
    )
    words = f"Close {file.rail} file {file.name}, of which this is never booked: {failure.words()}"
    return await propose_movement(bank, command, about=file_id, words=words, reason=reason, by=by)
