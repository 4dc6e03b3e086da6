"""Files to read and write: a payroll, a return and a notification of change."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from hypothesis import strategies as st

from billfold.payments.ach.nacha.records import (
    AchFile,
    Addenda,
    Batch,
    Entry,
    NocAddenda,
    PaymentAddenda,
    ReturnAddenda,
)

BANK = "12100024"
ROUTING_NUMBERS = ("021000021", "011000015", "121182904", "084106768", "122105155", "091000019")


def an_entry(number: int = 1, **changes: Any) -> Entry:
    fields: dict[str, Any] = {
        "transaction_code": "22",
        "routing_number": "021000021",
        "dfi_account_number": "5647772655",
        "amount": 151_000,
        "individual_name": "BETA LLC",
        "individual_identification_number": "INV77",
        "trace_number": f"{BANK}{number:07}",
    }
    return Entry(**fields | changes)


def a_batch(*entries: Entry, batch_number: int = 1, **changes: Any) -> Batch:
    fields: dict[str, Any] = {
        "batch_number": batch_number,
        "company_name": "ACME INC",
        "company_identification": "1123456789",
        "standard_entry_class_code": "PPD",
        "company_entry_description": "PAYROLL",
        "effective_entry_date": date(2026, 11, 23),
        "originating_dfi_identification": BANK,
        "entries": entries or (an_entry(),),
    }
    return Batch(**fields | changes)


def a_file(*batches: Batch, **changes: Any) -> AchFile:
    fields: dict[str, Any] = {
        "immediate_destination": "021000021",
        "immediate_origin": "121000248",
        "created_at": datetime(2026, 11, 20, 10, 5),
        "file_id_modifier": "A",
        "immediate_destination_name": "DEST BANK",
        "immediate_origin_name": "EXAMPLE BANK",
        "batches": batches or (a_batch(),),
    }
    return AchFile(**fields | changes)


def a_return(**changes: Any) -> ReturnAddenda:
    fields: dict[str, Any] = {
        "return_reason_code": "R01",
        "original_entry_trace_number": f"{BANK}0000007",
        "original_receiving_dfi_identification": "02100002",
    }
    return ReturnAddenda(**fields | changes)


def a_change(**changes: Any) -> NocAddenda:
    fields: dict[str, Any] = {
        "change_code": "C01",
        "original_entry_trace_number": f"{BANK}0000007",
        "original_receiving_dfi_identification": "02100002",
        "corrected_data": "1918171614",
    }
    return NocAddenda(**fields | changes)


FORWARD = ("22", "27", "32", "37", "23", "28")
BACKWARD = ("21", "26", "31", "36")
"""Transaction codes of returns and changes. Their amounts are part of the sums (Appendix Three);
not every reader adds them."""


def _text(longest: int, *, least: int = 0) -> st.SearchStrategy[str]:
    letters = "ABCXYZ 019.&*/\\~"
    return st.text(letters, max_size=longest).map(str.strip).filter(lambda it: len(it) >= least)


_TRACES = st.integers(1, 10**15 - 1).map(lambda it: f"{it:015}")
_DAYS = st.none() | st.dates(date(2000, 1, 1), date(2060, 1, 1))
_ADDENDA: st.SearchStrategy[Addenda] = st.one_of(
    st.builds(PaymentAddenda, _text(80)),
    st.builds(
        a_return,
        return_reason_code=st.sampled_from(["R01", "R10", "R14"]),
        original_entry_trace_number=_TRACES,
        date_of_death=_DAYS,
        addenda_information=_text(44),
    ),
    st.builds(a_change, original_entry_trace_number=_TRACES, corrected_data=_text(29)),
)


def _entries(codes: Sequence[str]) -> st.SearchStrategy[tuple[Entry, ...]]:
    told = st.fixed_dictionaries(
        {
            "transaction_code": st.sampled_from(codes),
            "routing_number": st.sampled_from(ROUTING_NUMBERS),
            "dfi_account_number": _text(17, least=1),
            "amount": st.integers(0, 9_999_999_999),
            "individual_name": _text(22),
            "individual_identification_number": _text(15),
            "discretionary_data": _text(2),
            "addenda": st.lists(_ADDENDA, max_size=1).map(tuple),
        }
    )
    return st.lists(told, min_size=1, max_size=5).map(
        lambda some: tuple(an_entry(at, **each) for at, each in enumerate(some, start=1))
    )


def files(codes: Sequence[str]) -> st.SearchStrategy[AchFile]:
    """Files of up to three batches whose entries have these transaction codes."""
    told = st.fixed_dictionaries(
        {
            "entries": _entries(codes),
            "company_name": _text(16),
            "company_discretionary_data": _text(20),
            "standard_entry_class_code": st.sampled_from(["PPD", "CCD", "WEB", "COR"]),
            "company_descriptive_date": _text(6),
            "effective_entry_date": _DAYS,
            "settlement_date": st.none() | st.integers(1, 366),
        }
    )
    return st.lists(told, max_size=3).map(
        lambda some: a_file(batches=tuple(a_batch(batch_number=at, **each) for at, each in enumerate(some, start=1)))
    )
