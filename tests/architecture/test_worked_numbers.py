"""Every number of the worked examples is one the code works out."""

import pytest
from tests.architecture.pages import text_of
from tests.architecture.worked import worked

NUMBERS = worked()


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_stands_on_the_page(name):
    assert NUMBERS[name] in text_of("docs/domain/tbill_maths.md")
