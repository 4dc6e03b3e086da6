"""`billfold crypto`: chains, deposits and withdrawals."""

from collections.abc import Iterable
from operator import attrgetter, itemgetter
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, OPERATOR, CommandGroup, Row, console, key_value_table, table
from billfold.cli.context import CliError
from billfold.dual_control.cli import propose_as_operator, said_of
from billfold.dual_control.decisions import propose_movement
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.ledger.dry_run import dry_run
from billfold.ledger.types import Origin
from billfold.payments.crypto.chains import Chains, read_address
from billfold.payments.crypto.deposits import store as deposit_store
from billfold.payments.crypto.deposits.rules import UNAVAILABLE, ChainDeposit, CreditDeposit, DepositStatus
from billfold.payments.crypto.deposits.store import TransferStatus
from billfold.payments.crypto.withdrawals import store as withdrawal_store
from billfold.payments.crypto.withdrawals.rules import WithdrawalStatus
from billfold.payments.crypto.withdrawals.signing import Signer
from billfold.payments.crypto.withdrawals.transactions import OperatorRequest
from billfold.payments.suspense.rules import AssignFromSuspense
from billfold.payments.suspense.store import get_item
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import list_failed
from billfold.platform.dates import format_eastern
from billfold.platform.money import format_usd

crypto = CommandGroup("crypto", "Stablecoins on chains.", example="withdrawals list")
arrived = crypto.subgroup("deposits", "What arrived at portals on chains.", example="list")
_WALLET = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
_SEEN = itemgetter("status", "units", "token", "chain", "block_number", "recipient", "tx_hash")
_AT_PLACE, _SINCE = attrgetter("units", "asset", "chain", "recipient"), attrgetter("created_at", "tx_hash")
_FROM_STATUS = attrgetter("status", "reason", "created_at", "transaction_hash")
_SIGNED = attrgetter("attempt", "intent", "transaction_hash", "max_fee")
_PROBLEM = attrgetter("problem", "problem_since", "problem_detail")
_OPEN = (DepositStatus.HELD, DepositStatus.QUESTIONED, DepositStatus.REORGED)
_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"
_DEPOSITS = ("Deposit", "Status", "Amount>", "Units>", "Asset", "Chain", "Address", "Reason", "Since", "Transaction")
_UNBOOKED = ("Status", "Units>", "Token", "Chain", "Block>", "Address", "Transaction")
DepositId = Annotated[UUID, typer.Argument(help="The deposit's id.")]


@arrived.table("list", "list --all", columns=_DEPOSITS, title="Deposits", empty="No deposits are waiting.")
async def list_deposits(
    bank: Bank, *, everything: Annotated[bool, typer.Option("--all", help="Include credited and carried ones.")] = False
) -> Iterable[Row]:
    """List deposits that are held, questioned or reorged after they were booked, newest first."""
    rows = await deposit_store.list_deposits(bank.pool, None if everything else [*_OPEN])
    return [
        (each.deposit_id, each.status, format_usd(each.amount), *_AT_PLACE(each), each.reason or "", *_SINCE(each))
        for each in rows
    ]


@arrived.table("pending", columns=_UNBOOKED, title="On the chains", empty="No transfers are pending.")
async def pending(bank: Bank) -> Iterable[Row]:
    """List transfers that are not final, were reorged, or are of tokens that the bank does not accept."""
    shown = [TransferStatus.PENDING, TransferStatus.REORGED, TransferStatus.WRONG_TOKEN]
    rows = await deposit_store.list_transfers(bank.pool, shown)
    return [_SEEN(each) for each in rows]


@crypto.table("chains", columns=("Chain", "Seen>", "Final>", "Agreed at", "Problems"), title="Chains", empty="None.")
async def chains(bank: Bank) -> Iterable[Row]:
    """List how far each chain is read, problems of its nodes, and deposits that cannot be booked."""
    failed = await list_failed(bank.pool)
    rows: list[Row] = []
    for each in await deposit_store.list_cursors(bank.pool):
        problems = [f"{node} {problem}" for node, problem in each.problems.items()]
        own = [item for item in failed if item.kind == deposit_store.failures_of(each.chain)]
        problems += [f"{item.kind} {item.item}: {item.error}" for item in own]
        rows.append((each.chain, each.seen_number, each.final_number, each.agreed_at, "; ".join(problems)))
    return rows


@arrived.command(f"release {EXAMPLE_ID}")
async def release(bank: Bank, deposit_id: DepositId) -> str:
    """Propose to credit a QUESTIONED deposit, after you have verified on the chain that the tokens arrived."""
    found = await deposit_store.find_deposit(bank.pool, deposit_id)
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
            reason = "The deposit is UNAVAILABLE: its portal is closed, or it is too large."
            raise CliError(reason, "Credit another Pocket by hand.")
    words = f"Credit {format_usd(found.amount)} of deposit {deposit_id} to Pocket {found.pocket_id}"
    by, reason = Operator.of_command_line(bank.settings.operator), found.reason or found.status
    return said_of(await propose_movement(bank, command, about=deposit_id, words=words, reason=reason, by=by))


@arrived.command(f"assign {EXAMPLE_ID} {_WALLET}")
async def assign(
    bank: Bank, deposit_id: DepositId, address: Annotated[str, typer.Argument(help="An open portal's address.")]
) -> str:
    """Propose to credit a HELD deposit to a crypto portal of its owner, as if it arrived when that is confirmed."""
    found = await deposit_store.find_deposit(bank.pool, deposit_id)
    entry = await bank.directory.find("wallet", (read_address(address) or address).lower())
    if found is None or entry is None or entry.customer_id != found.customer_id:
        raise CliError(f"No portal of the deposit's customer has the address {address}.", "Find one in the API.")
    item = await get_item(bank.pool, found.item_id)
    pocket_id = await bank.pool.fetchval(_POCKET, entry.customer_id, entry.object_id)
    return await propose_as_operator(
        bank,
        AssignFromSuspense,
        bank.own_id,
        entry.customer_id,
        about=found.item_id,
        words=f"Credit {format_usd(item.amount)} in suspense to the wallet {address}, Pocket {pocket_id}",
        why=item.reason,
        item_id=found.item_id,
        portal_id=entry.object_id,
        pocket_id=pocket_id,
        references=(found.item_id,),
    )


sent = crypto.subgroup("withdrawals", "What the bank sends on chains.", example="list --status PROCESSING")
WithdrawalId = Annotated[UUID, typer.Argument(help="The withdrawal's id, which is its transfer request's.")]
Status = Annotated[WithdrawalStatus | None, typer.Option(case_sensitive=False)]
Chain = Annotated[str, typer.Argument(help="The chain's name.")]
NextNonce = Annotated[int, typer.Argument(min=1, help="How many transactions the wallet has sent.")]
Most = Annotated[int, typer.Option("--limit", min=1, max=1_000)]
_REQUESTED = "The worker does it in its next round. `billfold crypto withdrawals show` says when it is done."


@crypto.table(
    "wallets",
    columns=("chain", "wallet", "next nonce", "fees paid (wei)", "problem", "since", "detail"),
    empty="No wallet was used yet.",
)
async def wallets(bank: Bank) -> Iterable[Row]:
    """List the wallets the bank pays from, the network fees they paid, and what prevents them from paying."""
    paid = await withdrawal_store.sum_fees(bank.pool)
    return [
        (*(key := (each.chain, each.address)), each.next_nonce, paid.get(key, 0), *_PROBLEM(each))
        for each in await withdrawal_store.list_wallets(bank.pool)
    ]


@crypto.command("accept-nonces ETHEREUM 12")
async def accept_nonces(bank: Bank, chain: Chain, next_nonce: NextNonce) -> str:
    """Continue with a later nonce, after the wallet's key was used elsewhere (`USED_ELSEWHERE`)."""
    known = any(each.chain == chain for each in await withdrawal_store.list_wallets(bank.pool))
    if not known or bank.ports.get(Signer) is None:
        raise CliError(f"The bank has no wallet on {chain}.", "Run `billfold crypto wallets`.")
    await withdrawal_store.skip_nonces(bank.pool, chain, await bank.ports[Signer].address(), next_nonce)
    return f"The next nonce on {chain} is {next_nonce}, unless it was beyond that already."


@sent.table(
    "list --status PROCESSING",
    columns=("withdrawal", "chain", "amount", "status", "reason", "since", "transaction"),
    empty="No withdrawal found.",
)
async def list_withdrawals(bank: Bank, status: Status = None, limit: Most = 100) -> Iterable[Row]:
    """List withdrawals, newest first."""
    rows = await withdrawal_store.list_withdrawals(bank.pool, status, limit)
    return [(each.withdrawal_id, each.chain, format_usd(each.amount), *_FROM_STATUS(each)) for each in rows]


@sent.view(f"show {EXAMPLE_ID}")
async def show(bank: Bank, withdrawal_id: WithdrawalId) -> None:
    """Show a withdrawal, its nonce, and every transaction signed for it."""
    row = await withdrawal_store.get_withdrawal(bank.pool, withdrawal_id)
    found = await withdrawal_store.find_transaction(bank.pool, row.customer_id, row.withdrawal_id)
    shown: list[tuple[str, object]] = [
        ("Customer", row.customer_id),
        ("Amount", f"{format_usd(row.amount)} in {row.asset} on {row.chain}"),
        ("Status", f"{row.status} {row.reason or ''}".strip()),
    ]
    if found is not None:
        shown += [
            ("On the chain", found.state),
            ("Nonce", "-" if found.nonce is None else f"{found.nonce} of {found.wallet}"),
            ("Block", "-" if found.block_number is None else f"{found.block_number} {found.block_hash}"),
            ("Network fee", "-" if found.fee_wei is None else f"{found.fee_wei} wei"),
            ("Requested by an operator", found.requested or "-"),
        ]
    console.print(key_value_table(shown))
    key = (row.customer_id, row.withdrawal_id)
    signed = (await withdrawal_store.list_signatures(bank.pool, [key])).get(key, [])
    rows = [(*_SIGNED(each), format_eastern(each.sent_at) if each.sent_at else "-") for each in signed]
    if rows:
        console.print(table("Signed", ("Attempt", "Intent", "Hash", "Wei per gas>", "Sent"), rows))


@sent.command(f"replace {EXAMPLE_ID}")
async def replace(bank: Bank, withdrawal_id: WithdrawalId) -> str:
    """Resend a withdrawal with the same nonce, for an eighth more per unit of gas."""
    await _request_transaction(bank, withdrawal_id, OperatorRequest.REPLACE)
    return _REQUESTED


@sent.command(f"cancel {EXAMPLE_ID}")
async def cancel(bank: Bank, withdrawal_id: WithdrawalId) -> str:
    """Return a withdrawal: at once if nothing was signed, else by a transaction with the same nonce that pays nothing.

    If the paying transaction is mined first, that one counts.
    """
    row = await withdrawal_store.get_withdrawal(bank.pool, withdrawal_id)
    if row.is_open and await withdrawal_store.refuse_withdrawal(bank.pool, row, "CANCELED", now=wall_now()):
        return "Nothing was signed for it, and nothing will be: the worker returns the money in its next round."
    await _request_transaction(bank, withdrawal_id, OperatorRequest.CANCEL)
    return _REQUESTED


async def _request_transaction(bank: Bank, withdrawal_id: UUID, wanted: OperatorRequest) -> None:
    row = await withdrawal_store.get_withdrawal(bank.pool, withdrawal_id)
    if not await withdrawal_store.request_transaction(bank.pool, row, wanted, now=wall_now()):
        reason = f"No transaction of this withdrawal can be replaced: it is {row.status}."
        raise CliError(reason, "Run `billfold crypto withdrawals show`.")
