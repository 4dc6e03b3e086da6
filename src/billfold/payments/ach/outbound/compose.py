"""What the file of a window says: entries and answers as they come, in batches that go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.ledger.types import Direction
from billfold.payments.ach.ports import (
    CHECKING_CREDIT,
    CHECKING_DEBIT,
    SAVINGS_CREDIT,
    SAVINGS_DEBIT,
    AchFile,
    AchFormat,
    Batch,
    Entry,
    Payment,
    Return,
)
from billfold.payments.ach.rules.windows import same_day_mark
from billfold.platform.ids import digits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from billfold.ledger.bank import Bank
    from billfold.payments.ach.store.files import Numbered, Outgoing
    from billfold.payments.ach.types import Answered

OPERATOR, OPERATOR_NAME = "061000146", "FEDERAL RESERVE BANK"
"""The operator our files go to."""
_CODES: dict[tuple[str, str], str] = {
    ("CHECKING", Direction.CREDIT): CHECKING_CREDIT,
    ("CHECKING", Direction.DEBIT): CHECKING_DEBIT,
    ("SAVINGS", Direction.CREDIT): SAVINGS_CREDIT,
    ("SAVINGS", Direction.DEBIT): SAVINGS_DEBIT,
}


class Composer:
    """Writes one file from its rows. What follows one another and goes together is one batch."""

    def __init__(self, bank: Bank, spelling: AchFormat, file: Numbered) -> None:
        self._seed = bank.seed
        self._ours = bank.settings.bank_routing_number[:8]
        self._text = spelling.text
        self._writer = spelling.writer(
            AchFile(
                destination=OPERATOR, destination_name=OPERATOR_NAME,
                origin=bank.settings.bank_routing_number,
                origin_name=spelling.text(bank.settings.bank_name, 23),
                created_at=file.clock, modifier=file.modifier,
            )
        )  # fmt: skip
        self._batches = 0
        self._together: tuple[object, ...] | None = None

    def add(self, entries: Iterable[Outgoing]) -> None:
        """Write entries in the order of their numbers."""
        for each in entries:
            if each.together != self._together:
                self._together = each.together
                self._writer.begin(self._batch(each))
            self._writer.add(self._entry(each))

    def add_answers(self, answers: Iterable[tuple[str, Answered]]) -> None:
        """Write answers, each with its number, in the order of their numbers."""
        for trace, told in answers:
            together = ("answer", told.company, told.company_id, told.entry_class, told.purpose)
            if together != self._together:
                self._together = together
                self._writer.begin(self._batch_of_answers(told))
            self._writer.add(_answer(trace, told))

    def end(self) -> bytes:
        """Return the file."""
        return self._writer.end()

    def _next_number(self) -> int:
        self._batches += 1
        return self._batches

    def _batch(self, first: Outgoing) -> Batch:
        return Batch(
            number=self._next_number(),
            company=self._text(first.company_name, 16),
            company_id="9" + digits(self._seed, first.customer_id, 0, 9),
            entry_class=first.sec_code,
            purpose=self._text(first.description, 10),
            effective_on=first.effective_on,
            bank=self._ours,
            descriptive_date=same_day_mark(first.due_at, first.effective_on),
        )

    def _entry(self, entry: Outgoing) -> Entry:
        return Entry(
            code=_CODES[entry.account_type, entry.direction],
            routing_number=entry.routing_number,
            account_number=entry.account_number,
            amount=entry.amount,
            name=self._text(entry.party_name, 22),
            identification=entry.identification,
            discretionary="S" if entry.sec_code == "WEB" else "",
            trace=entry.trace_number,
            addenda=tuple(Payment(self._text(line, 80)) for line in entry.lines),
        )

    def _batch_of_answers(self, first: Answered) -> Batch:
        return Batch(
            number=self._next_number(),
            company=first.company,
            company_id=first.company_id,
            entry_class=first.entry_class,
            purpose=first.purpose,
            effective_on=None,
            bank=self._ours,
        )


def _answer(trace: str, told: Answered) -> Entry:
    return Entry(
        code=told.code,
        routing_number=told.routing_number,
        account_number=told.account_number,
        amount=told.amount,
        name=told.name,
        identification=told.identification,
        trace=trace,
        addenda=(
            Return(
                reason=told.reason,
                original_trace=told.original_trace,
                original_bank=told.original_bank,
                information=told.information,
            ),
        ),
    )
