"""The simulated signer of withdrawals: its process, the vault of its key, and the client that calls it.

The process reads a request per line and answers each with a line. It ends with its input, and so with the process that
started it.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
import sys
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from billfold.payments.crypto.withdrawals.signing import SignerRefused, UnsignedTransaction
from billfold.platform.clock import wall_now
from billfold.sandbox.line_process import LineProcess, kept_file, serve_lines

SIGNER_FOLDER = "crypto_signer"
"""The folder of the signer's key, below the state directory."""
_DATABASE = "signed.sqlite"


class SimulatedSigner:
    """One process per bank process; they share the folder of the key."""

    def __init__(self, folder: Path) -> None:
        self._process = LineProcess(__name__, folder, "signer")
        self._address: str | None = None

    async def address(self) -> str:
        """Return the address of the wallet."""
        if self._address is None:
            self._address = await self._call({})
        return self._address

    async def sign(self, transaction: UnsignedTransaction) -> str:
        """Return the signed transaction. Raises SignerRefused."""
        return await self._call({"transaction": transaction})

    async def close(self) -> None:
        """End the process."""
        await self._process.close()

    async def _call(self, request: dict[str, Any]) -> str:
        response = await self._process.request(request)
        if "refusal" in response:
            raise SignerRefused(response["refusal"])
        return str(response["result"])


def list_signed(folder: Path, *, after: int) -> list[tuple[int, int]]:
    """Return the numbers and units of the payments that were signed after a number."""
    if not (folder / _DATABASE).exists():
        return []
    with closing(sqlite3.connect(folder / _DATABASE)) as database:
        found = database.execute("SELECT rowid, units FROM signed WHERE rowid > ? ORDER BY rowid", [after])
        return [(number, int(units)) for number, units in found]


if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

KEY_FILE: Final = "wallet.key"
_KEY_BYTES = 32
_SCHEMA = """
CREATE TABLE IF NOT EXISTS signed (
  chain_id INTEGER NOT NULL, nonce INTEGER NOT NULL, token TEXT NOT NULL, recipient TEXT NOT NULL, units TEXT NOT NULL,
  signed_on TEXT NOT NULL, PRIMARY KEY (chain_id, nonce)
)
"""


class SigningVault:
    """Signs with one key. A nonce for which a payment was signed can only be signed for it again, or for nothing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._account = _account(kept_file(folder / KEY_FILE, lambda: secrets.token_bytes(_KEY_BYTES)))
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
        """Record the payment of a nonce, which counts once for its day. Raises SignerRefused."""
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
        return sqlite3.connect(self._folder / _DATABASE, isolation_level=None)


def _account(key: bytes) -> LocalAccount:
    from eth_account import Account  # noqa: PLC0415 - takes a second to load

    made: LocalAccount = Account.from_key(key)
    return made


POLICY: Final = "policy.json"
GAS_MAX: Final = 500_000
_TRANSFER = re.compile(r"0xa9059cbb0{24}([0-9a-f]{40})([0-9a-f]{64})")


class ChainPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits on one chain, in units of its tokens; the fee is in wei per unit of gas."""

    chain_id: int
    tokens: tuple[str, ...]
    units_per_transaction: int
    units_per_day: int
    max_fee: int


class Payment(msgspec.Struct, frozen=True):
    """The recipient of a transaction, and how much of which token; `units` is 0 if it pays nothing."""

    token: str
    recipient: str
    units: int


def read_policy(folder: Path) -> dict[int, ChainPolicy]:
    """Return the limits by chain. Without a file nothing is signed."""
    try:
        found = msgspec.json.decode((folder / POLICY).read_bytes(), type=list[ChainPolicy])
    except FileNotFoundError:
        return {}
    return {each.chain_id: each for each in found}


def write_policy(folder: Path, *chains: ChainPolicy) -> None:
    """Write a signer's policy, unless it has one: an operator of a sandbox may have changed it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (folder / POLICY).exists():
        (folder / POLICY).write_bytes(msgspec.json.format(msgspec.json.encode(chains)))


def check(policy: ChainPolicy | None, transaction: UnsignedTransaction, *, wallet: str) -> Payment:
    """Return the payment of a transaction. Raises SignerRefused unless the policy allows it."""
    if policy is None:
        raise SignerRefused(f"The policy does not name chain {transaction.chain_id}.")
    _check_cost(policy, transaction)
    if transaction.to == wallet and transaction.data == "0x":
        return Payment("", wallet, 0)
    if transaction.to not in policy.tokens:
        raise SignerRefused("The policy does not name this contract.")
    call = _TRANSFER.fullmatch(transaction.data)
    if call is None:
        raise SignerRefused("The policy allows only transfer(address,uint256).")
    units = int(call[2], 16)
    if not 0 < units <= policy.units_per_transaction:
        raise SignerRefused(f"The policy allows {policy.units_per_transaction} units in a transaction.")
    return Payment(transaction.to, "0x" + call[1], units)


def _check_cost(policy: ChainPolicy, transaction: UnsignedTransaction) -> None:
    if transaction.value:
        raise SignerRefused("The policy allows no transfer of the chain's own coin.")
    if not 0 < transaction.priority_fee <= transaction.max_fee <= policy.max_fee:
        raise SignerRefused(f"The policy allows fees up to {policy.max_fee} wei per unit of gas.")
    if transaction.gas_limit > GAS_MAX:
        raise SignerRefused(f"The policy allows {GAS_MAX} units of gas.")


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """One call: to sign a transaction, or for the address of the wallet."""

    transaction: UnsignedTransaction | None = None


def answer(vault: SigningVault, request: Request) -> dict[str, str]:
    """Return the response to a call: `result`, or `refusal` with the reason."""
    if request.transaction is None:
        return {"result": vault.address}
    try:
        return {"result": vault.sign(request.transaction, today=wall_now().date())}
    except SignerRefused as refusal:
        return {"refusal": str(refusal)}


if __name__ == "__main__":
    signing_vault = SigningVault(Path(sys.argv[1]))
    serve_lines(Request, lambda request: answer(signing_vault, request))
