"""`billfold crypto`: deposits on chains, and the chains themselves."""

from __future__ import annotations

from billfold.payments.crypto.chains.types import Chains
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.identity.operators.types import Operator
from billfold.ledger.types import (Origin)
from billfold.cli.command import EXAMPLE_ID, OPERATOR, Row
from billfold.cli.context import CliError
from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.proposing import propose_as_operator, said_of
from billfold.ledger.dry_run import dry_run
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.crypto.chains.rules import read_address
from billfold.payments.crypto.cli_group import crypto
from billfold.payments.crypto.deposits import store
from billfold.payments.crypto.deposits.commands import CreditDeposit
from billfold.payments.crypto.deposits.rules import UNAVAILABLE
from billfold.payments.crypto.deposits.types import ChainDeposit, DepositStatus, TransferStatus
from billfold.payments.suspense.commands import AssignFromSuspense
from billfold.payments.suspense.store import get_item
from billfold.platform import ids
from billfold.platform.database.failed_work import list_failed
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

deposits = crypto.subgroup("deposits", "What arrived at portals on chains.", example="list")

_WALLET = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
_OPEN = (DepositStatus.HELD, DepositStatus.QUESTIONED, DepositStatus.REORGED)
_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"
_DEPOSITS = ("Deposit", "Status", "Amount>", "Units>", "Asset", "Chain", "Address", "Reason", "Since", "Transaction")
_UNBOOKED = ("Status", "Units>", "Token", "Chain", "Block>", "Address", "Transaction")

DepositId = Annotated[UUID, typer.Argument(help="The deposit's id.")]


@deposits.table("list", "list --all", columns=_DEPOSITS, title="Deposits", empty="No deposit waits for anybody.")
async def list_deposits(
    bank: Bank, *, everything: Annotated[bool, typer.Option("--all", help="Include credited and carried ones.")] = False
) -> Iterable[Row]:
    """List deposits that are held, questioned or reorged after they were booked, newest first."""
    rows = await store.list_deposits(bank.pool, None if everything else [*_OPEN])
    return [
        (
            *(each.deposit_id, each.status, format_usd(each.amount), each.units, each.asset, each.chain),
            *(each.recipient, each.reason or "", each.created_at, each.tx_hash),
        )
        for each in rows
    ]


@deposits.table("pending", columns=_UNBOOKED, title="On the chains", empty="Nothing is under way.")
async def pending(bank: Bank) -> Iterable[Row]:
    """List transfers that are not final, were reorged, or are of tokens that the bank does not take."""
    shown = [TransferStatus.PENDING, TransferStatus.REORGED, TransferStatus.WRONG_TOKEN]
    rows = await store.list_transfers(bank.pool, shown)
    names = ("status", "units", "token", "chain", "block_number", "recipient", "tx_hash")
    return [tuple(each[name] for name in names) for each in rows]


@crypto.table("chains", columns=("Chain", "Seen>", "Final>", "Agreed at", "Problems"), title="Chains", empty="None.")
async def chains(bank: Bank) -> Iterable[Row]:
    """List how far each chain is read, what is wrong with its nodes, and deposits that cannot be booked."""
    failed = await list_failed(bank.pool)
    rows: list[Row] = []
    for each in await store.list_cursors(bank.pool):
        problems = [f"{node} {problem}" for node, problem in each.problems.items()]
        own = [item for item in failed if item.kind == store.failures_of(each.chain)]
        problems += [f"{item.kind} {item.item}: {item.error}" for item in own]
        rows.append((each.chain, each.seen_number, each.final_number, each.agreed_at, "; ".join(problems)))
    return rows


@deposits.command(f"release {EXAMPLE_ID}")
async def release(bank: Bank, deposit_id: DepositId) -> str:
    """Propose to credit a QUESTIONED deposit: you have seen on the chain that the tokens arrived."""
    found = await store.find_deposit(bank.pool, deposit_id)
    if found is None or found.chain not in bank.ports[Chains]:
        raise CliError("There is no such deposit on a configured chain.", "See `billfold crypto deposits list`.")
    fields = {name: getattr(found, name) for name in ChainDeposit.__struct_fields__ if hasattr(found, name)}
    command = CreditDeposit(
        caller=OPERATOR,
        key=ids.new(),
        customers=(found.customer_id,),
        origin=Origin.operator(),
        deposit_id=deposit_id,
        portal_id=found.portal_id,
        pocket_id=found.pocket_id,
        deposit=ChainDeposit(**fields, minimum_cents=1),
        is_released=True,
        references=(deposit_id, found.portal_id),
    )
    async with bank.pool.acquire() as conn:
        if (await dry_run(conn, bank, command)).outcome["status"] == UNAVAILABLE:
            raise CliError(
                "The deposit is UNAVAILABLE: its portal is closed, or it is too large.",
                "Credit another Pocket by hand.",
            )
    words = f"Credit {format_usd(found.amount)} of deposit {deposit_id} to Pocket {found.pocket_id}"
    by, reason = Operator.of_command_line(bank.settings.operator), found.reason or found.status
    return said_of(await propose_movement(bank, command, about=deposit_id, words=words, reason=reason, by=by))


@deposits.command(f"assign {EXAMPLE_ID} {_WALLET}")
async def assign(
    bank: Bank, deposit_id: DepositId, address: Annotated[str, typer.Argument(help="An open portal's address.")]
) -> str:
    """Propose to credit a HELD deposit to a crypto portal of its owner, as if it arrived when that is confirmed."""
    found = await store.find_deposit(bank.pool, deposit_id)
    entry = await bank.directory.find("wallet", (read_address(address) or address).lower())
    if found is None or entry is None or entry.customer_id != found.customer_id:
        raise CliError(f"No portal of the deposit's customer has the address {address}.", "Find one in the API.")
    item = await get_item(bank.pool, found.item_id)
    pocket_id = await bank.pool.fetchval(_POCKET, entry.customer_id, entry.object_id)
    return await propose_as_operator(
        bank,
        AssignFromSuspense,
        bank_customer_id(bank.seed),
        entry.customer_id,
        about=found.item_id,
        words=f"Credit {format_usd(item.amount)} in suspense to the wallet {address}, Pocket {pocket_id}",
        why=item.reason,
        item_id=found.item_id,
        portal_id=entry.object_id,
        pocket_id=pocket_id,
        references=(found.item_id,),
    )
