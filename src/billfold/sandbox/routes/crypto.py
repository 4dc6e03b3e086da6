"""Simulates the local chain: sends tokens to a portal, makes and reverts blocks, makes nodes fail."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec
from eth_hash.auto import keccak

from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.payments.crypto.chains import Chains, cents_of
from billfold.payments.crypto.nodes import NodeRefused, NodeUnavailable
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput, Refused
from billfold.sandbox.chain.faucet import (
    CHAIN_ID,
    DECIMALS,
    LOG_TRANSFER,
    TEST_DOLLAR,
    Faucet,
    NodeFault,
    address_of,
    call_data,
)
from billfold.sandbox.rails.correspondent import BookLine, Correspondent
from billfold.sandbox.routes.operations import derived_id, sandbox_post

UNITS_MAX = 10**15
BLOCKS_MAX = 300
_GAS_WEI = 10**18
_PORTAL = "SELECT wallet_address FROM portal WHERE customer_id = $1 AND portal_id = $2 AND wallet_address IS NOT NULL"


class DepositKind(StrEnum):
    """The kind of deposit: the test dollar, a token that the bank does not accept, or a false transfer log."""

    TRANSFER = "TRANSFER"
    OTHER_TOKEN = "OTHER_TOKEN"  # noqa: S105 - a kind
    FALSE_LOG = "FALSE_LOG"


class CryptoDepositRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Tokens for a crypto portal: `units` are millionths of a dollar. The sender's address is derived from its name."""

    portal_id: UUID
    units: Annotated[int, msgspec.Meta(ge=1, le=UNITS_MAX)]
    kind: DepositKind = DepositKind.TRANSFER
    sender_name: Annotated[str, msgspec.Meta(min_length=1, max_length=140)] | None = None


class MineRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The number of blocks to make. A block is final when two others lie above it."""

    blocks: Annotated[int, msgspec.Meta(ge=1, le=BLOCKS_MAX)] = 2


class ReorgRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The number of blocks to replace. Their transactions are gone, or enter the next block that is made."""

    depth: Annotated[int, msgspec.Meta(ge=1, le=BLOCKS_MAX)]
    keeps_transactions: bool = False


class NodeRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The fault of one of the two nodes from now on; without a fault it works again."""

    node: Annotated[int, msgspec.Meta(ge=1, le=2)]
    fault: NodeFault | None = None


@sandbox_post("crypto/deposit/", name="sandbox_crypto_deposit", refuses=("not-found", "rail-not-available"))
async def send_tokens(caller: Caller, bank: Bank, data: CryptoDepositRequest) -> None:
    """Send test tokens to the address of a crypto portal, even a closed one. They are credited at finality."""
    customer_id, portal_id = await caller.owned(bank, "portal", data.portal_id)
    address = await bank.pool.fetchval(_PORTAL, customer_id, portal_id)
    if address is None:
        raise InvalidInput.at("body", "portal_id", msg="is not a crypto portal")
    token = TEST_DOLLAR
    async with _faucet(bank) as faucet:
        if data.kind == DepositKind.OTHER_TOKEN:
            await faucet.mint_other(address, data.units)
        elif data.kind == DepositKind.FALSE_LOG:
            await faucet.send(token, call_data(LOG_TRANSFER, TEST_DOLLAR, address, data.units))
        elif data.sender_name is None:
            await faucet.mint(token, address, data.units)
        else:
            key = keccak(data.sender_name.encode())
            await faucet.give_ether(address_of(key), _GAS_WEI)
            await faucet.mint(token, address_of(key), data.units)
            await faucet.transfer(token, address, data.units, key=key)
    if data.kind == DepositKind.TRANSFER:
        bought = BookLine(
            f"USDC-{derived_id(bank, caller)}", cents_of(data.units, DECIMALS).cents, "CRYPTO", "USDC bought"
        )
        await Correspondent(bank).record(et_date(await bank.now()), [bought])


@sandbox_post("crypto/mine/", name="sandbox_crypto_mine", refuses=("rail-not-available",))
async def mine(caller: Caller, bank: Bank, data: MineRequest) -> None:
    """Mine blocks on the local chain."""
    del caller
    async with _faucet(bank) as faucet:
        await faucet.mine(data.blocks)


@sandbox_post("crypto/reorganize/", name="sandbox_crypto_reorganize", refuses=("rail-not-available",))
async def reorganize(caller: Caller, bank: Bank, data: ReorgRequest) -> None:
    """Replace the newest blocks of the local chain by empty ones."""
    del caller
    async with _faucet(bank) as faucet:
        await faucet.reorganize(data.depth, keep=data.keeps_transactions)


@sandbox_post("crypto/node/", name="sandbox_crypto_node", refuses=("rail-not-available",))
async def set_fault(caller: Caller, bank: Bank, data: NodeRequest) -> None:
    """Make one of the local chain's two nodes unavailable, lag or lie, or repair it."""
    del caller
    async with _faucet(bank) as faucet:
        await faucet.rpc.call("sandbox_setFault", data.node, data.fault)


@asynccontextmanager
async def _faucet(bank: Bank) -> AsyncIterator[Faucet]:
    """Return the faucet of the local chain. Refuses: rail-not-available if there is none, or it cannot do that."""
    chain = next((each for each in bank.ports[Chains].values() if each.chain_id == CHAIN_ID), None)
    if chain is None:
        raise Refused("rail-not-available", "This sandbox runs no local chain.")
    async with aclosing(Faucet(chain.rpc_urls[0])) as faucet:
        try:
            yield faucet
        except (NodeRefused, NodeUnavailable) as error:
            raise Refused("rail-not-available", f"The local chain refuses: {error}") from None
