"""Control totals of batches and files: counts, entry hash, debits and credits."""

from typing import NamedTuple

from billfold.payments.ach.nacha.types import Entry

HASH_DIGITS = 10_000_000_000
"""An entry hash keeps the rightmost ten digits."""


class ControlTotals(NamedTuple):
    """The totals of a control record. The count includes addenda; totals are cents."""

    entry_count: int = 0
    entry_hash: int = 0
    debit_total: int = 0
    credit_total: int = 0


class TotalsCounter:
    """Adds up entries, or the totals of batches."""

    def __init__(self) -> None:
        self._count = self._hash = self._debits = self._credits = 0
        self._has_debits = self._has_credits = False

    def add(self, entry: Entry) -> None:
        """Count an entry and its addenda."""
        self._count += 1 + len(entry.addenda)
        self._hash += int(entry.routing_number[:8])
        if entry.is_debit:
            self._debits += entry.amount
            self._has_debits = True
        else:
            self._credits += entry.amount
            self._has_credits = True

    def add_batch(self, batch: ControlTotals) -> None:
        """Count a whole batch."""
        self._count += batch.entry_count
        self._hash += batch.entry_hash
        self._debits += batch.debit_total
        self._credits += batch.credit_total

    @property
    def sums(self) -> ControlTotals:
        """The totals for the control record."""
        return ControlTotals(self._count, self._hash % HASH_DIGITS, self._debits, credit_total=self._credits)

    @property
    def service_class(self) -> str:
        """200 for debits and credits, 220 for credits alone, 225 for debits alone."""
        if self._has_debits and self._has_credits:
            return "200"
        return "225" if self._has_debits else "220"
