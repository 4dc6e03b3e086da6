"""`billfold crypto withdrawals`: what was sent on chains, and what waits."""

from __future__ import annotations

from billfold.payments.crypto.withdrawals.ports import Signer
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, Row
from billfold.cli.context import CliError
from billfold.cli.output import console, key_value_table, table
from billfold.payments.crypto.cli_group import crypto
from billfold.payments.crypto.withdrawals.store import transactions as store
from billfold.payments.crypto.withdrawals.store import withdrawals as withdrawal_store
from billfold.payments.crypto.withdrawals.types import OperatorRequest, WithdrawalStatus
from billfold.platform.clock import wall_now
from billfold.platform.dates import format_eastern
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

group = crypto.subgroup("withdrawals", "What the bank sends on chains.", example="list --status PROCESSING")

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
    """List the wallets the bank pays from, the network fees they paid, and what keeps one from paying."""
    paid = await store.sum_fees(bank.pool)
    return [
        (
            each.chain,
            each.address,
            each.next_nonce,
            paid.get((each.chain, each.address), 0),
            each.problem,
            each.problem_since,
            each.problem_detail,
        )
        for each in await store.list_wallets(bank.pool)
    ]


@crypto.command("accept-nonces ETHEREUM 12")
async def accept_nonces(bank: Bank, chain: Chain, next_nonce: NextNonce) -> str:
    """Go on with a later nonce, after the wallet's key was used elsewhere (`USED_ELSEWHERE`)."""
    wallets_of_chain = [each for each in await store.list_wallets(bank.pool) if each.chain == chain]
    if not wallets_of_chain or bank.ports.get(Signer) is None:
        raise CliError(f"The bank has no wallet on {chain}.", "Run `billfold crypto wallets`.")
    address = await bank.ports.get(Signer).address()
    for each in wallets_of_chain:
        if each.address == address:
            await store.skip_nonces(bank.pool, each, next_nonce)
    return f"The next nonce on {chain} is {next_nonce}, unless it was beyond that already."


@group.table(
    "list --status PROCESSING",
    columns=("withdrawal", "chain", "amount", "status", "reason", "since", "transaction"),
    empty="No withdrawal found.",
)
async def list_withdrawals(bank: Bank, status: Status = None, limit: Most = 100) -> Iterable[Row]:
    """List withdrawals, the newest first."""
    rows = await withdrawal_store.list_withdrawals(bank.pool, status, limit)
    return [
        (
            row.withdrawal_id,
            row.chain,
            format_usd(row.amount),
            row.status,
            row.reason,
            row.created_at,
            row.transaction_hash,
        )
        for row in rows
    ]


@group.view(f"show {EXAMPLE_ID}")
async def show(bank: Bank, withdrawal_id: WithdrawalId) -> None:
    """Show a withdrawal, its nonce, and every transaction that was signed for it."""
    row = await withdrawal_store.get_withdrawal(bank.pool, withdrawal_id)
    found = await store.find_transaction(bank.pool, row)
    shown: list[tuple[str, object]] = [
        ("Customer", row.customer_id),
        ("Amount", f"{format_usd(row.amount)} in {row.asset} on {row.chain}"),
        ("Status", f"{row.status} {row.reason or ''}".strip()),
    ]
    if found is not None:
        shown += [
            ("On the chain", found.state),
            ("Nonce", "-" if found.reservation is None else f"{found.reservation.nonce} of {found.reservation.wallet}"),
            ("Block", "-" if found.block_number is None else f"{found.block_number} {found.block_hash}"),
            ("Network fee", "-" if found.fee_wei is None else f"{found.fee_wei} wei"),
            ("Requested by an operator", found.requested or "-"),
        ]
    console.print(key_value_table(shown))
    key = (row.customer_id, row.withdrawal_id)
    signed = (await store.list_signatures(bank.pool, [key])).get(key, [])
    rows = [
        (
            each.attempt,
            each.intent,
            each.transaction_hash,
            each.max_fee,
            format_eastern(each.sent_at) if each.sent_at else "-",
        )
        for each in signed
    ]
    if rows:
        console.print(table("Signed", ("Attempt", "Intent", "Hash", "Wei per gas>", "Sent"), rows))


@group.command(f"replace {EXAMPLE_ID}")
async def replace(bank: Bank, withdrawal_id: WithdrawalId) -> str:
    """Send a withdrawal again under the same nonce, for an eighth more per unit of gas."""
    await _request(bank, withdrawal_id, OperatorRequest.REPLACE)
    return _REQUESTED


@group.command(f"cancel {EXAMPLE_ID}")
async def cancel(bank: Bank, withdrawal_id: WithdrawalId) -> str:
    """Return a withdrawal: at once if nothing was signed, else by a transaction of the same nonce that pays nothing.

    If the one that pays is mined first, it counts.
    """
    row = await withdrawal_store.get_withdrawal(bank.pool, withdrawal_id)
    if row.is_open and await store.refuse(bank.pool, row, "CANCELED", now=wall_now()):
        return "Nothing was signed for it, and nothing will be: the worker returns the money in its next round."
    await _request(bank, withdrawal_id, OperatorRequest.CANCEL)
    return _REQUESTED


async def _request(bank: Bank, withdrawal_id: UUID, wanted: OperatorRequest) -> None:
    row = await withdrawal_store.get_withdrawal(bank.pool, withdrawal_id)
    if not await store.request(bank.pool, row, wanted, now=wall_now()):
        raise CliError(
            f"No transaction of this withdrawal can be replaced: it is {row.status}.",
            "Run `billfold crypto withdrawals show`.",
        )
