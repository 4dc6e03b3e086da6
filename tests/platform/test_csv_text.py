"""Cells of tables that spreadsheets open."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from billfold.platform.dates import ET
from billfold.platform.text import Separators, cell_of, lines_of

INVISIBLE = (
    "",
    " ",
    "\x00",
    "\x1f",
    "\x7f",
    "\x85",
    "\u200b",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\ufe0f",
    "\u3000",
    "\u202e\u2066",
    "\u3164\u2800",
    "\u00b4",
)
FORMULAS = ["=1+1", "+cmd", "-x", "@sum", "\tx", "\rx", "\nx", "-1+1", "+1 2", "=HYPERLINK()"]
WIDE = ["\uff1d1+1", "\uff0bcmd", "\uff0dx", "\uff20sum", "\ufe661", "\ufe62x", "\ufe63x", "\ufe6bx", "-\uff11"]


@pytest.mark.parametrize("text", [begin + each for begin in INVISIBLE for each in (*FORMULAS, *WIDE)])
def test_spreadsheet_formulas_in_csv_cells_are_escaped(text):
    assert cell_of(text) == "'" + text


@pytest.mark.parametrize("separator", [";", "|", "\t", "\r", "\n", ";;"])
def test_formulas_after_an_alternative_separator_are_escaped(separator):
    assert cell_of(f"Smith{separator}=HYPERLINK()") == f"Smith{separator}'=HYPERLINK()"
    assert cell_of(f"=x{separator}+y{separator}-5") == f"'=x{separator}'+y{separator}-5"
    assert cell_of(f'Smith{separator} "=x') == f"Smith{separator}' \"=x"


@pytest.mark.parametrize("text", ["-1", "+1.50", "1-2", "a; b", "a|b-c", "a=b", "", "Smith, Co", "'x"])
def test_numbers_and_plain_words_in_csv_cells_are_unchanged(text):
    assert cell_of(text) == text


def test_csv_values_are_written_in_plain_format():
    assert cell_of(None) == ""
    assert cell_of(-5) == "-5"
    assert (cell_of(True), cell_of(False)) == ("true", "false")
    assert cell_of(date(2025, 6, 2)) == "2025-06-02"
    assert cell_of(datetime(2025, 6, 2, 9, tzinfo=ET)) == "2025-06-02T13:00:00Z"
    assert cell_of(datetime(2025, 6, 2, 13, 0, 0, 50, tzinfo=UTC)) == "2025-06-02T13:00:00.000050Z"


def test_csv_separators_follow_the_country_and_formulas_are_escaped_for_both():
    row = ["Smith, =HYPERLINK()", "a;b", Decimal("-98.612361"), "1.50", -5]
    assert lines_of([row]) == b'"Smith, =HYPERLINK()",a;b,-98.612361,1.50,-5\r\n'
    continental = b'Smith,\' =HYPERLINK();"a;b";-98,612361;1.50;-5\r\n'
    assert lines_of([row], Separators.SEMICOLON) == continental
