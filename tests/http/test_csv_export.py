"""Cells of tables that spreadsheets open."""

from datetime import UTC, date, datetime

import pytest

from billfold.http.csv_export import cell_of


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@sum", "\tx", "\rx", " =1", "-1+1", "+1 2", "=HYPERLINK()"])
def test_what_a_spreadsheet_would_run_is_made_text(text):
    assert cell_of(text) == "'" + text


@pytest.mark.parametrize("text", ["-1", "+1.50", "1-2", "a=b", "", "Smith, Co", "'x"])
def test_numbers_and_plain_words_stay(text):
    assert cell_of(text) == text


def test_values_are_written_plainly():
    assert cell_of(None) == ""
    assert cell_of(-5) == "-5"
    assert (cell_of(True), cell_of(False)) == ("true", "false")
    assert cell_of(date(2025, 6, 2)) == "2025-06-02"
    assert cell_of(datetime(2025, 6, 2, 13, tzinfo=UTC)).startswith("2025-06-02T13:00:00")
