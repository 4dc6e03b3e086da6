"""Reorganizations of a chain: the bank bears credits from removed blocks until the deposit is on the chain again."""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import structlog

from billfold.ledger.bank import Bank
from billfold.payments.crypto.chains import Block, TokenTransfer
from billfold.payments.crypto.deposits import rules, store
from billfold.payments.crypto.nodes import Agreement, EvmNode, Nodes
from billfold.payments.suspense.rules import ReturnFromSuspense, SuspenseStatus
from billfold.payments.suspense.store import get_item
from billfold.platform.errors import Refused
from billfold.platform.ids import command_id

log = structlog.get_logger(__name__)

CALLER = "chain-watcher"
REORG_TOO_DEEP = "the chain was reorganized deeper than the blocks that are kept: an operator must check"


async def walk_back(bank: Bank, votes: Nodes, agreed: Agreement, cursor: store.Cursor) -> store.Cursor | None:
    """Return the cursor at a block that is still part of the chain; deposits booked above it are written off."""
    name = cursor.chain
    start = number = min(cursor.final_number, agreed.final.number)
    kept = {block.number: block.hash for block in await store.list_blocks(bank.pool, name)}
    kept[cursor.final_number] = cursor.final_hash
    if number not in kept:
        return None  # the nodes are far behind
    while (now := await votes.agree_on_block(agreed.nodes, number)) is not None and kept[number] != now.hash:
        number -= 1
        if number not in kept:
            votes.problems[name] = REORG_TOO_DEEP
            return None
    if now is None or number == start:
        return now and cursor
    log.error("chain_reorganized_after_credit", chain=name, ancestor=number, depth=start - number)
    await write_off_above(bank, name, number)
    async with bank.pool.acquire() as conn, conn.transaction():
        await store.orphan_transfers(conn, name, number)
        await store.replace_blocks(conn, name, number, [])
        back = cursor._replace(seen_number=number, final_number=number, final_hash=kept[number])
        await store.save_cursor(conn, back)
    return back


async def read_new_blocks(node: EvmNode, known: Sequence[Block], *, first: int, head: Block) -> tuple[int, list[Block]]:
    """Return the newest known block that is still on the node's chain, and the blocks above it, up to a limit.

    Blocks up to `first` are final and not checked again.
    """
    kept = {block.number: block.hash for block in known}
    ancestor = max((number for number in kept if number <= head.number), default=first)
    while ancestor > first:
        found = await node.find_block(ancestor)
        if found is not None and found.hash == kept.get(ancestor):
            break
        ancestor -= 1
    # After a long pause only the end is followed block by block; final blocks are read in any case.
    start = max(ancestor, head.number - store.BLOCKS_KEPT)
    blocks: list[Block] = []
    for number in range(start + 1, head.number + 1):
        block = await node.find_block(number)
        if block is None or (blocks and block.parent_hash != blocks[-1].hash):
            break  # the chain changed in the meantime; the next round sees it
        blocks.append(block)
    return ancestor, blocks


async def write_off_replaced(bank: Bank, votes: Nodes, agreed: Agreement, cursor: store.Cursor) -> bool:
    """Write off deposits above the cursor whose block was replaced since; False if the nodes do not know it.

    A round that was interrupted has booked them.
    """
    numbers = {row.block_number for row in await store.list_above(bank.pool, cursor.chain, cursor.final_number)}
    blocks = [await votes.agree_on_block(agreed.nodes, number) for number in sorted(numbers)]
    present = {block.hash for block in blocks if block is not None}
    if None in blocks:
        return False
    if numbers:
        await write_off_above(bank, cursor.chain, cursor.final_number, present=present)
    return True


async def write_off_above(bank: Bank, chain: str, number: int, *, present: Collection[str] = ()) -> None:
    """Write off the deposits in blocks above a number, but not those in blocks that are part of the chain."""
    failed: list[Exception] = []
    for row in await store.list_above(bank.pool, chain, number):
        if row.block_hash in present:
            continue
        try:
            is_released = row.status == rules.DepositStatus.HELD and await _is_assigned(bank, row)
            command = rules.WriteOffDeposit(
                **_command_fields(bank, row, "crypto-reorg", row.block_hash), is_released=is_released
            )
            await bank.engine.submit(command)
            log.error("deposit_reorged_after_credit", deposit_id=str(row.deposit_id), amount=row.amount)
        except Exception as error:  # noqa: BLE001 - raised after the others are written off
            failed.append(error)
    if failed:
        raise failed[0]


async def _is_assigned(bank: Bank, row: rules.CryptoDepositRow) -> bool:
    """Take a held deposit out of suspense, unless an operator did; return whether it was credited before."""
    command = ReturnFromSuspense(
        caller=CALLER,
        key=command_id("crypto-return", row.item_id),
        customers=(bank.own_id,),
        item_id=row.item_id,
        reason="REORGED",
        references=(row.item_id,),
    )
    try:
        await bank.engine.submit(command)
    except Refused:
        return (await get_item(bank.pool, row.item_id)).status == SuspenseStatus.ASSIGNED
    return False


async def find_written_off(bank: Bank, chain: str, transfer: TokenTransfer) -> rules.CryptoDepositRow | None:
    """Return the written-off deposit that a transfer brings back, or None."""
    for row in await store.list_written_off(bank.pool, chain, transfer.tx_hash):
        if (row.token, row.recipient, row.units) == (transfer.token, transfer.recipient, str(transfer.units)):
            is_held = row.reason == rules.DepositStatus.HELD
            reason = rules.HoldReason.REORGED if is_held else None
            return msgspec.structs.replace(row, reason=reason, block_hash=transfer.block_hash)
    return None


async def restore_deposit(bank: Bank, row: rules.CryptoDepositRow, transfer: TokenTransfer) -> None:
    """Reverse the loss of a deposit that is on the chain again."""
    place = {name: getattr(transfer, name) for name in ("block_number", "block_hash", "log_index")}
    await bank.engine.submit(
        rules.RestoreDeposit(**_command_fields(bank, row, "crypto-restore", transfer.block_hash), **place)
    )


def _command_fields(bank: Bank, row: rules.CryptoDepositRow, kind: str, block_hash: str) -> dict[str, Any]:
    """Return the fields of a command on a deposit; each block causes it only once."""
    return {
        "caller": CALLER,
        "key": command_id(f"{kind}:{block_hash}", row.deposit_id),
        "customers": (row.customer_id, bank.own_id),
        "references": (row.deposit_id,),
        "deposit_id": row.deposit_id,
    }
