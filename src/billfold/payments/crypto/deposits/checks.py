"""Deposits: each equals a log of its chain, its transaction has its amount, and no unit is lost or booked twice.

Addresses: each follows from its extended public key and index.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from billfold.ledger.checks import TrackedTable, creation_checks
from billfold.payments.crypto.chains.addresses import WatchOnlyAddresses
from billfold.payments.crypto.deposits.commands import CreditDeposit, RecordUnbooked
from billfold.payments.crypto.deposits.store import CARRIED
from billfold.platform.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Check, Findings

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection)

_LOG = "chain, tx_hash, log_index, block_number, block_hash, token, sender, recipient, units"
_BOOKED = """
SELECT t.customer_id, t.details->>'crypto_transfer_id' AS id, sum(t.amount) AS amount FROM transaction t
 WHERE t.type = 'GENERIC' AND t.direction = 'CREDIT' AND t.details->>'crypto_transfer_id' IS NOT NULL
 GROUP BY 1, 2
"""
CHECKS = (
    *creation_checks(
        TrackedTable("crypto_deposit", "deposit_id", (CreditDeposit, RecordUnbooked), created_at="created_at")
    ),
    Check(
        "crypto_deposit",
        "no log of its chain says what it says",
        f"""SELECT d.customer_id, d.deposit_id
              FROM crypto_deposit d LEFT JOIN
                   (SELECT {_LOG}, true AS is_final FROM chain_transfer WHERE status = 'FINAL') c USING ({_LOG})
             WHERE d.status <> 'REORGED' AND c.is_final IS NULL""",
        certainty=Certainty.SUSPECT,
    ),
    Check(
        "chain_transfer",
        "its block is final, and no deposit has it",
        """SELECT c.chain, c.tx_hash, c.log_index FROM chain_transfer c JOIN chain_cursor r ON r.chain = c.chain
            WHERE c.status = 'FINAL' AND c.block_number <= r.final_number AND c.units <> '0'
              AND NOT EXISTS (SELECT 1 FROM crypto_deposit d
                WHERE (d.chain, d.tx_hash, d.log_index) = (c.chain, c.tx_hash, c.log_index))""",
        certainty=Certainty.SUSPECT,
    ),
    Check(
        "crypto_deposit",
        "{amount} cents are credited, and its transactions have {booked}",
        f"""SELECT d.customer_id, d.deposit_id, d.amount, coalesce(t.amount, 0)::bigint AS booked
              FROM crypto_deposit d LEFT JOIN ({_BOOKED}) t
                   ON t.customer_id = d.customer_id AND t.id = d.deposit_id::text
             WHERE CASE WHEN d.status = 'CREDITED' OR (d.status = 'REORGED' AND d.reason = 'CREDITED')
                        THEN coalesce(t.amount, 0) <> d.amount
                        WHEN d.status IN ('CARRIED', 'QUESTIONED') THEN t.amount IS NOT NULL ELSE false END""",
        certainty=Certainty.SUSPECT,
    ),
    Check(
        "crypto_deposit",
        "its portal has another address",
        """SELECT d.customer_id, d.deposit_id FROM crypto_deposit d JOIN portal p USING (customer_id, portal_id)
            WHERE p.wallet_address IS DISTINCT FROM d.recipient OR p.pocket_id <> d.pocket_id""",
    ),
    Check(
        "crypto_deposit",
        "more is booked than arrived: {carried} units are carried",
        f"""SELECT customer_id, portal_id, token, {CARRIED} AS carried FROM crypto_deposit d GROUP BY 1, 2, 3
           HAVING {CARRIED} < 0
              AND NOT EXISTS (SELECT 1 FROM crypto_deposit r
                WHERE r.customer_id = d.customer_id AND r.portal_id = d.portal_id AND r.status = 'REORGED')""",
        certainty=Certainty.SUSPECT,
    ),
)
COUNTED = ("crypto_deposit", "chain_transfer")


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Addresses of portals are derived from their extended public key and their index."""
    cursor = await conn.cursor(
        """SELECT p.customer_id, p.portal_id, p.wallet_address, p.address_index, x.xpub, x.derivation_path
             FROM portal p JOIN wallet_xpub x USING (xpub_id) ORDER BY 1, 2""",
        timeout=STATEMENT_TIMEOUT_SECONDS,
    )
    while rows := await cursor.fetch(2_000, timeout=STATEMENT_TIMEOUT_SECONDS):
        for customer_id, portal_id, address, index, xpub, path in rows:
            derived = _derived(xpub, path, index)
            if derived != address:
                key = {"customer_id": customer_id, "portal_id": portal_id}
                message = f"its address must be {derived}"
                findings.add("portal", key, message, certainty=Certainty.CHANGED)


def _derived(xpub: str, path: str, index: int) -> str | None:
    try:
        return _source(xpub, path).derive(index)
    except ValueError:  # a key that was tampered with
        return None


@cache
def _source(xpub: str, path: str) -> WatchOnlyAddresses:
    return WatchOnlyAddresses(xpub, path)
