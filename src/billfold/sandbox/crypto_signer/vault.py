"""The key of the wallet, and what was signed with it: a file each, in the signer's folder."""

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from datetime import date
from pathlib import Path
from typing import Any, Final

from eth_account.signers.local import LocalAccount

from billfold.payments.crypto.withdrawals.signing import SignerRefused, UnsignedTransaction
from billfold.sandbox.crypto_signer.policy import Payment, check, read_policy

KEY_FILE: Final = "wallet.key"
_KEY_BYTES = 32
_SCHEMA = """
CREATE TABLE IF NOT EXISTS signed (
  chain_id INTEGER NOT NULL, nonce INTEGER NOT NULL, token TEXT NOT NULL, recipient TEXT NOT NULL, units TEXT NOT NULL,
  signed_on TEXT NOT NULL, PRIMARY KEY (chain_id, nonce)
)
"""


class SigningVault:
    """Signs with one key. What was signed for a nonce once is signed for it again, and nothing else but nothing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._account = _account(_key(folder / KEY_FILE))
        with closing(self._open()) as database:
            database.execute(_SCHEMA)

    @property
    def address(self) -> str:
        """The address of the wallet, in the form of EIP-55."""
        return str(self._account.address)

    def sign(self, transaction: UnsignedTransaction, *, today: date) -> str:
        """Return a transaction signed. Raises SignerRefused."""
        policy = read_policy(self._folder).get(transaction.chain_id)
        payment = check(policy, transaction, wallet=self.address)
        if payment.units and policy is not None:
            self._record(transaction, payment, today=today, units_per_day=policy.units_per_day)
        fields: Any = {
            "type": 2,
            "chainId": transaction.chain_id,
            "nonce": transaction.nonce,
            "to": transaction.to,
            "value": transaction.value,
            "data": transaction.data,
            "gas": transaction.gas_limit,
            "maxFeePerGas": transaction.max_fee,
            "maxPriorityFeePerGas": transaction.priority_fee,
        }
        signed = self._account.sign_transaction(fields)
        return "0x" + bytes(signed.raw_transaction).hex()

    def _record(self, transaction: UnsignedTransaction, payment: Payment, *, today: date, units_per_day: int) -> None:
        """Keep what is signed for a nonce, which counts once for its day. Raises SignerRefused."""
        named = (payment.token, payment.recipient, str(payment.units))
        with closing(self._open()) as database, database:
            database.execute("BEGIN IMMEDIATE")
            key = (transaction.chain_id, transaction.nonce)
            kept = database.execute(
                "SELECT token, recipient, units FROM signed WHERE chain_id = ? AND nonce = ?", key
            ).fetchone()
            if kept is not None:
                if kept != named:
                    raise SignerRefused("Another payment was signed for this nonce.")
                return
            of_today = database.execute(
                "SELECT units FROM signed WHERE chain_id = ? AND signed_on = ?",
                (transaction.chain_id, today.isoformat()),
            )
            if payment.units + sum(int(units) for (units,) in of_today) > units_per_day:
                raise SignerRefused(f"The policy allows {units_per_day} units a day.")
            database.execute("INSERT INTO signed VALUES (?, ?, ?, ?, ?, ?)", (*key, *named, today.isoformat()))

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._folder / "signed.sqlite", isolation_level=None)


def _key(path: Path) -> bytes:
    """Return the key, which is made once."""
    with suppress(FileExistsError):
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
            out.write(secrets.token_bytes(_KEY_BYTES))
        try:
            os.link(draft, path)  # whole, and never over a key that is there
        finally:
            draft.unlink()
    return path.read_bytes()


def _account(key: bytes) -> LocalAccount:
    from eth_account import Account  # noqa: PLC0415 - takes a second to load

    made: LocalAccount = Account.from_key(key)
    return made
