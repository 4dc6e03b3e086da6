"""Composition of an outbound ACH file: entries and returns in batches."""

from collections.abc import Iterable
from uuid import UUID

import msgspec

from billfold.data_keys.payment_keys import PaymentKeys
from billfold.data_keys.types import DataShredded, PartyField
from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction
from billfold.payments.ach.nacha.types import (
    AchFile,
    Batch,
    Entry,
    PaymentAddenda,
    ReturnAddenda,
)
from billfold.payments.ach.nacha.writer import NachaWriter, to_ach_text
from billfold.payments.ach.rules.windows import same_day_descriptive_date
from billfold.payments.ach.store.files import NumberedFile, OutgoingEntry, OutgoingReturn
from billfold.payments.ach.types import ReturnEntry
from billfold.platform.ids import digits

OPERATOR, OPERATOR_NAME = "061000146", "FEDERAL RESERVE BANK"
"""The ACH operator that receives our files."""
_CODES: dict[tuple[str, str], str] = {
    ("CHECKING", Direction.CREDIT): "22",
    ("CHECKING", Direction.DEBIT): "27",
    ("SAVINGS", Direction.CREDIT): "32",
    ("SAVINGS", Direction.DEBIT): "37",
}


class AchFileComposer:
    """Composes one file from its rows. Consecutive entries with the same batch fields form a batch."""

    def __init__(self, bank: Bank, file: NumberedFile) -> None:
        self._seed = bank.seed
        self._own_routing_prefix = bank.settings.bank_routing_number[:8]
        self._writer = NachaWriter(
            AchFile(
                immediate_destination=OPERATOR,
                immediate_destination_name=OPERATOR_NAME,
                immediate_origin=bank.settings.bank_routing_number,
                immediate_origin_name=to_ach_text(bank.settings.bank_name, 23),
                created_at=file.clock,
                file_id_modifier=file.modifier,
            )
        )
        self._batches = 0
        self._batch_key: tuple[object, ...] | None = None

    def add(self, entries: Iterable[OutgoingEntry], keys: PaymentKeys) -> None:
        """Write entries in the order of their trace numbers, opened with the keys of their customers."""
        for each in entries:
            if each.batch_key != self._batch_key:
                self._batch_key = each.batch_key
                self._writer.begin(self._batch(each))
            self._writer.add(self._entry(each, keys))

    def add_return_entries(self, returns: Iterable[OutgoingReturn], keys: PaymentKeys) -> None:
        """Write returns in the order of their trace numbers, opened."""
        for customer_id, trace, stored in returns:
            return_entry = _opened(customer_id, stored, keys)
            batch_key = (
                "answer",
                return_entry.company,
                return_entry.company_id,
                return_entry.entry_class,
                return_entry.purpose,
            )
            if batch_key != self._batch_key:
                self._batch_key = batch_key
                self._writer.begin(self._return_batch(return_entry))
            self._writer.add(_return_entry(trace, return_entry))

    def end(self) -> bytes:
        """Return the content of the file."""
        return self._writer.end()

    def _next_number(self) -> int:
        self._batches += 1
        return self._batches

    def _batch(self, first: OutgoingEntry) -> Batch:
        return Batch(
            batch_number=self._next_number(),
            company_name=to_ach_text(first.company_name, 16),
            company_identification="9" + digits(self._seed, first.customer_id, 0, count=9),
            standard_entry_class_code=first.sec_code,
            company_entry_description=to_ach_text(first.description, 10),
            effective_entry_date=first.effective_on,
            originating_dfi_identification=self._own_routing_prefix,
            company_descriptive_date=same_day_descriptive_date(first.due_at, first.effective_on),
        )

    def _entry(self, entry: OutgoingEntry, keys: PaymentKeys) -> Entry:
        account_number = keys.open(PartyField.ACCOUNT, entry.customer_id, entry.account_number)
        if account_number is None:
            raise DataShredded(entry.customer_id)
        return Entry(
            transaction_code=_CODES[entry.account_type, entry.direction],
            routing_number=entry.routing_number,
            dfi_account_number=account_number,
            amount=entry.amount,
            individual_name=to_ach_text(entry.party_name, 22),
            individual_identification_number=entry.identification,
            discretionary_data="S" if entry.sec_code == "WEB" else "",
            trace_number=entry.trace_number,
            addenda=tuple(PaymentAddenda(to_ach_text(line, 80)) for line in entry.lines),
        )

    def _return_batch(self, first: ReturnEntry) -> Batch:
        return Batch(
            batch_number=self._next_number(),
            company_name=first.company,
            company_identification=first.company_id,
            standard_entry_class_code=first.entry_class,
            company_entry_description=first.purpose,
            effective_entry_date=None,
            originating_dfi_identification=self._own_routing_prefix,
        )


def _opened(customer_id: UUID, stored: ReturnEntry, keys: PaymentKeys) -> ReturnEntry:
    """Return what a return says in plain text. Its trace number is what it is recognized by, if a key was destroyed."""
    return msgspec.structs.replace(
        stored,
        account_number=keys.open(PartyField.ACCOUNT, customer_id, stored.account_number) or "0",
        name=keys.open(PartyField.TEXT, customer_id, stored.name) or "",
        identification=keys.open(PartyField.TEXT, customer_id, stored.identification) or "",
        company_id=keys.open(PartyField.TEXT, customer_id, stored.company_id) or "",
    )


def _return_entry(trace: str, return_entry: ReturnEntry) -> Entry:
    return Entry(
        transaction_code=return_entry.code,
        routing_number=return_entry.routing_number,
        dfi_account_number=return_entry.account_number,
        amount=return_entry.amount,
        individual_name=return_entry.name,
        individual_identification_number=return_entry.identification,
        trace_number=trace,
        addenda=(
            ReturnAddenda(
                return_reason_code=return_entry.reason,
                original_entry_trace_number=return_entry.original_trace,
                original_receiving_dfi_identification=return_entry.original_bank,
                addenda_information=return_entry.information,
            ),
        ),
    )
