"""The sums that prove batches and files whole: counts, hash, debits and credits."""

from typing import NamedTuple

from billfold.ports.ach_network import AchFile, Batch

HASH_DIGITS = 10_000_000_000
"""An entry hash keeps its rightmost ten digits."""


class Sums(NamedTuple):
    """What a control record says. Entries count with their addenda; totals are cents."""

    entry_count: int
    entry_hash: int
    debit_total: int
    credit_total: int


def sums_of_batch(batch: Batch) -> Sums:
    """Return what its control record must say."""
    return Sums(
        sum(1 + len(entry.addenda) for entry in batch.entries),
        sum(int(entry.routing_number[:8]) for entry in batch.entries) % HASH_DIGITS,
        batch.debits,
        batch.credits,
    )


def sums_of_file(file: AchFile) -> Sums:
    """Return what its control record must say."""
    parts = [sums_of_batch(batch) for batch in file.batches]
    return Sums(
        sum(part.entry_count for part in parts),
        sum(part.entry_hash for part in parts) % HASH_DIGITS,
        sum(part.debit_total for part in parts),
        sum(part.credit_total for part in parts),
    )


def directions_of(batch: Batch) -> str:
    """Return 200 for debits and credits, 220 for credits alone, 225 for debits alone."""
    kinds = {entry.is_debit for entry in batch.entries}
    if len(kinds) == 2:  # noqa: PLR2004 - both
        return "200"
    return "225" if True in kinds else "220"
