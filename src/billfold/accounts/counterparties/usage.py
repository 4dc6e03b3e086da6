"""What may be done so often with counterparties: adding them, micro-deposits to an account, tries to verify one."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import store
from billfold.accounts.counterparties.commands import AddCounterparty, ConfirmDeposits
from billfold.accounts.counterparties.rules import verification_kinds
from billfold.accounts.counterparties.sealed_details import open_details
from billfold.accounts.counterparties.types import CounterpartyStatus
from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank, limit_usage
from billfold.ledger.engine.pending_command import Answer
from billfold.ledger.scheduler import bank_customer_id
from billfold.platform.clock import wall_now
from billfold.platform.database.usage_counts import forget_usage, hashed_subject, require_unused

_TRIES = "verification_tries"
_TRIES_OF_ACCOUNT = f"{_TRIES}.account"


async def limit_new_counterparty(bank: Bank, command: AddCounterparty) -> None:
    """Count a counterparty before it is added, and its deposits. Raises Refused `usage-limit-reached`."""
    owner = command.customers[0]
    if command.verification == "micro_deposits":
        account = await _account(bank, owner, command.details)
        await require_unused(bank.pool, bank.settings.limits, _TRIES_OF_ACCOUNT, account, wall_now())
        await limit_usage(bank, "micro_deposits", owner, account=account)
    await limit_usage(bank, "counterparties", owner)


async def confirm_deposits(bank: Bank, command: ConfirmDeposits) -> Answer:
    """Name the amounts of two deposits that have left the bank; a wrong pair counts for the account.

    The try is counted before it is decided, so that many at once are no more than one after the other. Raises NotFound,
    Refused `micro-deposits-not-pending`, `micro-deposits-not-sent`, `usage-limit-reached`.
    """
    owner, counterparty_id = command.customers[0], command.counterparty_id
    row = await store.get_counterparty(bank.pool, owner, counterparty_id)
    are_sent = await store.are_deposits_sent(bank.pool, bank_customer_id(bank.seed), counterparty_id)
    command = msgspec.structs.replace(command, are_sent=are_sent)
    if not are_sent or row.status != CounterpartyStatus.PENDING:
        return await bank.engine.submit(command)
    account = await _account(bank, owner, msgspec.json.decode(row.details))
    await limit_usage(bank, _TRIES, owner, account=account)
    answer = await bank.engine.submit(command)
    if answer.outcome["confirmed"]:
        await forget_usage(bank.pool, _TRIES_OF_ACCOUNT, account)
    return answer


async def _account(bank: Bank, owner: UUID, details: Mapping[str, Any]) -> UUID:
    """Return what stands for an account whoever adds it: its number is sealed for each customer."""
    opened = open_details(await bank.ports[DataKeys].of(bank.pool, owner), details)
    account = verification_kinds.account_of(opened)
    assert account is not None
    return hashed_subject(bank.vault, f"{account.bank}:{account.number.lstrip('0')}", "account")
