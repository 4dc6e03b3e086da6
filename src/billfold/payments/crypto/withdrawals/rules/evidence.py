"""What nodes report of a nonce, and what the bank makes of it. No node is believed alone about what is final."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from billfold.payments.crypto.withdrawals.types import Intent, TransactionState


class Depth(StrEnum):
    """How far a nonce has come on the chain of a node."""

    PENDING = "PENDING"
    MINED = "MINED"
    FINAL = "FINAL"


class Outcome(StrEnum):
    """What the transaction did that a node has in a block.

    UNEXPLAINED: it succeeded, and its logs do not say that it paid: nobody returns that money without looking.
    """

    PAID = "PAID"
    REVERTED = "REVERTED"
    CANCELED = "CANCELED"
    DISPLACED = "DISPLACED"
    UNEXPLAINED = "UNEXPLAINED"


class Sighting(NamedTuple):
    """One node's view of a nonce. `outcome` and what follows are None while it is pending; the fee is in wei."""

    depth: Depth
    outcome: Outcome | None = None
    transaction_hash: str | None = None
    block_number: int | None = None
    block_hash: str | None = None
    fee: int | None = None


class Disagreement(Exception):
    """Nodes report different ends of one nonce."""


PENDING = Sighting(Depth.PENDING)
_STATE_OF = {
    Outcome.PAID: TransactionState.CONFIRMED,
    Outcome.REVERTED: TransactionState.REVERTED,
    Outcome.CANCELED: TransactionState.CANCELED,
    Outcome.DISPLACED: TransactionState.DISPLACED,
}


def agreed(sightings: Sequence[Sighting], *, nodes: int) -> Sighting:
    """Return what holds: FINAL only when every node of the chain reports the same final transaction.

    Raises Disagreement when two report different ones as final.
    """
    final = {each for each in sightings if each.depth == Depth.FINAL}
    if len({(each.transaction_hash, each.outcome, each.block_hash) for each in final}) > 1:
        raise Disagreement
    if final and len(sightings) == nodes and all(each.depth == Depth.FINAL for each in sightings):
        return next(iter(final))
    mined = sorted((each for each in sightings if each.depth != Depth.PENDING), key=lambda each: each.depth)
    return mined[0]._replace(depth=Depth.MINED) if mined else PENDING


def state_of(sighting: Sighting) -> TransactionState | None:
    """Return the state that a sighting leads to; None where somebody must look first."""
    if sighting.depth == Depth.PENDING:
        return TransactionState.SUBMITTED
    if sighting.depth == Depth.MINED:
        return TransactionState.MINED
    return None if sighting.outcome is None else _STATE_OF.get(sighting.outcome)


def outcome_of(intent: Intent, *, is_success: bool, is_paid: bool) -> Outcome:
    """Return what a transaction of ours did, by its receipt."""
    if intent == Intent.CANCEL:
        return Outcome.CANCELED
    if not is_success:
        return Outcome.REVERTED
    return Outcome.PAID if is_paid else Outcome.UNEXPLAINED
