"""The watcher of one chain. A round may end anywhere: the next one does the rest, and nothing is credited twice.

Transfers are shown as PENDING as one node sees them, and credited when a majority of nodes calls their block final and
reports the same transfers. The last 256 blocks are kept; where a parent does not fit, the watcher walks back.
"""

from collections.abc import Sequence

import structlog

from billfold.ledger.bank import Bank
from billfold.payments.crypto.chains.json_rpc import NodeUnavailable
from billfold.payments.crypto.chains.ports import ChainNode
from billfold.payments.crypto.chains.types import Block, Chain, TokenTransfer
from billfold.payments.crypto.deposits import store
from billfold.payments.crypto.deposits.agreement import Agreement, Nodes
from billfold.payments.crypto.deposits.booking import DepositBooking
from billfold.payments.crypto.deposits.types import Cursor, TransferStatus
from billfold.platform.clock import wall_now
from billfold.platform.database.shortage import error_summary

log = structlog.get_logger(__name__)

BLOCKS_PER_ROUND = 500
_SHALLOW = store.BLOCKS_KEPT
REORG_TOO_DEEP = "the chain was reorganized deeper than the blocks that are kept: an operator must look"


class ChainWatcher:
    """Follows one chain over its nodes."""

    def __init__(self, bank: Bank, chain: Chain, nodes: Sequence[ChainNode]) -> None:
        self._bank = bank
        self._chain = chain
        self._nodes = nodes
        self._votes = Nodes(chain, nodes)
        # None until the first round: what an earlier process reported may be over.
        self._reported: dict[str, str] | None = None

    async def run_round(self) -> int:
        """Read what is new; return how many deposits were booked."""
        try:
            return await self._round()
        except NodeUnavailable as error:
            self._votes.problems[error.host] = error.reason
            return 0
        except Exception as error:
            self._votes.problems[self._chain.name] = error_summary(error)
            raise
        finally:
            await self._report()

    async def aclose(self) -> None:
        """Close the connections to the nodes."""
        for node in self._nodes:
            await node.aclose()

    async def _round(self) -> int:
        agreed = await self._votes.agree()
        if agreed is None:
            return 0
        cursor = await store.find_cursor(self._bank.pool, self._chain.name)
        if cursor is None:
            # No address is older than this block, so nothing was sent to one before.
            cursor = Cursor(
                self._chain.name, agreed.final.number, agreed.final.number, agreed.final.hash, wall_now(), {}
            )
            await self._follow(cursor, agreed, since=agreed.final)
            await store.save_cursor(self._bank.pool, cursor)
        taken_back = await self._walk_back(cursor, agreed)
        if taken_back is None:
            return 0
        return await self._book_final(await self._preview(taken_back, agreed), agreed)

    async def _preview(self, cursor: Cursor, agreed: Agreement) -> Cursor:
        """Show what is not final yet; a node that cannot tell delays nothing that is."""
        if agreed.head.number <= cursor.final_number:
            return cursor  # nodes that fell behind say nothing of what was booked by them
        try:
            return await self._follow(cursor, agreed)
        except NodeUnavailable as error:
            self._votes.problems[error.host] = error.reason
            return cursor

    async def _walk_back(self, cursor: Cursor, agreed: Agreement) -> Cursor | None:
        """Return the cursor at a block that is still of the chain; what was booked above it is written off."""
        number = min(cursor.final_number, agreed.final.number)
        kept = {block.number: block.hash for block in await store.list_blocks(self._bank.pool, self._chain.name)}
        kept[cursor.final_number] = cursor.final_hash
        if number < cursor.final_number and number not in kept:
            return None  # the nodes are far behind
        start = number
        while True:
            now = await self._votes.agree_on_block(agreed.nodes, number)
            if now is None:
                return None
            if kept.get(number) == now.hash:
                break
            number -= 1
            if number not in kept:
                self._votes.problems[self._chain.name] = REORG_TOO_DEEP
                return None
        if number == start:
            return cursor
        log.error("chain_reorganized_after_credit", chain=self._chain.name, ancestor=number, depth=start - number)
        await DepositBooking(self._bank, self._chain, self._votes).write_off_above(number)
        async with self._bank.pool.acquire() as conn, conn.transaction():
            await store.orphan_transfers(conn, self._chain.name, number)
            await store.replace_blocks(conn, self._chain.name, number, [])
            back = cursor._replace(seen_number=number, final_number=number, final_hash=kept[number])
            await store.save_cursor(conn, back)
        return back

    async def _follow(self, cursor: Cursor, agreed: Agreement, *, since: Block | None = None) -> Cursor:
        """Read blocks up to the head of one node, and show what they bring; orphaned blocks are taken back."""
        node, name, pool = agreed.nodes[0], self._chain.name, self._bank.pool
        known = [since] if since else await store.list_blocks(pool, name)
        ancestor, blocks = await _new_blocks(node, known, first=cursor.final_number, head=agreed.head)
        first = blocks[0].number if blocks else ancestor + 1
        recipients = list(await store.load_recipients(pool))
        transfers: list[TokenTransfer] = []
        if blocks and recipients:
            tokens = [token.address for token in self._chain.tokens]
            transfers = await node.list_transfers(first, blocks[-1].number, recipients, tokens)
        async with pool.acquire() as conn, conn.transaction():
            await store.orphan_transfers(conn, name, ancestor)
            await store.replace_blocks(conn, name, ancestor, ([since] if since else []) + blocks)
            await store.save_transfers(conn, name, transfers, status=TransferStatus.PENDING, now=wall_now())
        newest = blocks[-1].number if blocks else ancestor
        if blocks and recipients:
            await self._note_wrong_tokens(node, first, newest, recipients)
        return cursor._replace(seen_number=max(newest, cursor.final_number))

    async def _note_wrong_tokens(self, node: ChainNode, first: int, last: int, recipients: Sequence[str]) -> None:
        """Show transfers of other tokens. Anybody can flood these, so a node that cannot list them stops nothing."""
        try:
            found = await node.list_transfers(first, last, recipients, None)
        except NodeUnavailable as error:
            log.warning("other_tokens_not_listed", chain=self._chain.name, error=error.reason)
            return
        others = [each for each in found if self._chain.find_token(each.token) is None]
        await store.save_wrong_tokens(self._bank.pool, self._chain.name, others, wall_now())

    async def _book_final(self, cursor: Cursor, agreed: Agreement) -> int:
        """Book what is final by now, some blocks at a time; fewer at a time where nodes refuse to list so many."""
        booked, span = 0, BLOCKS_PER_ROUND
        while cursor.final_number < agreed.final.number:
            last = min(agreed.final.number, cursor.final_number + span)
            block = await self._votes.agree_on_block(agreed.nodes, last)
            # Read after the nodes agreed: what they call final cannot be to an address that is younger.
            recipients = await store.load_recipients(self._bank.pool)
            transfers = await self._list_final(agreed, cursor.final_number + 1, last, recipients=list(recipients))
            if block is None or (transfers is None and span == 1):
                break
            if transfers is None:
                span = max(span // 4, 1)
                continue
            name, pool = self._chain.name, self._bank.pool
            await store.save_transfers(pool, name, transfers, status=TransferStatus.FINAL, now=wall_now())
            booking = DepositBooking(self._bank, self._chain, self._votes)
            booked += await booking.book_all(transfers, recipients, agreed.nodes)
            await store.orphan_unconfirmed(pool, name, last)
            seen = max(cursor.seen_number, last)
            cursor = cursor._replace(seen_number=seen, final_number=last, final_hash=block.hash, agreed_at=wall_now())
            await store.save_cursor(pool, cursor._replace(problems=self._votes.problems))
        if cursor.final_number == agreed.final.number:
            await store.save_agreed(self._bank.pool, self._chain.name, wall_now())
        return booked

    async def _list_final(
        self, agreed: Agreement, first: int, last: int, *, recipients: Sequence[str]
    ) -> tuple[TokenTransfer, ...] | None:
        return await self._votes.agree_on_transfers(agreed.nodes, first, last, recipients) if recipients else ()

    async def _report(self) -> None:
        """Log problems of nodes once, and keep them for the operator."""
        problems = self._votes.problems
        if problems != self._reported:
            for host, problem in problems.items():
                if (self._reported or {}).get(host) != problem:
                    log.error("chain_node_problem", chain=self._chain.name, node=host, problem=problem)
            await store.save_problems(self._bank.pool, self._chain.name, problems)
            self._reported = dict(problems)


async def _new_blocks(node: ChainNode, known: Sequence[Block], *, first: int, head: Block) -> tuple[int, list[Block]]:
    """Return the newest known block that is still of the node's chain, and the blocks above it, some at most.

    Blocks up to `first` are final and not looked at again.
    """
    kept = {block.number: block.hash for block in known}
    ancestor = max((number for number in kept if number <= head.number), default=first)
    while ancestor > first:
        found = await node.find_block(ancestor)
        if found is not None and found.hash == kept.get(ancestor):
            break
        ancestor -= 1
    # After a long time away only the end is followed block by block; what is final is read in any case.
    start = max(ancestor, head.number - _SHALLOW)
    blocks: list[Block] = []
    for number in range(start + 1, head.number + 1):
        block = await node.find_block(number)
        if block is None or (blocks and block.parent_hash != blocks[-1].hash):
            break  # the chain changed meanwhile; the next round sees it
        blocks.append(block)
    return ancestor, blocks
