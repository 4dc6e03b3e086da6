"""What an operator does by a command is recorded in the bank's own audit log, with who did it.

The log of a customer says that the operator changed something; the bank's says which command it was and whose.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from billfold.audit.record import record
from billfold.audit.types import (NewEntry, Outcome)
from billfold.ledger.types import (Origin)
from billfold.cli.context import CliError
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection)

_OWN_LOG = "SELECT bank_customer_id FROM bank"


class OperatorAction:
    """One command as it was given: its action like `partner.add_key`, and its arguments."""

    def __init__(self, group: str | None, command: str, arguments: Mapping[str, object]) -> None:
        self._resource = (group or "bank").replace("-", "_").replace(" ", "_")
        self._action = f"{self._resource}.{command.replace('-', '_')}"
        self._arguments = {name: _shown(value) for name, value in arguments.items() if value is not None}

    async def run_with_bank(self, bank: Bank, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 - the command's
        """Do the work, which has transactions of its own, and record what came of it."""
        try:
            result = await work()
        except (BillfoldError, CliError) as failure:
            await self._record_alone(bank, "FAILURE", refused=str(failure))
            raise
        await self._record_alone(bank, "SUCCESS")
        return result

    async def run_with_connection(self, bank: Bank, work: Callable[[Connection], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Do the work and record it in one transaction; a failure is recorded alone."""
        try:
            async with bank.pool.acquire() as conn, conn.transaction():
                result = await work(conn)
                await self._record(bank, conn, "SUCCESS")
        except (BillfoldError, CliError) as failure:
            await self._record_alone(bank, "FAILURE", refused=str(failure))
            raise
        return result

    async def _record_alone(self, bank: Bank, outcome: Outcome, **details: str) -> None:
        async with bank.pool.acquire() as conn, conn.transaction():
            await self._record(bank, conn, outcome, **details)

    async def _record(self, bank: Bank, conn: Connection, outcome: Outcome, **details: str) -> None:
        entry = NewEntry(
            customer_id=await conn.fetchval(_OWN_LOG),
            origin=Origin(kind="OPERATOR", name=bank.settings.operator),
            action=self._action,
            resource_type=self._resource,
            outcome=outcome,
            details={**self._arguments, **details},
        )
        await record(conn, bank.vault, entry, now=wall_now())


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
