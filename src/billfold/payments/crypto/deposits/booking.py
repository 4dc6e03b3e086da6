"""Final transfers become deposits: screened, compared with balances, credited or held. Every step may be repeated."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Direction, Rail
from billfold.payments.crypto.chains import TokenTransfer, cents_of
from billfold.payments.crypto.deposits import store
from billfold.payments.crypto.deposits.agreement import Nodes
from billfold.payments.crypto.deposits.commands import ChainDeposit, CreditDeposit, HoldReason, RecordUnbooked
from billfold.payments.crypto.deposits.reorgs import CALLER, find_written_off, restore
from billfold.payments.crypto.deposits.rules import CENTS_MAX, UNAVAILABLE, details_of
from billfold.payments.crypto.deposits.store import Recipient
from billfold.payments.crypto.nodes import EvmNode, NodeUnavailable
from billfold.payments.suspense.commands import HoldInSuspense
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import read_put_aside
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.ids import command_id, derive
from billfold.screening.screening import CurrentList

log = structlog.get_logger(__name__)

_UNBOOKED = frozenset(
    {HoldReason.BALANCE_DIFFERS, HoldReason.BALANCE_UNKNOWN, HoldReason.AMOUNT_TOO_LARGE, HoldReason.OWN_ADDRESS}
)
"""Reasons that leave it open whether anything arrived at all."""


class DepositBooking:
    """Books what arrived on one chain."""

    def __init__(self, bank: Bank, votes: Nodes) -> None:
        self._bank, self._chain, self._votes = bank, votes.chain, votes

    async def book_all(
        self, transfers: Sequence[TokenTransfer], recipients: Mapping[str, Recipient], nodes: Sequence[EvmNode]
    ) -> int:
        """Book transfers that these nodes call final; return how many. Raises NodeUnavailable if too few answer.

        One that fails is put aside and tried again later: it takes no other along.
        """
        aside = await read_put_aside(self._bank.pool, store.failures_of(self._chain.name), wall_now())
        failed: dict[str, Exception] = {}
        again = await store.list_failed_transfers(self._bank.pool, self._chain.name, list(aside.due))
        for at_place in _by_place((*again, *transfers)):
            try:
                doubt = await self._doubt(at_place, nodes)
                for transfer in at_place:
                    # What one address of the bank sends another was credited when it came to the first.
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
        """Compare what the logs of a place say with its balance: a token can lie in its log."""
        logged = sum(each.units for each in at_place)
        received = await self._votes.ask(nodes, partial(_units_received, place=_place(at_place[0]), logged=logged))
        if len(received) < self._votes.quorum:
            raise NodeUnavailable(self._chain.name, "too few nodes tell the balance of an address")
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
            await restore(bank, back, transfer)
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
        description, details = f"{deposit.asset} on {deposit.chain}", details_of(deposit_id, deposit)
        await self._bank.engine.submit(
            HoldInSuspense(
                caller=CALLER,
                key=item_id,
                customers=(bank_customer_id(self._bank.seed),),
                item_id=item_id,
                rail=Rail.CRYPTO,
                direction=Direction.CREDIT,
                amount=amount,
                reason=reason,
                details={"description": description, "details": details},
            )
        )

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
        """Return the id of a deposit; one that was written off keeps its own when another has its place now."""
        name = f"crypto-deposit:{self._chain.chain_id}:{transfer.tx_hash}"
        deposit_id = derive(self._bank.seed, command_id(name, str(transfer.log_index)), 0)
        if await store.find_deposit(self._bank.pool, deposit_id) is None:
            return deposit_id
        return derive(self._bank.seed, command_id(f"{name}:{transfer.block_hash}", str(transfer.log_index)), 0)


async def _units_received(node: EvmNode, place: tuple[str, str, int], logged: int) -> int | None:
    """Return how many units came to an address in a block by its balance, None where the node does not know.

    What left in the same block came too; it is only looked for where the balance grew by less than is `logged`.
    """
    token, address, block = place
    after, before = await node.balance(token, address, block), await node.balance(token, address, block - 1)
    if after is None or before is None:
        return None
    grown = after - before
    return grown if grown >= logged else grown + await node.units_sent(token, address, block)


def _by_place(transfers: Iterable[TokenTransfer]) -> Iterable[list[TokenTransfer]]:
    """Group transfers by token, address and block: nodes tell the balance after a block alone."""
    places: defaultdict[tuple[str, str, int], dict[int, TokenTransfer]] = defaultdict(dict)
    for transfer in transfers:
        places[_place(transfer)][transfer.log_index] = transfer
    return [[*each.values()] for each in places.values()]


def _place(transfer: TokenTransfer) -> tuple[str, str, int]:
    return transfer.token, transfer.recipient, transfer.block_number
