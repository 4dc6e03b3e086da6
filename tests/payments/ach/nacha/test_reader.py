"""A file is taken whole or not at all, and what is wrong is told by line and reason."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.payments.ach.nacha.files import BACKWARD, FORWARD, a_batch, a_change, a_file, a_return, an_entry, files

from billfold.payments.ach.nacha.reader import read_file, read_lines
from billfold.payments.ach.nacha.types import AchFileMistake, EntryLine, PaymentAddenda
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.files.types import InvalidFile

PAYROLL = a_file(
    a_batch(an_entry(1), an_entry(2, addenda=(PaymentAddenda("THANKS"),))),
    a_batch(an_entry(3, transaction_code="27", amount=99), batch_number=2, company_entry_description="DUES"),
)
LINES = write_file(PAYROLL).decode().splitlines()


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(files(FORWARD + BACKWARD))
def test_a_written_file_is_read_back_equal(file):
    assert read_file(write_file(file)) == file


def test_returns_and_changes_are_read():
    file = a_file(
        a_batch(an_entry(transaction_code="21", addenda=(a_return(),))),
        a_batch(
            an_entry(transaction_code="21", amount=0, addenda=(a_change(),)),
            batch_number=2,
            standard_entry_class_code="COR",
        ),
    )

    returned, changed = read_file(write_file(file)).batches
    assert returned.entries[0].addenda == (a_return(),)
    assert changed.entries[0].addenda == (a_change(),)


def test_lines_may_end_as_other_systems_end_them():
    raw = write_file(PAYROLL)

    assert read_file(raw.replace(b"\n", b"\r\n")) == PAYROLL
    assert read_file(raw.removesuffix(b"\n")) == PAYROLL
    assert read_file(raw.replace(b"\n", b"")) == PAYROLL


def test_mistakes_are_raised_at_the_end_of_the_file():
    lines = list(LINES)
    _put(10, 43, "8")(lines)
    seen: list[EntryLine] = []

    with pytest.raises(InvalidFile):
        seen.extend(read_lines("\n".join(lines).encode()))

    assert [(each.number, each.entry.amount, each.batch.company_entry_description) for each in seen] == [
        (3, 151_000, "PAYROLL"),
        (4, 151_000, "PAYROLL"),
        (8, 99, "DUES"),
    ]
    assert {each.batch.entries for each in seen} == {()}


Change = Callable[[list[str]], object]


def _put(line: int, column: int, text: str) -> Change:
    def change(lines: list[str]) -> None:
        old = lines[line - 1]
        lines[line - 1] = old[: column - 1] + text + old[column - 1 + len(text) :]

    return change


# 1 header, 2 batch, 3 entry, 4 entry, 5 addenda, 6 control, 7 batch, 8 entry, 9 control, 10 closing
WRONG: dict[str, tuple[Change, int, str]] = {
    "a line too short": (lambda lines: lines.insert(2, lines.pop(2)[:-1]), 3, "93 characters"),
    "an unknown record": (_put(3, 1, "4"), 3, "not a record type"),
    "a letter in an amount": (_put(3, 30, "O"), 3, "amount should be digits"),
    "a wrong check digit": (_put(3, 12, "2"), 3, "check digit"),
    "no account number": (_put(3, 13, " " * 17), 3, "account number is missing"),
    "an unknown transaction code": (_put(3, 2, "99"), 3, "not a transaction code"),
    "a trace that falls": (_put(4, 94, "0"), 4, "ascend"),
    "an addenda that was not announced": (_put(4, 79, "0"), 6, "addenda record indicator"),
    "an addenda that is missing": (lambda lines: lines.pop(4), 5, "addenda record indicator"),
    "an addenda of another entry": (_put(5, 94, "9"), 5, "another entry"),
    "an addenda counted wrongly": (_put(5, 87, "2"), 5, "consecutive from 1"),
    "an addenda of no kind": (_put(5, 2, "77"), 5, "not one of 05, 98, 99"),
    "a wrong count": (_put(6, 10, "9"), 6, "entry count says 9, is 3"),
    "a wrong hash": (_put(6, 20, "9"), 6, "entry hash says 4200009, is 4200004"),
    "a wrong credit total": (_put(6, 44, "1"), 6, "credit total says 302001, is 302000"),
    "another company in the control": (_put(6, 45, "X"), 6, "company identification"),
    "another bank in the control": (_put(6, 87, "9"), 6, "originating dfi identification"),
    "a class that does not fit": (_put(7, 2, "220"), 9, "service class 220"),
    "a batch number twice": (_put(7, 94, "1"), 9, "batch number"),
    "a class we do not take": (_put(2, 51, "IAT"), 2, "not a supported entry class"),
    "a date that is none": (_put(2, 70, "261131"), 2, "date as YYMMDD"),
    "a time that is none": (_put(1, 30, "2460"), 1, "time as HHMM"),
    "no date of the file": (_put(1, 24, "000000"), 1, "creation date is missing"),
    "a wrong file total": (_put(10, 43, "8"), 10, "debit total says 98, is 99"),
    "a wrong batch count": (_put(10, 7, "3"), 10, "batch count says 3, is 2"),
    "a wrong block count": (_put(10, 13, "2"), 10, "block count says 2, is 1"),
    "a second header": (lambda lines: lines.insert(1, lines[0]), 2, "second file header"),
    "no header": (lambda lines: lines.pop(0), 1, "before any file header"),
    "an entry between batches": (lambda lines: lines.insert(6, lines[2]), 7, "outside a batch"),
    "a batch within a batch": (lambda lines: lines.insert(3, lines[1]), 4, "no control"),
    "a batch without control": (lambda lines: lines.pop(8), 9, "the batch before has no control"),
    "something after the end": (lambda lines: lines.append(lines[2]), 11, "not a filler"),
    "half a block": (lambda lines: lines.append("9" * 94), 11, "whole blocks"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_reported_with_its_line(name):
    change, line, told = WRONG[name]
    lines = list(LINES)
    change(lines)

    with pytest.raises(InvalidFile) as refused:
        read_file("\n".join(lines).encode())

    assert [each for each in refused.value.mistakes if each.line == line and told in each.reason], (
        refused.value.mistakes
    )


def test_every_mistake_of_a_file_is_reported_at_once():
    lines = list(LINES)
    for change in (_put(3, 12, "2"), _put(4, 30, "X"), _put(8, 2, "99")):
        change(lines)

    with pytest.raises(InvalidFile) as refused:
        read_file("\n".join(lines).encode())

    assert [each.line for each in refused.value.mistakes] == [3, 4, 8]


@settings(max_examples=50)
@given(st.integers(0, len(write_file(PAYROLL)) - 2))
def test_a_file_cut_anywhere_is_refused(at):
    with pytest.raises(InvalidFile):
        read_file(write_file(PAYROLL)[:at])


def test_a_truncated_file_names_its_last_line():
    with pytest.raises(InvalidFile) as refused:
        read_file("\n".join(LINES[:4]).encode())

    assert refused.value.mistakes == (AchFileMistake(4, None, "ends without a file control: the file is truncated"),)


@settings(max_examples=50)
@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(raw):
    with pytest.raises(InvalidFile):
        read_file(raw)


def test_the_line_of_a_byte_that_is_not_ascii_is_reported():
    lines = list(LINES)
    lines[2] = lines[2].replace("BETA", "BÉTA")

    with pytest.raises(InvalidFile) as refused:
        read_file("\n".join(lines).encode())

    assert refused.value.mistakes[0].line == 3
