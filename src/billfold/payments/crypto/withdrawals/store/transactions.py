"""Rows of what is done on chains: the wallets, a transaction per withdrawal, and everything that was signed for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.store import is_stopped
from billfold.payments.crypto.withdrawals.types import (
    ChainTransaction,
    OperatorRequest,
    OutgoingTransaction,
    Reservation,
    Signature,
    TransactionState,
    Wallet,
    WalletProblem,
    WithdrawalRow,
)

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.payments.crypto.withdrawals.rules.evidence import Sighting
    from billfold.platform.database.connection import (Connection, Pool)

_OWN_COLUMNS = [name for name in ChainTransaction.__struct_fields__ if name != "reservation"]
_TRANSACTION = ", ".join(f"t.{name}" for name in (*_OWN_COLUMNS, *Reservation._fields))
_SIGNATURE = ", ".join(Signature.__struct_fields__)
_WALLET = ", ".join(Wallet.__struct_fields__)
_OPEN_STATES = "('RESERVED', 'SIGNED', 'SUBMITTED', 'MINED')"

_FIND_WALLET = f"SELECT {_WALLET} FROM crypto_wallet WHERE chain = $1 AND address = $2"
_WALLETS = f"SELECT {_WALLET} FROM crypto_wallet ORDER BY chain, address"
_ADD_WALLET = """
INSERT INTO crypto_wallet (chain, address, first_nonce, next_nonce) VALUES ($1, $2, $3, $3) ON CONFLICT DO NOTHING
"""
_SET_PROBLEM = """
UPDATE crypto_wallet SET problem = $3, problem_detail = $4,
       problem_since = CASE WHEN $3::text IS NULL THEN NULL
                            WHEN problem = $3 THEN problem_since ELSE $5 END
 WHERE chain = $1 AND address = $2 AND (problem, problem_detail) IS DISTINCT FROM ($3, $4)
"""
_FEES = """
SELECT chain, wallet, sum(fee_wei) AS paid FROM crypto_transaction
 WHERE state IN ('CONFIRMED', 'REVERTED', 'CANCELED') GROUP BY chain, wallet
"""
_PROBLEMS = f"SELECT {_WALLET} FROM crypto_wallet WHERE problem IS NOT NULL ORDER BY problem_since"
_IS_OURS = """
SELECT EXISTS (SELECT FROM crypto_wallet WHERE lower(address) = lower($1))
    OR EXISTS (SELECT FROM directory WHERE kind = 'wallet' AND value = lower($1))
"""
_LOCK_NONCE = "SELECT next_nonce FROM crypto_wallet WHERE chain = $1 AND address = $2 FOR UPDATE"
_SKIP_NONCES = "UPDATE crypto_wallet SET next_nonce = $3 WHERE chain = $1 AND address = $2 AND next_nonce < $3"
_RESERVE = """
INSERT INTO crypto_transaction (customer_id, withdrawal_id, chain, state, wallet, nonce, token, gas_limit,
                                reserved_at, updated_at)
SELECT customer_id, withdrawal_id, chain, 'RESERVED', $3, $4, $5, $6, $7, $7
  FROM crypto_withdrawal WHERE customer_id = $1 AND withdrawal_id = $2 AND status = 'PENDING'
ON CONFLICT (customer_id, withdrawal_id) DO NOTHING RETURNING true
"""
_REFUSE = """
INSERT INTO crypto_transaction (customer_id, withdrawal_id, chain, state, reason, reserved_at, updated_at)
SELECT customer_id, withdrawal_id, chain, 'REFUSED', $3, $4, $4
  FROM crypto_withdrawal WHERE customer_id = $1 AND withdrawal_id = $2 AND status = 'PENDING'
ON CONFLICT (customer_id, withdrawal_id) DO NOTHING RETURNING true
"""
_OUTGOING = f"""
SELECT {_TRANSACTION}, w.wallet_address, w.amount, {is_stopped("w")} AS is_stopped
  FROM crypto_transaction t JOIN crypto_withdrawal w USING (customer_id, withdrawal_id)
 WHERE t.chain = $1 AND t.state IN {_OPEN_STATES} ORDER BY t.wallet, t.nonce
"""
_FIND = f"SELECT {_TRANSACTION} FROM crypto_transaction t WHERE t.customer_id = $1 AND t.withdrawal_id = $2"
_SIGNATURES = f"""
SELECT {_SIGNATURE} FROM crypto_signature
 WHERE (customer_id, withdrawal_id) IN (SELECT * FROM unnest($1::uuid[], $2::uuid[])) ORDER BY attempt
"""
_KEEP_SIGNATURE = f"""
INSERT INTO crypto_signature ({_SIGNATURE}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (customer_id, withdrawal_id, attempt) DO NOTHING RETURNING true
"""
_SIGNED = f"""
UPDATE crypto_transaction SET state = CASE state WHEN 'RESERVED' THEN 'SIGNED' ELSE state END, requested = NULL,
       updated_at = $3
 WHERE customer_id = $1 AND withdrawal_id = $2 AND state IN {_OPEN_STATES}
"""
_SENT = """
UPDATE crypto_signature SET sent_at = $4
 WHERE customer_id = $1 AND withdrawal_id = $2 AND attempt = $3 AND sent_at IS NULL
"""
_MOVE = f"""
UPDATE crypto_transaction SET state = $3, transaction_hash = $4, block_number = $5, block_hash = $6, fee_wei = $7,
       reason = $8, updated_at = $9
 WHERE customer_id = $1 AND withdrawal_id = $2 AND state IN {_OPEN_STATES} AND state <> 'RESERVED'
   AND (state, transaction_hash, block_hash) IS DISTINCT FROM ($3, $4, $6)
"""
_REQUEST = f"""
UPDATE crypto_transaction SET requested = $3, updated_at = $4
 WHERE customer_id = $1 AND withdrawal_id = $2 AND state IN {_OPEN_STATES} RETURNING true
"""
_UNREPORTED = f"""
SELECT {_TRANSACTION} FROM crypto_transaction t JOIN crypto_withdrawal w USING (customer_id, withdrawal_id)
 WHERE t.chain = $1 AND w.chain = $1
   AND (w.status IN ('PENDING', 'PROCESSING') AND t.state NOT IN {_OPEN_STATES}
        OR w.status = 'PENDING' AND t.state IN ('SUBMITTED', 'MINED'))
 ORDER BY t.updated_at LIMIT $2
"""
_HAS_WORK = f"""
SELECT EXISTS (SELECT FROM crypto_withdrawal w WHERE w.chain = $1 AND w.status IN ('PENDING', 'PROCESSING'))
    OR EXISTS (SELECT FROM crypto_transaction t WHERE t.chain = $1 AND t.state IN {_OPEN_STATES})
"""


async def has_work(conn: Connection | Pool, chain: str) -> bool:
    """Tell whether a withdrawal of a chain is in process."""
    return await conn.fetchval(_HAS_WORK, chain) is True


async def find_wallet(conn: Connection | Pool, chain: str, address: str) -> Wallet | None:
    """Return a wallet of the bank, or None."""
    row = await conn.fetchrow(_FIND_WALLET, chain, address)
    return None if row is None else _wallet(row)


async def list_wallets(conn: Connection | Pool) -> list[Wallet]:
    """Return every wallet the bank pays from, or has paid from."""
    return [_wallet(row) for row in await conn.fetch(_WALLETS)]


async def list_blocked(conn: Connection | Pool) -> list[Wallet]:
    """Return the wallets that something keeps from paying, the longest first."""
    return [_wallet(row) for row in await conn.fetch(_PROBLEMS)]


async def sum_fees(conn: Connection | Pool) -> dict[tuple[str, str], int]:
    """Return what networks took for final transactions in wei, by chain and wallet."""
    return {(row["chain"], row["wallet"]): int(row["paid"]) for row in await conn.fetch(_FEES)}


async def is_own_address(conn: Connection | Pool, address: str) -> bool:
    """Tell whether an address is that of a wallet of the bank, or of a portal, on whatever chain."""
    return await conn.fetchval(_IS_OURS, address) is True


async def add_wallet(conn: Connection | Pool, chain: str, address: str, *, first_nonce: int) -> None:
    """Record a wallet from now on; one that is recorded stays as it is."""
    await conn.execute(_ADD_WALLET, chain, address, first_nonce)


async def set_problem(
    conn: Connection | Pool, wallet: Wallet, problem: WalletProblem | None, detail: str | None, *, now: datetime
) -> bool:
    """Keep what keeps a wallet from paying; tell whether that is new."""
    changed = await conn.execute(_SET_PROBLEM, wallet.chain, wallet.address, problem, detail, now)
    return changed != "UPDATE 0"


async def skip_nonces(conn: Connection | Pool, wallet: Wallet, next_nonce: int) -> None:
    """Go on with a later nonce: those before it were used elsewhere."""
    await conn.execute(_SKIP_NONCES, wallet.chain, wallet.address, next_nonce)


async def reserve(
    conn: Connection, wallet: Wallet, row: WithdrawalRow, *, token: str, gas_limit: int, now: datetime
) -> int | None:
    """Give a withdrawal the next nonce, in a transaction; None when something is done for it already."""
    key = (wallet.chain, wallet.address)
    nonce: int = await conn.fetchval(_LOCK_NONCE, *key)
    values = (wallet.address, nonce, token, gas_limit, now)
    if await conn.fetchval(_RESERVE, row.customer_id, row.withdrawal_id, *values) is None:
        return None
    await conn.execute(_SKIP_NONCES, *key, nonce + 1)
    return nonce


async def refuse(conn: Connection | Pool, row: WithdrawalRow, reason: str, *, now: datetime) -> bool:
    """Record that no transaction will pay a withdrawal; False when something is being done for it."""
    return await conn.fetchval(_REFUSE, row.customer_id, row.withdrawal_id, reason, now) is True


async def list_outgoing(conn: Connection | Pool, chain: str) -> list[OutgoingTransaction]:
    """Return the transactions of a chain that are not final, by their nonces."""
    rows = await conn.fetch(_OUTGOING, chain)
    signatures = await list_signatures(conn, [(row["customer_id"], row["withdrawal_id"]) for row in rows])
    return [
        OutgoingTransaction(
            transaction=_transaction(row),
            reservation=_reservation(row),
            address=row["wallet_address"],
            cents=row["amount"],
            is_stopped=row["is_stopped"],
            signatures=tuple(signatures[row["customer_id"], row["withdrawal_id"]]),
        )
        for row in rows
    ]


async def find_transaction(conn: Connection | Pool, row: WithdrawalRow) -> ChainTransaction | None:
    """Return what is done for a withdrawal, or None."""
    found = await conn.fetchrow(_FIND, row.customer_id, row.withdrawal_id)
    return None if found is None else _transaction(found)


async def list_signatures(
    conn: Connection | Pool, keys: Sequence[tuple[UUID, UUID]]
) -> dict[tuple[UUID, UUID], list[Signature]]:
    """Return everything that was signed for withdrawals, in order, by customer and withdrawal."""
    found: dict[tuple[UUID, UUID], list[Signature]] = defaultdict(list)
    for row in await conn.fetch(_SIGNATURES, [each for each, _ in keys], [each for _, each in keys]):
        found[row["customer_id"], row["withdrawal_id"]].append(msgspec.convert(dict(row), Signature))
    return found


async def keep_signature(conn: Connection, signature: Signature) -> bool:
    """Store what was signed, in a transaction; False when another of the same attempt was stored before."""
    is_kept = await conn.fetchval(_KEEP_SIGNATURE, *msgspec.structs.astuple(signature)) is True
    if is_kept:
        await conn.execute(_SIGNED, signature.customer_id, signature.withdrawal_id, signature.signed_at)
    return is_kept


async def mark_sent(conn: Connection | Pool, signature: Signature, now: datetime) -> None:
    """Record that a node has taken what was signed."""
    await conn.execute(_SENT, signature.customer_id, signature.withdrawal_id, signature.attempt, now)


async def move(
    conn: Connection | Pool,
    transaction: ChainTransaction,
    state: TransactionState,
    sighting: Sighting,
    *,
    reason: str | None = None,
    now: datetime,
) -> bool:
    """Record what nodes report of a transaction; a final one stays. Tell whether it changed."""
    changed = await conn.execute(
        _MOVE,
        transaction.customer_id,
        transaction.withdrawal_id,
        state,
        sighting.transaction_hash,
        sighting.block_number,
        sighting.block_hash,
        sighting.fee,
        reason,
        now,
    )
    return changed != "UPDATE 0"


async def request(conn: Connection | Pool, row: WithdrawalRow, wanted: OperatorRequest, *, now: datetime) -> bool:
    """Record what an operator wants of a transaction; False when it is final, or there is none."""
    return await conn.fetchval(_REQUEST, row.customer_id, row.withdrawal_id, wanted, now) is True


async def list_unreported(conn: Connection | Pool, chain: str, limit: int) -> list[ChainTransaction]:
    """Return transactions of a chain whose withdrawals do not say yet what became of them."""
    return [_transaction(row) for row in await conn.fetch(_UNREPORTED, chain, limit)]


def _wallet(row: Record) -> Wallet:
    return msgspec.convert(dict(row), Wallet)


def _transaction(row: Record) -> ChainTransaction:
    columns = {name: row[name] for name in _OWN_COLUMNS}
    return msgspec.convert(
        {**columns, "reservation": None if row["nonce"] is None else _reservation(row)}, ChainTransaction
    )


def _reservation(row: Record) -> Reservation:
    return Reservation(*(row[name] for name in Reservation._fields))
