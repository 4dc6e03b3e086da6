"""The watcher of one chain. A round may end anywhere: the next one does the rest, and nothing is credited twice.

Transfers are shown as PENDING as one node sees them, and credited when a majority of nodes calls their block final and
reports the same transfers. The last 256 blocks are kept; where a parent does not fit, the watcher walks back.
"""

import asyncio
import zlib
from collections.abc import Sequence
from contextlib import suppress

import structlog

from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.crypto.chains import Block, Chain, Chains, TokenTransfer
from billfold.payments.crypto.deposits import store
from billfold.payments.crypto.deposits.booking import DepositBooking
from billfold.payments.crypto.deposits.reorgs import read_new_blocks, walk_back
from billfold.payments.crypto.deposits.store import Cursor, TransferStatus
from billfold.payments.crypto.nodes import Agreement, EvmNode, Nodes, NodeUnavailable
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.shortage import error_summary

log = structlog.get_logger(__name__)
BLOCKS_PER_ROUND = 500


class ChainWatcher:
    """Follows one chain over its nodes."""

    def __init__(self, bank: Bank, chain: Chain, nodes: Sequence[EvmNode]) -> None:
        self._bank, self._chain, self._nodes = bank, chain, nodes
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
            final = agreed.final
            cursor = Cursor(self._chain.name, final.number, final.number, final.hash, wall_now(), {})
            await self._follow(cursor, agreed, since=agreed.final)
            await store.save_cursor(self._bank.pool, cursor)
        on_chain = await walk_back(self._bank, self._votes, agreed, cursor)
        if on_chain is None:
            return 0
        return await self._book_final(await self._preview(on_chain, agreed), agreed)

    async def _preview(self, cursor: Cursor, agreed: Agreement) -> Cursor:
        """Show what is not final yet; a node that cannot tell delays nothing that is."""
        if agreed.head.number <= cursor.final_number:
            return cursor  # nodes that fell behind say nothing of what was booked by them
        try:
            return await self._follow(cursor, agreed)
        except NodeUnavailable as error:
            self._votes.problems[error.host] = error.reason
            return cursor

    async def _follow(self, cursor: Cursor, agreed: Agreement, *, since: Block | None = None) -> Cursor:
        """Read blocks up to the head of one node, and show what they bring; orphaned blocks are taken back."""
        node, name, pool = agreed.nodes[0], self._chain.name, self._bank.pool
        known = [since] if since else await store.list_blocks(pool, name)
        ancestor, blocks = await read_new_blocks(node, known, first=cursor.final_number, head=agreed.head)
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

    async def _note_wrong_tokens(self, node: EvmNode, first: int, last: int, recipients: Sequence[str]) -> None:
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
            first, addresses = cursor.final_number + 1, list(recipients)
            transfers = await self._votes.agree_on_transfers(agreed.nodes, first, last, addresses) if addresses else ()
            if block is None or (transfers is None and span == 1):
                break
            if transfers is None:
                span = max(span // 4, 1)
                continue
            name, pool = self._chain.name, self._bank.pool
            await store.save_transfers(pool, name, transfers, status=TransferStatus.FINAL, now=wall_now())
            booked += await DepositBooking(self._bank, self._votes).book_all(transfers, recipients, agreed.nodes)
            await store.orphan_unconfirmed(pool, name, last)
            seen = max(cursor.seen_number, last)
            cursor = cursor._replace(seen_number=seen, final_number=last, final_hash=block.hash, agreed_at=wall_now())
            await store.save_cursor(pool, cursor._replace(problems=self._votes.problems))
        if cursor.final_number == agreed.final.number:
            await store.save_agreed(self._bank.pool, self._chain.name, wall_now())
        return booked

    async def _report(self) -> None:
        """Log problems of nodes once, and keep them for the operator."""
        problems = self._votes.problems
        if problems != self._reported:
            for host, problem in problems.items():
                if (self._reported or {}).get(host) != problem:
                    log.error("chain_node_problem", chain=self._chain.name, node=host, problem=problem)
            await store.save_problems(self._bank.pool, self._chain.name, problems)
            self._reported = dict(problems)


POLL_SECONDS = 2.0
ROUND_SECONDS = 120.0
_LOCK = 0x63686E


async def record_returned(bank: Bank, at: ScheduledJob) -> None:
    """Log a deposit that an operator returned: who has the keys of the address sends the tokens, not the bank."""
    del bank
    log.warning("deposit_returned_outside", item_id=str(at.object_id))


class ChainWatchers:
    """The watchers of all chains of a bank. Of several workers one at a time watches a chain."""

    def __init__(self, poll_seconds: float = POLL_SECONDS) -> None:
        self._watchers: dict[str, ChainWatcher] = {}
        self._poll_seconds = poll_seconds
        self._next_at = 0.0

    async def __call__(self, bank: Bank) -> int:
        """Do one round of every chain; return how many deposits were booked."""
        if not bank.ports[Chains] or monotonic() < self._next_at:
            return 0
        booked = await asyncio.gather(*(self._watch(bank, chain) for chain in bank.ports[Chains].values()))
        self._next_at = monotonic() + self._poll_seconds
        return sum(booked)

    async def aclose(self) -> None:
        """Close the connections to all nodes."""
        for watcher in self._watchers.values():
            with suppress(OSError):
                await watcher.aclose()

    async def _watch(self, bank: Bank, chain: Chain) -> int:
        watcher = self._watchers.get(chain.name)
        if watcher is None:
            nodes = [EvmNode(chain, url) for url in chain.rpc_urls]
            watcher = self._watchers[chain.name] = ChainWatcher(bank, chain, nodes)
        try:
            async with asyncio.timeout(ROUND_SECONDS):
                return await _run_alone(bank, chain, watcher)
        except Exception as error:  # noqa: BLE001 - it is of this chain alone, and the next round may be better
            log.warning("chain_round_failed", chain=chain.name, error=error_summary(error))
            return 0


async def _run_alone(bank: Bank, chain: Chain, watcher: ChainWatcher) -> int:
    lock = _LOCK, zlib.crc32(chain.name.encode()) - 2**31
    async with bank.pool.acquire() as conn:
        if not await conn.fetchval("SELECT pg_try_advisory_lock($1::int, $2::int)", *lock):
            return 0
        try:
            return await watcher.run_round()
        finally:
            await conn.execute("SELECT pg_advisory_unlock($1::int, $2::int)", *lock)
