"""Deposits, transfers seen on chains, and the addresses of portals."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.accounts.portals.commands import Wallet
from billfold.payments.crypto.chains import Block, Chains, TokenTransfer, WatchOnlyAddresses
from billfold.payments.crypto.deposits.rules import CarriedUnits, CryptoDepositRow
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.rows import References, Table
from billfold.platform.errors import Unavailable


class TransferStatus(StrEnum):
    """The status of a transfer: PENDING until its block is final, REORGED while its block is not part of the chain."""

    PENDING = "PENDING"
    FINAL = "FINAL"
    REORGED = "REORGED"
    WRONG_TOKEN = "WRONG_TOKEN"  # noqa: S105 - a status


class Cursor(NamedTuple):
    """Progress of reading a chain: by one node, and by the nodes that must agree. `problems` by node."""

    chain: str
    seen_number: int
    final_number: int
    final_hash: str
    agreed_at: datetime
    problems: dict[str, str]


class Recipient(NamedTuple):
    """The owner of an address."""

    customer_id: UUID
    portal_id: UUID
    pocket_id: UUID
    chain: str
    is_open: bool


BLOCKS_KEPT = 256
WRONG_TOKENS_MAX = 20
"""Maximum number of transfers of other tokens stored per address, because anyone can create such logs."""
_deposits = Table(CryptoDepositRow, key=("deposit_id",))
_LOOK_UP = f"{_deposits.select} WHERE customer_id = ANY($1::uuid[]) AND deposit_id = ANY($2::uuid[])"
_UNBOOKED = "units::numeric - amount * 10::numeric ^ (decimals - 2)"
CARRIED = f"""
sum(CASE status WHEN 'QUESTIONED' THEN 0 WHEN 'REORGED' THEN least({_UNBOOKED}, 0) ELSE {_UNBOOKED} END)
"""
"""Units that arrived and are not booked. Carried units booked with a deposit stay booked if its block is replaced."""
_CARRIED = f"""
SELECT customer_id, portal_id, token, {CARRIED} AS carried
  FROM crypto_deposit WHERE customer_id = ANY($1::uuid[]) AND portal_id = ANY($2::uuid[]) GROUP BY 1, 2, 3
"""
_LIST = f"""{_deposits.select} WHERE $1::text[] IS NULL OR status = ANY($1)
 ORDER BY created_at DESC, block_number DESC, log_index DESC LIMIT $2
"""
_ABOVE = f"{_deposits.select} WHERE chain = $1 AND block_number > $2 AND status <> 'REORGED'"
_WRITTEN_OFF = f"{_deposits.select} WHERE chain = $1 AND tx_hash = $2 AND status = 'REORGED'"
_IS_BOOKED = """
SELECT EXISTS (SELECT 1 FROM crypto_deposit
  WHERE chain = $1 AND tx_hash = $2 AND log_index = $3 AND status <> 'REORGED')
"""
_RECIPIENTS = """
SELECT wallet_address, customer_id, portal_id, pocket_id, chain, status = 'OPEN' FROM portal
 WHERE wallet_address IS NOT NULL
"""
_CURSORS = f"SELECT {', '.join(Cursor._fields)} FROM chain_cursor ORDER BY chain"
_SAVE_CURSOR = """
INSERT INTO chain_cursor (chain, seen_number, final_number, final_hash, agreed_at, problems)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (chain) DO UPDATE SET seen_number = $2, final_number = $3, final_hash = $4, agreed_at = $5, problems = $6
"""
_SAVE_AGREED = "UPDATE chain_cursor SET agreed_at = $2 WHERE chain = $1"
_SAVE_PROBLEMS = "UPDATE chain_cursor SET problems = $2 WHERE chain = $1"
_BLOCKS = "SELECT number, hash, parent_hash FROM chain_block WHERE chain = $1 ORDER BY number DESC"
_ADD_BLOCK = """
INSERT INTO chain_block (chain, number, hash, parent_hash) VALUES ($1, $2, $3, $4)
ON CONFLICT (chain, number) DO UPDATE SET hash = $3, parent_hash = $4
"""
_DROP_BLOCKS = "DELETE FROM chain_block WHERE chain = $1 AND (number > $2 OR number <= $3)"
_ADD_TRANSFER = """
INSERT INTO chain_transfer (chain, tx_hash, log_index, block_number, block_hash, token, sender, recipient, units,
  status, seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (chain, tx_hash, log_index) DO UPDATE
  SET block_number = $4, block_hash = $5, token = $6, sender = $7, recipient = $8, units = $9, status = $10
"""
_ORPHAN = """
UPDATE chain_transfer SET status = 'REORGED'
 WHERE chain = $1 AND block_number > $2 AND status IN ('PENDING', 'FINAL', 'WRONG_TOKEN')
"""
_ORPHAN_UNCONFIRMED = """
UPDATE chain_transfer SET status = 'REORGED' WHERE chain = $1 AND block_number <= $2 AND status = 'PENDING'
"""
_WRONG_TOKENS = "SELECT count(*) FROM chain_transfer WHERE recipient = $1 AND status = 'WRONG_TOKEN'"
_NEXT_INDEX = "SELECT nextval('wallet_index')"
_XPUB = "SELECT xpub_id FROM wallet_xpub WHERE xpub = $1 AND derivation_path = $2"
_ADD_XPUB = "INSERT INTO wallet_xpub (xpub, derivation_path) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_FAILED_TRANSFERS = """
SELECT tx_hash, log_index, block_number, block_hash, token, sender, recipient, units FROM chain_transfer c
 WHERE c.chain = $1 AND c.status = 'FINAL' AND EXISTS (
   SELECT 1 FROM chain_transfer f
    WHERE f.chain = $1 AND f.status = 'FINAL' AND f.tx_hash || ':' || f.log_index = ANY($2::text[])
      AND (f.token, f.recipient, f.block_number) = (c.token, c.recipient, c.block_number))
 ORDER BY c.block_number, c.log_index
"""
_TRANSFERS = """
SELECT chain, tx_hash, log_index, block_number, block_hash, token, sender, recipient, units, status, seen_at
  FROM chain_transfer WHERE status = ANY($1::text[]) ORDER BY seen_at DESC, chain, tx_hash, log_index LIMIT $2
"""


async def load_references(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the deposits among the ids, and the carried units of the portals among them."""
    rows = await _deposits.all(conn, _LOOK_UP, customer_ids, ids)
    found: References = [(row.customer_id, row.deposit_id, row) for row in rows]
    carried: dict[tuple[UUID, UUID], dict[str, int]] = {}
    for customer_id, portal_id, token, units in await conn.fetch(_CARRIED, customer_ids, ids):
        carried.setdefault((customer_id, portal_id), {})[token] = int(units)
    return [*found, *((*key, CarriedUnits(by_token)) for key, by_token in carried.items())]


find_deposit = _deposits.find


async def list_deposits(conn: Db, statuses: Sequence[str] | None = None, *, limit: int = 200) -> list[CryptoDepositRow]:
    """Return deposits of some statuses or of all, newest first."""
    return await _deposits.all(conn, _LIST, statuses, limit)


async def list_above(conn: Db, chain: str, number: int) -> list[CryptoDepositRow]:
    """Return the deposits in blocks above a number that were not written off."""
    return await _deposits.all(conn, _ABOVE, chain, number)


async def list_written_off(conn: Db, chain: str, tx_hash: str) -> list[CryptoDepositRow]:
    """Return the deposits of a transaction that were written off."""
    return await _deposits.all(conn, _WRITTEN_OFF, chain, tx_hash)


async def is_booked(conn: Db, chain: str, transfer: TokenTransfer) -> bool:
    """Return whether a deposit has the position of a transfer."""
    return await conn.fetchval(_IS_BOOKED, chain, transfer.tx_hash, transfer.log_index) is True


def failures_of(chain: str) -> str:
    """Return the kind of failed work under which transfers of a chain are kept that cannot be booked."""
    return f"deposit on {chain}"


def name_of(transfer: TokenTransfer) -> str:
    """Return the name of a transfer as failed work."""
    return f"{transfer.tx_hash}:{transfer.log_index}"


async def list_failed_transfers(conn: Db, chain: str, names: Sequence[str]) -> list[TokenTransfer]:
    """Return final transfers that failed, and the others to the same address in the same block."""
    rows = await conn.fetch(_FAILED_TRANSFERS, chain, names) if names else ()
    return [TokenTransfer(**{**row, "units": int(row["units"])}) for row in map(dict, rows)]


async def load_recipients(conn: Db) -> dict[str, Recipient]:
    """Return every address ever allotted, on any chain, because tokens may be sent on another chain."""
    return {row[0]: Recipient(*row[1:]) for row in map(tuple, await conn.fetch(_RECIPIENTS))}


async def find_cursor(conn: Db, chain: str) -> Cursor | None:
    """Return how far a chain is read, or None."""
    return next((each for each in await list_cursors(conn) if each.chain == chain), None)


async def list_cursors(conn: Db) -> list[Cursor]:
    """Return how far all chains are read."""
    rows = map(dict, await conn.fetch(_CURSORS))
    return [Cursor(**{**row, "problems": msgspec.json.decode(row["problems"])}) for row in rows]


async def save_cursor(conn: Db, cursor: Cursor) -> None:
    """Store how far a chain is read."""
    await conn.execute(_SAVE_CURSOR, *cursor[:-1], msgspec.json.encode(cursor.problems).decode())


async def save_agreed(conn: Db, chain: str, now: datetime) -> None:
    """Record that all final blocks are read."""
    await conn.execute(_SAVE_AGREED, chain, now)


async def save_problems(conn: Db, chain: str, problems: Mapping[str, str]) -> None:
    """Store the problems of a chain's nodes."""
    await conn.execute(_SAVE_PROBLEMS, chain, msgspec.json.encode(problems).decode())


async def list_blocks(conn: Db, chain: str) -> list[Block]:
    """Return the stored blocks, newest first."""
    return [Block(*row) for row in await conn.fetch(_BLOCKS, chain)]


async def replace_blocks(conn: Connection, chain: str, ancestor: int, blocks: Sequence[Block]) -> None:
    """Replace the blocks above an ancestor, and delete the oldest."""
    newest = blocks[-1].number if blocks else ancestor
    await conn.execute(_DROP_BLOCKS, chain, ancestor, newest - BLOCKS_KEPT)
    await conn.executemany(_ADD_BLOCK, [(chain, *each) for each in blocks])


async def orphan_transfers(conn: Connection, chain: str, ancestor: int) -> None:
    """Mark transfers in blocks above an ancestor as reorged."""
    await conn.execute(_ORPHAN, chain, ancestor)


async def orphan_unconfirmed(conn: Db, chain: str, final: int) -> None:
    """Mark transfers that one node saw, but that are not in the final blocks, as reorged."""
    await conn.execute(_ORPHAN_UNCONFIRMED, chain, final)


async def save_transfers(
    conn: Db, chain: str, transfers: Iterable[TokenTransfer], *, status: TransferStatus, now: datetime
) -> None:
    """Insert or update transfers with a status."""
    rows = [(chain, *each[:-1], str(each.units), status, now) for each in transfers]
    await conn.executemany(_ADD_TRANSFER, rows)


async def save_wrong_tokens(conn: Db, chain: str, transfers: Iterable[TokenTransfer], now: datetime) -> None:
    """Store transfers of tokens that the bank does not accept, a few per address."""
    for each in transfers:
        if await conn.fetchval(_WRONG_TOKENS, each.recipient) < WRONG_TOKENS_MAX:
            await save_transfers(conn, chain, [each], status=TransferStatus.WRONG_TOKEN, now=now)


async def list_transfers(conn: Db, statuses: Sequence[str], *, limit: int = 200) -> list[Record]:
    """Return the transfers seen on chains with these statuses, newest first."""
    return await conn.fetch(_TRANSFERS, statuses, limit)


class DepositAddresses:
    """Allots addresses on the configured chains. All chains share one sequence, because their keys may be the same."""

    def __init__(self, pool: Pool, chains: Chains) -> None:
        self._pool, self._chains = pool, chains
        self._sources = {name: WatchOnlyAddresses(each.xpub, each.derivation_path) for name, each in chains.items()}

    @property
    def chains(self) -> tuple[str, ...]:
        """The chains for which there are addresses."""
        return tuple(sorted(self._chains))

    async def allot(self, chain: str) -> Wallet:
        """Return a new address on one of the chains.

        Raises Unavailable until a worker knows where it begins to read: an earlier deposit would be missed.
        """
        if await find_cursor(self._pool, chain) is None:
            raise Unavailable("No worker has reached the nodes of this chain yet.", chain=chain)
        configured = self._chains[chain]
        key = configured.xpub, configured.derivation_path
        xpub_id = await self._pool.fetchval(_XPUB, *key)
        if xpub_id is None:
            await self._pool.execute(_ADD_XPUB, *key)
            xpub_id = await self._pool.fetchval(_XPUB, *key)
        index = await self._pool.fetchval(_NEXT_INDEX)
        address, asset = self._sources[chain].derive(index), configured.token.asset
        return Wallet(chain=chain, address=address, asset=asset, xpub_id=xpub_id, index=index)

    def minimum_cents(self, chain: str) -> int | None:
        """Return the smallest deposit that is credited at once, None if the chain is no longer read."""
        return self._chains[chain].token.minimum_cents if chain in self._chains else None
