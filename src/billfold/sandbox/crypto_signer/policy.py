"""What the signer signs. Its policy is a file in its own folder; nobody that asks it for a signature writes there."""

import re
from pathlib import Path
from typing import Final

import msgspec

from billfold.payments.crypto.withdrawals.signing import SignerRefused, UnsignedTransaction

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
    """Whom a transaction pays, and how much of which token; `units` is 0 of one that pays nothing."""

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
    """Give a signer its policy, unless it has one: an operator of a sandbox may have changed it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (folder / POLICY).exists():
        (folder / POLICY).write_bytes(msgspec.json.format(msgspec.json.encode(chains)))


def check(policy: ChainPolicy | None, transaction: UnsignedTransaction, *, wallet: str) -> Payment:
    """Return what a transaction pays. Raises SignerRefused unless the policy allows it."""
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
