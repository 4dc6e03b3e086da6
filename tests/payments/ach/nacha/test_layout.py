"""Positions of the fields of NACHA records."""

import pytest

from billfold.payments.ach.nacha.layout import RECORDS, WIDTH


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.title)
def test_nacha_fields_fill_a_line_without_gap_or_overlap(record):
    following = 1
    for field in record.fields:
        assert field.first == following, field.name
        following = field.last + 1

    assert following == WIDTH + 1
    assert len({field.name for field in record.fields}) == len(record.fields)
