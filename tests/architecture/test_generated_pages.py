"""Pages made from the code are as the code would make them now."""

import pytest
from tests.architecture.pages import text_of
from tools.write_reference import pages


@pytest.mark.parametrize("name", ["errors.md", "events.md", "notifications.md", "settings.md"])
def test_a_generated_page_is_up_to_date(name):
    assert text_of(f"docs/reference/{name}") == pages()[name], "Run .venv/bin/python tools/write_reference.py"
