"""The watcher of one chain reads and books deposits. An interrupted round is completed by the next one.

Transfers are shown as PENDING as soon as one node has them, and credited when a majority of nodes reports their block
as final and the same transfers. The last 256 blocks are kept; if a parent does not match, the watcher walks back.
"""

import asyncio
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction, Rail, ScheduledJob
from billfold.payments.crypto.chains import Block, Chain, Chains, TokenTransfer, cents_of
from billfold.payments.crypto.deposits import store
from billfold.payments.crypto.deposits.reorgs import (
    CALLER,
    find_written_off,
    read_new_blocks,
    restore_deposit,
    walk_back,
    write_off_replaced,
)
from billfold.payments.crypto.deposits.rules import (
    CENTS_MAX,
    UNAVAILABLE,
    ChainDeposit,
    CreditDeposit,
    HoldReason,
    RecordUnbooked,
    details_of,
)
from billfold.payments.crypto.deposits.store import Cursor, Recipient, TransferStatus
from billfold.payments.crypto.nodes import Agreement, EvmNode, Nodes, NodeUnavailable
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.background_work import locked, read_put_aside
from billfold.platform.database.distribution import await_prepared
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.ids import command_id, derive
from billfold.screening.screening import CurrentList

_UNBOOKED = frozenset(
    {HoldReason.BALANCE_DIFFERS, HoldReason.BALANCE_UNKNOWN, HoldReason.AMOUNT_TOO_LARGE, HoldReason.OWN_ADDRESS}
)
"""Reasons that leave open whether anything arrived."""


class DepositBooking:
    """Books the deposits of one chain."""

    def __init__(self, bank: Bank, votes: Nodes) -> None:
        self._bank, self._chain, self._votes = bank, votes.chain, votes

    async def book_all(
        self, transfers: Sequence[TokenTransfer], recipients: Mapping[str, Recipient], nodes: Sequence[EvmNode]
    ) -> int:
        """Book transfers that these nodes report as final; return how many. Raises NodeUnavailable if too few answer.

        One that fails is deferred and tried again later; the others are booked.
        """
        aside = await read_put_aside(self._bank.pool, store.failures_of(self._chain.name), wall_now())
        failed: dict[str, Exception] = {}
        again = await store.list_failed_transfers(self._bank.pool, self._chain.name, list(aside.due))
        for at_place in _by_place((*again, *transfers)):
            try:
                doubt = await self._doubt(at_place, nodes)
                for transfer in at_place:
                    # A transfer between two of the bank's addresses was credited when it came to the first.
                    reason = HoldReason.OWN_ADDRESS if transfer.sender in recipients else doubt
                    await self._book(transfer, recipients[transfer.recipient], reason)
            except NodeUnavailable:
                raise
            except Exception as error:
                if is_shortage(error):
                    raise
                failed |= {store.name_of(each): error for each in at_place}
        for name, cause in failed.items():
            log.error("deposit_failed", chain=self._chain.name, transfer=name, error=error_summary(cause))
        await aside.record(self._bank.pool, failed, wall_now())
        return len(transfers)

    async def _doubt(self, at_place: Sequence[TokenTransfer], nodes: Sequence[EvmNode]) -> HoldReason | None:
        """Compare the logged transfers to an address with its balance, because a token's logs may be false."""
        logged = sum(each.units for each in at_place)
        received = await self._votes.ask(nodes, partial(_units_received, place=_place(at_place[0]), logged=logged))
        if len(received) < self._votes.quorum:
            raise NodeUnavailable(self._chain.name, "too few nodes report the balance of an address")
        if None in received.values():
            return HoldReason.BALANCE_UNKNOWN
        has_less = min(each for each in received.values() if each is not None) < logged
        return HoldReason.BALANCE_DIFFERS if has_less else None

    async def _reason_to_hold(self, transfer: TokenTransfer, owner: Recipient) -> HoldReason | None:
        if cents_of(transfer.units, self._deposit(transfer).decimals).cents > CENTS_MAX:
            return HoldReason.AMOUNT_TOO_LARGE
        if await self._bank.ports[CurrentList].has_wallet(self._bank.pool, transfer.sender):
            return HoldReason.SENDER_LISTED
        if owner.chain != self._chain.name:
            return HoldReason.OTHER_CHAIN
        return None if owner.is_open else HoldReason.PORTAL_CLOSED

    async def _book(self, transfer: TokenTransfer, owner: Recipient, doubt: HoldReason | None) -> None:
        bank, deposit = self._bank, self._deposit(transfer)
        if await store.is_booked(bank.pool, self._chain.name, transfer) or not transfer.units:
            return
        back = await find_written_off(bank, self._chain.name, transfer)
        if back is not None:
            if back.reason is not None:
                await self._hold(back.item_id, back.deposit_id, deposit, amount=back.amount, reason=back.reason)
            await restore_deposit(bank, back, transfer)
            return
        reason, deposit_id = doubt or await self._reason_to_hold(transfer, owner), await self._new_id(transfer)
        fields: dict[str, Any] = {
            "caller": CALLER,
            "customers": (owner.customer_id,),
            "references": (deposit_id, owner.portal_id),
            "deposit_id": deposit_id,
            "portal_id": owner.portal_id,
            "pocket_id": owner.pocket_id,
            "deposit": deposit,
        }
        if reason is None:
            credited = await bank.engine.submit(CreditDeposit(**fields, key=deposit_id))
            if credited.outcome["status"] != UNAVAILABLE:
                return
            reason = HoldReason.PORTAL_CLOSED
        amount = 0 if reason in _UNBOOKED else cents_of(transfer.units, deposit.decimals).cents
        if amount:
            await self._hold(deposit_id, deposit_id, deposit, amount=amount, reason=reason)
        key = command_id("crypto-unbooked", deposit_id)
        await bank.engine.submit(RecordUnbooked(**fields, key=key, amount=amount, reason=reason))
        log.warning("deposit_not_credited", deposit_id=str(deposit_id), amount=amount, reason=reason)

    async def _hold(self, item_id: UUID, deposit_id: UUID, deposit: ChainDeposit, *, amount: int, reason: str) -> None:
        details = {"description": f"{deposit.asset} on {deposit.chain}", "details": details_of(deposit_id, deposit)}
        item = UnclaimedPayment(item_id, Direction.CREDIT, amount, reason=reason, details=details)
        await hold_unclaimed_payments(self._bank, [item], rail=Rail.CRYPTO, caller=CALLER)

    def _deposit(self, transfer: TokenTransfer) -> ChainDeposit:
        token = self._chain.find_token(transfer.token)
        assert token is not None, transfer.token
        return ChainDeposit(
            chain=self._chain.name,
            **transfer._replace(units=0)._asdict() | {"units": str(transfer.units)},
            asset=token.asset,
            decimals=token.decimals,
            minimum_cents=token.minimum_cents,
        )

    async def _new_id(self, transfer: TokenTransfer) -> UUID:
        """Return the id of a deposit; a written-off one keeps its id if another has taken its position."""
        name = f"crypto-deposit:{self._chain.chain_id}:{transfer.tx_hash}"
        deposit_id = derive(self._bank.seed, command_id(name, str(transfer.log_index)), 0)
        if await store.find_deposit(self._bank.pool, deposit_id) is None:
            return deposit_id
        return derive(self._bank.seed, command_id(f"{name}:{transfer.block_hash}", str(transfer.log_index)), 0)


async def _units_received(node: EvmNode, place: tuple[str, str, int], logged: int) -> int | None:
    """Return the units that an address received in a block, by its balance; None if the node does not know.

    Outgoing units of the same block are added; they are looked up only if the balance grew by less than `logged`.
    """
    token, address, block = place
    after, before = await node.balance(token, address, block), await node.balance(token, address, block - 1)
    if after is None or before is None:
        return None
    grown = after - before
    return grown if grown >= logged else grown + await node.units_sent(token, address, block)


def _by_place(transfers: Iterable[TokenTransfer]) -> Iterable[list[TokenTransfer]]:
    """Group transfers by token, address and block, because nodes report balances only per block."""
    places: defaultdict[tuple[str, str, int], dict[int, TokenTransfer]] = defaultdict(dict)
    for transfer in transfers:
        places[_place(transfer)][transfer.log_index] = transfer
    return [[*each.values()] for each in places.values()]


def _place(transfer: TokenTransfer) -> tuple[str, str, int]:
    return transfer.token, transfer.recipient, transfer.block_number


log = structlog.get_logger(__name__)
BLOCKS_PER_ROUND = 500


class ChainWatcher:
    """Follows one chain through its nodes."""

    def __init__(self, bank: Bank, chain: Chain, nodes: Sequence[EvmNode]) -> None:
        self._bank, self._chain, self._nodes = bank, chain, nodes
        self._votes = Nodes(chain, nodes)
        # None until the first round: problems reported by an earlier process may be over.
        self._reported: dict[str, str] | None = None

    async def run_round(self) -> int:
        """Read new blocks; return how many deposits were booked."""
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
            # No address is older than this block, so none can have earlier transfers.
            final = agreed.final
            cursor = Cursor(self._chain.name, final.number, final.number, final.hash, wall_now(), {})
            await self._follow(cursor, agreed, since=agreed.final)
            await store.save_cursor(self._bank.pool, cursor)
        on_chain = await walk_back(self._bank, self._votes, agreed, cursor)
        if on_chain is None or not await write_off_replaced(self._bank, self._votes, agreed, on_chain):
            return 0
        return await self._book_final(await self._preview(on_chain, agreed), agreed)

    async def _preview(self, cursor: Cursor, agreed: Agreement) -> Cursor:
        """Show transfers that are not final yet; a node that fails here does not delay final ones."""
        if agreed.head.number <= cursor.final_number:
            return cursor  # nodes that lag say nothing about blocks booked before
        try:
            return await self._follow(cursor, agreed)
        except NodeUnavailable as error:
            self._votes.problems[error.host] = error.reason
            return cursor

    async def _follow(self, cursor: Cursor, agreed: Agreement, *, since: Block | None = None) -> Cursor:
        """Read blocks up to the head of one node, and show their transfers; orphaned blocks are reverted."""
        node, name, pool = agreed.nodes[0], self._chain.name, self._bank.pool
        known = [since] if since else await store.list_blocks(pool, name)
        ancestor, blocks = await read_new_blocks(node, known, first=cursor.final_number, head=agreed.head)
        newest = blocks[-1].number if blocks else ancestor
        # Blocks below that were booked without a preview are kept as well, but what was booked stays.
        final = max(ancestor, cursor.final_number)
        first = max(blocks[0].number, final + 1) if blocks else newest + 1
        recipients = list(await store.load_recipients(pool))
        transfers: list[TokenTransfer] = []
        if first <= newest and recipients:
            tokens = [token.address for token in self._chain.tokens]
            transfers = await node.list_transfers(first, newest, recipients, tokens)
        async with pool.acquire() as conn, conn.transaction():
            await store.orphan_transfers(conn, name, final)
            await store.replace_blocks(conn, name, ancestor, ([since] if since else []) + blocks)
            await store.save_transfers(conn, name, transfers, status=TransferStatus.PENDING, now=wall_now())
        if first <= newest and recipients:
            await self._note_wrong_tokens(node, first, newest, recipients)
        return cursor._replace(seen_number=max(newest, cursor.final_number))

    async def _note_wrong_tokens(self, node: EvmNode, first: int, last: int, recipients: Sequence[str]) -> None:
        """Show transfers of other tokens. Anyone can flood these, so a node that cannot list them blocks nothing."""
        try:
            found = await node.list_transfers(first, last, recipients, None)
        except NodeUnavailable as error:
            log.warning("other_tokens_not_listed", chain=self._chain.name, error=error.reason)
            return
        others = [each for each in found if self._chain.find_token(each.token) is None]
        await store.save_wrong_tokens(self._bank.pool, self._chain.name, others, wall_now())

    async def _book_final(self, cursor: Cursor, agreed: Agreement) -> int:
        """Book final blocks in batches, which become smaller if nodes refuse to list so many."""
        booked, span = 0, BLOCKS_PER_ROUND
        while cursor.final_number < agreed.final.number:
            last = min(agreed.final.number, cursor.final_number + span)
            block = await self._votes.agree_on_block(agreed.nodes, last)
            # Read after the nodes agreed, so that no final transfer is to an address that is missing here.
            await await_prepared(self._bank.pool)
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
        """Log each problem of a node once, and store it for the operator."""
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
    """Log a deposit that an operator returned: the holder of the address's keys sends the tokens, not the bank."""
    del bank
    log.warning("deposit_returned_outside", item_id=str(at.object_id))


class ChainWatchers:
    """The watchers of all chains of a bank. Only one worker at a time watches a chain."""

    def __init__(self, poll_seconds: float = POLL_SECONDS) -> None:
        self._watchers: dict[str, ChainWatcher] = {}
        self._poll_seconds = poll_seconds
        self._next_at = 0.0

    async def __call__(self, bank: Bank) -> int:
        """Do one round for every chain; return how many deposits were booked."""
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
        except Exception as error:  # noqa: BLE001 - it affects only this chain, and the next round may succeed
            log.warning("chain_round_failed", chain=chain.name, error=error_summary(error))
            return 0


async def _run_alone(bank: Bank, chain: Chain, watcher: ChainWatcher) -> int:
    async with locked(bank.pool, _LOCK, zlib.crc32(chain.name.encode()) - 2**31) as conn:
        return 0 if conn is None else await watcher.run_round()
