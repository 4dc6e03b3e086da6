"""The banks of the sandbox: they read our ACH files and answer with files of their own.

An account at the bank 091000019 is not there (R03). An amount that ends in 03 comes back: a debit
for want of funds (R01), a credit because the account is closed (R02). All else is paid.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from billfold.payments.ach.nacha.types import (
    NOC_ENTRY_CLASS,
    AchFile,
    Addenda,
    Batch,
    Entry,
    NocAddenda,
    ReturnAddenda,
)
from billfold.payments.deposits.types import IncomingAch
from billfold.platform.ids import digits
from billfold.sandbox.magic_values import MagicValue

OPERATOR, OPERATOR_NAME = "061000146", "FEDERAL RESERVE BANK"
NO_SUCH_BANK = "091000019"
_RETURNED_CENTS = 3
MAGIC_VALUES = (
    MagicValue("ach", "routing number", NO_SUCH_BANK, "An originated entry comes back: no account (R03)."),
    MagicValue(
        "ach", "amount", f"ends in {_RETURNED_CENTS:02}", "An originated debit comes back for R01, a credit for R02."
    ),
)
SENDER = "09100001"
"""The first digits of the bank that companies of the sandbox send from."""


class SentEntry(NamedTuple):
    """An entry of ours and the batch it was in."""

    batch: Batch
    entry: Entry


class EntryOrder(NamedTuple):
    """An entry that another bank is to send us. `amount` in cents."""

    routing_number: str
    account_number: str
    amount: int
    is_debit: bool
    company: str
    entry_class: str
    purpose: str
    identification: str = ""
    number: int = 0  # the last seven digits of its trace


def ach_credit(seed: bytes, ach_id: UUID, to: Mapping[str, str], *, amount: int, company_name: str) -> IncomingAch:
    """Return an ACH credit that needs no file; its numbers are derived from its id, so it repeats."""
    return IncomingAch(
        ach_id=ach_id,
        **to,
        amount=amount,
        company_name=company_name,
        company_entry_description="PAYMENT",
        individual_identification_number=digits(seed, ach_id, 2, count=10),
        trace_number=SENDER + digits(seed, ach_id, 0, count=7),
    )


def entries_of(file: AchFile) -> Iterator[SentEntry]:
    """Yield the entries of a file that pay or take; answers are not answered."""
    for batch in file.batches:
        for entry in batch.entries:
            if entry.transaction_code[1] not in "16":
                yield SentEntry(batch, entry)


def returns_for(file: AchFile, at: datetime) -> AchFile | None:
    """Return the file of returns that a file of ours calls forth, None when all is well."""
    returns = [(sent, code) for sent in entries_of(file) if (code := _code(sent)) is not None]
    return return_file(returns, file.immediate_origin, at) if returns else None


def return_file(returns: Iterable[tuple[SentEntry, str]], to: str, at: datetime) -> AchFile:
    """Return a file in which these entries come back."""
    answers = [(sent, _return(sent, code)) for sent, code in returns]
    return _file_of(answers, to, at)


def noc_file(sent: SentEntry, code: str, corrected: str, to: str, at: datetime) -> AchFile:
    """Return a file that says what to put right about an entry."""
    addendum = NocAddenda(
        change_code=code,
        original_entry_trace_number=sent.entry.trace_number,
        original_receiving_dfi_identification=sent.entry.routing_number[:8],
        corrected_data=corrected,
    )
    return _file_of([(sent, addendum)], to, at)


def entry_file(order: EntryOrder, at: datetime) -> AchFile:
    """Return a file with one entry from a company of the sandbox."""
    entry = Entry(
        transaction_code="27" if order.is_debit else "22",
        routing_number=order.routing_number,
        dfi_account_number=order.account_number,
        amount=order.amount,
        individual_name="ACCOUNT HOLDER",
        individual_identification_number=order.identification,
        discretionary_data="S" if order.entry_class == "WEB" else "",
        trace_number=f"{SENDER}{order.number:07}",
    )
    batch = Batch(
        batch_number=1,
        company_name=order.company,
        company_identification="9000000001",
        standard_entry_class_code=order.entry_class,
        company_entry_description=order.purpose,
        effective_entry_date=at.date(),
        originating_dfi_identification=SENDER,
        entries=(entry,),
        settlement_date=at.timetuple().tm_yday,
    )
    return _file((batch,), order.routing_number, at)


def _code(sent: SentEntry) -> str | None:
    if sent.entry.routing_number == NO_SUCH_BANK:
        return "R03"
    if sent.entry.amount % 100 == _RETURNED_CENTS:
        return "R01" if sent.entry.is_debit else "R02"
    return None


def _return(sent: SentEntry, code: str) -> ReturnAddenda:
    return ReturnAddenda(
        return_reason_code=code,
        original_entry_trace_number=sent.entry.trace_number,
        original_receiving_dfi_identification=sent.entry.routing_number[:8],
    )


def _file_of(answers: Iterable[tuple[SentEntry, Addenda]], to: str, at: datetime) -> AchFile:
    batches: list[Batch] = []
    for (batch, bank), group in groupby(answers, _batch_and_bank):
        is_noc = False
        entries = []
        for number, (sent, addendum) in enumerate(group, start=1):
            is_noc = isinstance(addendum, NocAddenda)
            entries.append(_answer_entry(sent.entry, addendum, to, trace=_trace(bank, len(batches), number)))
        batches.append(
            Batch(
                batch_number=len(batches) + 1,
                company_name=batch.company_name,
                company_identification=batch.company_identification,
                standard_entry_class_code=NOC_ENTRY_CLASS if is_noc else batch.standard_entry_class_code,
                company_entry_description=batch.company_entry_description,
                effective_entry_date=at.date(),
                originating_dfi_identification=bank,
                entries=tuple(entries),
                settlement_date=at.timetuple().tm_yday,
            )
        )
    return _file(tuple(batches), to, at)


def _batch_and_bank(answer: tuple[SentEntry, Addenda]) -> tuple[Batch, str]:
    sent, _ = answer
    return sent.batch, sent.entry.routing_number[:8]


def _trace(bank: str, batch: int, number: int) -> str:
    return f"{bank}{batch * 1000 + number:07}"


def _answer_entry(entry: Entry, addendum: Addenda, to: str, trace: str) -> Entry:
    return Entry(
        transaction_code=entry.transaction_code[0] + ("6" if entry.is_debit else "1"),
        routing_number=to,
        dfi_account_number=entry.dfi_account_number,
        amount=0 if isinstance(addendum, NocAddenda) else entry.amount,
        individual_name=entry.individual_name,
        individual_identification_number=entry.individual_identification_number,
        trace_number=trace,
        addenda=(addendum,),
    )


def _file(batches: tuple[Batch, ...], to: str, at: datetime) -> AchFile:
    return AchFile(
        immediate_destination=to,
        immediate_origin=OPERATOR,
        immediate_origin_name=OPERATOR_NAME,
        created_at=at,
        file_id_modifier="A",
        batches=batches,
    )
