"""A malformed file is refused; a malformed entry or batch is reported by line and reason."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.payments.ach.nacha.files import BACKWARD, FORWARD, a_batch, a_change, a_file, a_return, an_entry, files

from billfold.payments.ach.nacha.reader import normalize, read_batch_mistakes, read_file, read_lines
from billfold.payments.ach.nacha.records import AchFileMistake, EntryLine, PaymentAddenda
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.files.types import InvalidFile

PAYROLL = a_file(
    a_batch(an_entry(1), an_entry(2, addenda=(PaymentAddenda("THANKS"),))),
    a_batch(an_entry(3, transaction_code="27", amount=99), batch_number=2, company_entry_description="DUES"),
)
LINES = write_file(PAYROLL).decode().splitlines()


@settings(max_examples=30)
@given(files(FORWARD + BACKWARD))
def test_a_written_nacha_file_is_read_back_equal(file):
    assert read_file(write_file(file)) == file


def test_returns_and_notifications_of_change_are_read():
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


def test_nacha_lines_may_end_with_any_line_ending():
    raw = write_file(PAYROLL)

    assert read_file(raw.replace(b"\n", b"\r\n")) == PAYROLL
    assert read_file(raw.removesuffix(b"\n")) == PAYROLL
    assert read_file(raw.replace(b"\n", b"")) == PAYROLL


def test_errors_are_raised_at_the_end_of_a_nacha_file():
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
    "an address that is none": (_put(1, 5, "X"), 1, "immediate destination should be digits"),
    "no date of the file": (_put(1, 24, "000000"), 1, "creation date is missing"),
    "another record size": (_put(1, 35, "080"), 1, "record size should be 094"),
    "a wrong file total": (_put(10, 43, "8"), 10, "debit total says 98, is 99"),
    "a file total that is none": (_put(10, 43, "X"), 10, "debit total should be digits"),
    "a wrong batch count": (_put(10, 7, "3"), 10, "batch count says 3, is 2"),
    "a wrong block count": (_put(10, 13, "2"), 10, "block count says 2, is 1"),
    "a second header": (lambda lines: lines.insert(1, lines[0]), 2, "second file header"),
    "no header": (lambda lines: lines.pop(0), 1, "before any file header"),
    "an entry between batches": (lambda lines: lines.insert(6, lines[2]), 7, "outside a batch"),
    "a batch within a batch": (lambda lines: lines.insert(3, lines[1]), 4, "no control"),
    "a batch without control": (lambda lines: lines.pop(8), 9, "the batch before has no control"),
    "something after the end": (lambda lines: lines.append(lines[2]), 11, "not a filler"),
    "a block that is not counted": (lambda lines: lines.append("9" * 94), 10, "block count says 1, is 2"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_structural_error_refuses_the_nacha_file_and_reports_its_line(name):
    change, line, told = WRONG[name]
    lines = list(LINES)
    change(lines)

    with pytest.raises(InvalidFile) as refused:
        read_file("\n".join(lines).encode())

    assert [each for each in refused.value.mistakes if each.line == line and told in each.reason], (
        refused.value.mistakes
    )


ODD_ENTRIES: dict[str, tuple[Change, int, str]] = {
    "a letter in an amount": (_put(3, 30, "O"), 3, "amount should be digits"),
    "a letter in a routing number": (_put(3, 4, "O"), 3, "routing number should be digits"),
    "a letter in a trace number": (_put(3, 94, "O"), 3, "trace number should be digits"),
    "a wrong check digit": (_put(3, 12, "2"), 3, "check digit"),
    "no account number": (_put(3, 13, " " * 17), 3, "account number is missing"),
    "an unknown transaction code": (_put(3, 2, "99"), 3, "not a transaction code"),
    "an addenda that was not announced": (_put(4, 79, "0"), 4, "addenda record indicator"),
    "an indicator of no kind": (_put(4, 79, "X"), 4, "addenda record indicator"),
    "an addenda of another entry": (_put(5, 94, "9"), 4, "another entry"),
    "an addenda counted wrongly": (_put(5, 87, "2"), 4, "consecutive from 1"),
    "an addenda of no kind": (_put(5, 2, "77"), 4, "addenda type '77' is not known"),
}


@pytest.mark.parametrize("name", ODD_ENTRIES)
def test_an_invalid_entry_is_reported_and_the_others_are_read(name):
    change, line, told = ODD_ENTRIES[name]
    lines = list(LINES)
    change(lines)

    seen = list(read_lines("\n".join(lines).encode()))

    assert [each.number for each in seen] == [3, 4, 8]
    assert {each.number: told in each.mistake for each in seen if each.mistake} == {line: True}


ODD_BATCHES: dict[str, tuple[Change, int, str]] = {
    "a wrong count": (_put(6, 10, "9"), 2, "entry count says 9, is 3"),
    "a wrong hash": (_put(6, 20, "9"), 2, "entry hash says 4200009, is 4200004"),
    "a wrong credit total": (_put(6, 44, "1"), 2, "credit total says 302001, is 302000"),
    "a total that is none": (_put(6, 44, "X"), 2, "credit total should be digits"),
    "another company in the control": (_put(6, 45, "X"), 2, "company identification"),
    "another bank in the control": (_put(6, 87, "9"), 2, "originating dfi identification"),
    "a class that does not fit": (_put(7, 2, "220"), 7, "batch control: service class code 225 is 220"),
    "a class of no kind": (_put(2, 51, "XXX"), 2, "'XXX' is not an entry class"),
    "a bank that is none": (_put(2, 80, "X"), 2, "originating dfi identification should be digits"),
}


@pytest.mark.parametrize("name", ODD_BATCHES)
def test_an_invalid_batch_is_reported_and_its_entries_are_read(name):
    change, line, told = ODD_BATCHES[name]
    lines = list(LINES)
    change(lines)
    raw = "\n".join(lines).encode()

    assert {at: told in reason for at, reason in read_batch_mistakes(raw).items()} == {line: True}
    assert [(each.number, each.batch_at) for each in read_lines(raw)] == [(3, 2), (4, 2), (8, 7)]


FINE: dict[str, Change] = {
    "batch numbers that do not ascend": lambda lines: [_put(at, 94, "9")(lines) for at in (2, 6)],
    "the same batch number twice": lambda lines: [_put(at, 94, "1")(lines) for at in (7, 9)],
    "a trace that falls": _put(4, 94, "0"),
    "a date that is none": _put(2, 70, "261131"),
    "a settlement day that is none": _put(2, 76, "MON"),
    "a time that is none": _put(1, 30, "2460"),
    "a status of no kind": _put(2, 79, " "),
    "blank lines": lambda lines: lines.__setitem__(slice(2, 2), ["", " " * 94]),
    "a batch without entries": lambda lines: lines.__setitem__(
        slice(9, None), [lines[6], lines[8][:4] + "0" * 40 + lines[8][44:], lines[9][:6] + "3000002" + lines[9][13:]]
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_unusual_but_valid_entries_are_read(name):
    lines = list(LINES)
    if name == "a trace that falls":
        _put(5, 94, "0")(lines)
    FINE[name](lines)
    raw = "\n".join(lines).encode()

    assert [each.entry.amount for each in read_lines(raw)] == [151_000, 151_000, 99]
    assert not any(each.mistake for each in read_lines(raw))
    assert read_batch_mistakes(raw) == {}


def test_a_nacha_file_without_filler_lines_is_read():
    lines = [*LINES[:6], LINES[9]]
    for column, text in ((7, "1"), (13, "1"), (21, "3"), (25, "42"), (31, "4"), (42, "00")):
        _put(7, column, text)(lines)

    assert len(list(read_lines("\n".join(lines).encode()))) == 2


def test_all_errors_of_a_nacha_file_are_reported_together():
    lines = list(LINES)
    for change in (_put(3, 1, "4"), _put(4, 1, "X"), _put(8, 1, "1")):
        change(lines)

    with pytest.raises(InvalidFile) as refused:
        read_file("\n".join(lines).encode())

    assert [each.line for each in refused.value.mistakes][:3] == [3, 4, 8]


@settings(max_examples=50)
@given(st.integers(0, len(write_file(PAYROLL)) - 2))
def test_a_nacha_file_truncated_at_any_point_is_refused(at):
    with pytest.raises(InvalidFile):
        read_file(write_file(PAYROLL)[:at])


def test_a_truncated_nacha_file_is_refused_with_its_last_line():
    with pytest.raises(InvalidFile) as refused:
        read_file("\n".join(LINES[:4]).encode())

    assert refused.value.mistakes == (AchFileMistake(4, None, "ends without a file control: the file is truncated"),)


@settings(max_examples=50)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_raise_only_invalid_file_in_the_nacha_reader(raw):
    with pytest.raises(InvalidFile):
        read_file(raw)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize(
    ("name", "read"), [("BÉTA LLC", "BETA LLC"), ("BßTA LLC", "B?TA LLC"), ("B\tTA LLC", "B?TA LLC")]
)
def test_a_non_ascii_character_is_read_as_its_base_letter_or_a_placeholder(encoding, name, read):
    raw = "\n".join(LINES).replace("BETA LLC", name).encode(encoding)

    assert [each.entry.individual_name for each in read_lines(raw)] == [read] * 3


def test_a_byte_order_mark_and_trailing_bytes_around_a_nacha_file_are_ignored():
    raw = write_file(PAYROLL)

    for sent in (
        b"\xef\xbb\xbf" + raw,
        raw + b"\x1a",
        raw + b"\n\n",
        raw.replace(b"\n", b"\r"),
        raw[:-1] + b"\r\n\x00",
    ):
        assert normalize(sent) == raw
        assert read_file(sent) == PAYROLL


def test_iat_and_adv_entries_are_read_by_their_own_layout():
    header = "5220                FF3               US1234567890IATPAYMENT   USDUSD251224   1021000020000001"
    entry = "6220611999920003" + " " * 13 + "0000054321" + "852867565339".ljust(39) + "1021000020000001"
    addenda = [
        f"7{kind}{text}"[:87].ljust(87) + "0000001"
        for kind, text in (("10", "ANN" + "0" * 18 + " " * 22 + "LARKSPUR TOOLING"), ("11", "ORCHID"), ("17", "RENT"))
    ]
    control = "82200000040006119999" + "0" * 12 + "000000054321" + "1234567890" + " " * 25 + "021000020000001"
    advice = (
        "5280FEDERAL RESERVE                     1234567890ADVADVICE          251224   0061000140000002",
        "681061199992852867565339   00000005432102100002000001ALARKSPUR TOOLING        0061000143580001",
        "82800000010006119999" + "0" * 20 + "00000000000000054321" + " " * 19 + "061000140000002",
    )
    lines = [LINES[0], header, entry, *addenda, control, *advice]
    closing = "9000002000002000000050012239998" + "0" * 12 + "000000108642"
    raw = "\n".join([*lines, closing.ljust(94), *["9" * 94] * 9]).encode()

    foreign, advised = read_file(raw).batches
    assert (foreign.entries[0].amount, foreign.entries[0].dfi_account_number) == (54_321, "852867565339")
    assert foreign.entries[0].individual_name == "LARKSPUR TOOLING"
    assert len(foreign.entries[0].addenda) == 3
    assert (advised.entries[0].amount, advised.entries[0].is_debit) == (54_321, False)
    assert read_batch_mistakes(raw) == {}
    assert not [each.mistake for each in read_lines(raw) if each.mistake]
