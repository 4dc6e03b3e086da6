"""Queries of withdrawals, of the wallets, and of the paying transactions."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from billfold.accounts.counterparties.store import is_stopped
from billfold.payments.crypto.withdrawals import transactions
from billfold.payments.crypto.withdrawals.rules import WithdrawalRow
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.rows import Table

_withdrawals = Table(WithdrawalRow)
_transactions = Table(transactions.ChainTransaction, "crypto_transaction", key=("customer_id", "withdrawal_id"))
_wallets = Table(transactions.Wallet, "crypto_wallet", key=("chain", "address"))
_signatures = Table(transactions.Signature, "crypto_signature")
_COLUMNS, _TRANSACTION = _withdrawals.columns("w"), _transactions.columns("t")
_OPEN = f"""
SELECT DISTINCT ON (w.customer_id, w.pocket_id) {_COLUMNS} FROM crypto_withdrawal w
 WHERE w.customer_id = ANY($1::uuid[]) AND w.status IN ('PENDING', 'PROCESSING')
 ORDER BY w.customer_id, w.pocket_id
"""
_GET = f"""
WITH d AS MATERIALIZED (SELECT customer_id, object_id FROM directory WHERE kind = 'crypto_withdrawal' AND value = $1)
SELECT {_COLUMNS} FROM d JOIN crypto_withdrawal w ON w.customer_id = d.customer_id AND w.withdrawal_id = d.object_id
"""
_WAITING = f"""
WITH w AS MATERIALIZED (
  SELECT {_COLUMNS}, w.written_no, {is_stopped("w")} AS is_stopped, k.account_status = 'FROZEN' AS is_frozen
    FROM crypto_withdrawal w JOIN customer k USING (customer_id) WHERE w.chain = $1 AND w.status = 'PENDING')
SELECT * FROM w WHERE NOT EXISTS (
   SELECT 1 FROM crypto_transaction t WHERE t.customer_id = w.customer_id AND t.withdrawal_id = w.withdrawal_id)
 ORDER BY written_no LIMIT $2
"""
_LIST = f"{_withdrawals.select} WHERE $1::text IS NULL OR status = $1 ORDER BY written_no DESC LIMIT $2"
_OPEN_STATES = "('RESERVED', 'SIGNED', 'SUBMITTED', 'MINED')"
_WALLETS = f"{_wallets.select} ORDER BY chain, address"
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
_PROBLEMS = f"{_wallets.select} WHERE problem IS NOT NULL ORDER BY problem_since"
_IS_OURS = """
SELECT EXISTS (SELECT 1 FROM crypto_wallet WHERE lower(address) = lower($1))
    OR EXISTS (SELECT 1 FROM directory WHERE kind = 'wallet' AND value = lower($1))
"""
_LOCK_NONCE = "SELECT next_nonce FROM crypto_wallet WHERE chain = $1 AND address = $2 FOR UPDATE"
_SKIP_NONCES = "UPDATE crypto_wallet SET next_nonce = $3 WHERE chain = $1 AND address = $2 AND next_nonce < $3"
_BEGIN = """
INSERT INTO crypto_transaction (customer_id, withdrawal_id, chain, state, reason, reserved_at, updated_at,
                                wallet, nonce, token, gas_limit)
SELECT customer_id, withdrawal_id, chain, CASE WHEN $3::text IS NULL THEN 'RESERVED' ELSE 'REFUSED' END, $3, $4, $4,
       $5, $6, $7, $8
  FROM crypto_withdrawal WHERE customer_id = $1 AND withdrawal_id = $2 AND status = 'PENDING'
ON CONFLICT (customer_id, withdrawal_id) DO NOTHING RETURNING true
"""
_OUTGOING = f"""
SELECT {_TRANSACTION}, w.wallet_address, w.amount, {is_stopped("w")} AS is_stopped
  FROM crypto_transaction t JOIN crypto_withdrawal w USING (customer_id, withdrawal_id)
 WHERE t.chain = $1 AND t.state IN {_OPEN_STATES} ORDER BY t.wallet, t.nonce
"""
_SIGNATURES = f"""{_signatures.select}
 WHERE (customer_id, withdrawal_id) IN (SELECT * FROM unnest($1::uuid[], $2::uuid[])) ORDER BY attempt
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
SELECT EXISTS (SELECT 1 FROM crypto_withdrawal w WHERE w.chain = $1 AND w.status IN ('PENDING', 'PROCESSING'))
    OR EXISTS (SELECT 1 FROM crypto_transaction t WHERE t.chain = $1 AND t.state IN {_OPEN_STATES})
"""


class WaitingWithdrawal(NamedTuple):
    """A withdrawal that has not been processed yet.

    `is_stopped`: its customer is frozen (`is_frozen`), or its counterparty is stopped by screening.
    """

    row: WithdrawalRow
    is_stopped: bool
    is_frozen: bool


async def load_open_withdrawals(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, WithdrawalRow]]:
    """Return one withdrawal in process of each Pocket that has any."""
    del ids
    rows = await _withdrawals.all(conn, _OPEN, customer_ids)
    return [(row.customer_id, row.withdrawal_id, row) for row in rows]


async def get_withdrawal(conn: Db, withdrawal_id: UUID) -> WithdrawalRow:
    """Return the withdrawal of any customer. Raises NotFound."""
    return await _withdrawals.one(conn, _GET, str(withdrawal_id))


async def list_waiting(conn: Db, chain: str, limit: int) -> list[WaitingWithdrawal]:
    """Return withdrawals of a chain that have not been processed yet, oldest first."""
    rows = await conn.fetch(_WAITING, chain, limit)
    return [WaitingWithdrawal(_withdrawals.read(each), each["is_stopped"], each["is_frozen"]) for each in rows]


async def list_withdrawals(conn: Db, status: str | None, limit: int) -> list[WithdrawalRow]:
    """Return the newest withdrawals, of one status or of any."""
    return await _withdrawals.all(conn, _LIST, status, limit)


load_references = _withdrawals.load_references
find_transaction = _transactions.find
find_wallet = _wallets.find


async def has_work(conn: Db, chain: str) -> bool:
    """Return whether a withdrawal of a chain is in process."""
    return await conn.fetchval(_HAS_WORK, chain) is True


async def list_wallets(conn: Db) -> list[transactions.Wallet]:
    """Return every wallet from which the bank pays, or has paid."""
    return await _wallets.all(conn, _WALLETS)


async def list_blocked(conn: Db) -> list[transactions.Wallet]:
    """Return the wallets that are prevented from paying, longest first."""
    return await _wallets.all(conn, _PROBLEMS)


async def sum_fees(conn: Db) -> dict[tuple[str, str], int]:
    """Return the network fees of final transactions in wei, by chain and wallet."""
    return {(row["chain"], row["wallet"]): int(row["paid"]) for row in await conn.fetch(_FEES)}


async def is_own_address(conn: Db, address: str) -> bool:
    """Return whether an address belongs to a wallet of the bank, or to a portal, on any chain."""
    return await conn.fetchval(_IS_OURS, address) is True


async def add_wallet(conn: Db, chain: str, address: str, *, first_nonce: int) -> None:
    """Record a wallet from now on; one that is already recorded is not changed."""
    await conn.execute(_ADD_WALLET, chain, address, first_nonce)


async def set_problem(
    conn: Db,
    wallet: transactions.Wallet,
    problem: transactions.WalletProblem | None,
    detail: str | None,
    *,
    now: datetime,
) -> bool:
    """Store the problem of a wallet; return whether it is new."""
    changed = await conn.execute(_SET_PROBLEM, wallet.chain, wallet.address, problem, detail, now)
    return changed != "UPDATE 0"


async def skip_nonces(conn: Db, chain: str, wallet: str, next_nonce: int) -> None:
    """Continue with a later nonce, because earlier ones were used elsewhere."""
    await conn.execute(_SKIP_NONCES, chain, wallet, next_nonce)


async def reserve_nonce(
    conn: Connection, wallet: transactions.Wallet, row: WithdrawalRow, *, token: str, gas_limit: int, now: datetime
) -> bool:
    """Give a withdrawal the next nonce, in a transaction; False if it is already being processed."""
    nonce: int = await conn.fetchval(_LOCK_NONCE, wallet.chain, wallet.address)
    reserved = wallet.address, nonce, token, gas_limit
    is_new = await conn.fetchval(_BEGIN, row.customer_id, row.withdrawal_id, None, now, *reserved) is True
    if is_new:
        await skip_nonces(conn, wallet.chain, wallet.address, nonce + 1)
    return is_new


async def refuse_withdrawal(conn: Db, row: WithdrawalRow, reason: str, *, now: datetime) -> bool:
    """Record that no transaction will pay a withdrawal; False if it is being processed."""
    key = row.customer_id, row.withdrawal_id
    return await conn.fetchval(_BEGIN, *key, reason, now, None, None, None, None) is True


async def list_outgoing(conn: Db, chain: str) -> list[transactions.OutgoingTransaction]:
    """Return the transactions of a chain that are not final, by nonce."""
    rows = await conn.fetch(_OUTGOING, chain)
    signatures = await list_signatures(conn, [(row["customer_id"], row["withdrawal_id"]) for row in rows])
    return [
        transactions.OutgoingTransaction(
            transaction=_transactions.read(row),
            reservation=transactions.Reservation(*(row[name] for name in transactions.Reservation._fields)),
            address=row["wallet_address"],
            cents=row["amount"],
            is_stopped=row["is_stopped"],
            signatures=tuple(signatures[row["customer_id"], row["withdrawal_id"]]),
        )
        for row in rows
    ]


async def list_signatures(
    conn: Db, keys: Sequence[tuple[UUID, UUID]]
) -> dict[tuple[UUID, UUID], list[transactions.Signature]]:
    """Return all signatures for withdrawals, in order, by customer and withdrawal."""
    found: dict[tuple[UUID, UUID], list[transactions.Signature]] = defaultdict(list)
    for each in await _signatures.all(conn, _SIGNATURES, [each for each, _ in keys], [each for _, each in keys]):
        found[each.customer_id, each.withdrawal_id].append(each)
    return found


async def keep_signature(conn: Connection, signature: transactions.Signature) -> bool:
    """Store a signature, in a transaction; False if another one of the same attempt was stored before."""
    is_kept = await _signatures.insert(conn, signature, "ON CONFLICT (customer_id, withdrawal_id, attempt) DO NOTHING")
    if is_kept:
        await conn.execute(_SIGNED, signature.customer_id, signature.withdrawal_id, signature.signed_at)
    return is_kept


async def mark_sent(conn: Db, signature: transactions.Signature, now: datetime) -> None:
    """Record that a node has accepted a signed transaction."""
    await conn.execute(_SENT, signature.customer_id, signature.withdrawal_id, signature.attempt, now)


async def record_sighting(
    conn: Db,
    transaction: transactions.ChainTransaction,
    state: transactions.TransactionState,
    sighting: transactions.Sighting,
    *,
    reason: str | None = None,
    now: datetime,
) -> bool:
    """Record what nodes report about a transaction; a final one is kept. Return whether it changed."""
    key = transaction.customer_id, transaction.withdrawal_id
    changed = await conn.execute(_MOVE, *key, state, *sighting[:4], reason, now)
    return changed != "UPDATE 0"


async def request_transaction(
    conn: Db, row: WithdrawalRow, wanted: transactions.OperatorRequest, *, now: datetime
) -> bool:
    """Record an operator's request for a transaction; False if it is final, or there is none."""
    return await conn.fetchval(_REQUEST, row.customer_id, row.withdrawal_id, wanted, now) is True


async def list_unreported(conn: Db, chain: str, limit: int) -> list[transactions.ChainTransaction]:
    """Return transactions of a chain whose outcome is not yet recorded with the withdrawal."""
    return await _transactions.all(conn, _UNREPORTED, chain, limit)
